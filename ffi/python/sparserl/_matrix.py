"""Matrices in CSR, as SciPy, CuPy and PyTorch have them."""

import ctypes
import operator

from . import _arrays
from ._library import CONSTANTS, Csr, Error, Status, check, create, library

VALUE_TYPES = {"f2": "SPARSERL_F16", "f4": "SPARSERL_F32", "f8": "SPARSERL_F64",
               _arrays.BFLOAT16: "SPARSERL_BF16"}
INTEGER_TYPES = {"i4": "SPARSERL_I32", "i8": "SPARSERL_I64"}


class Matrix:
    """The arrays of a matrix in CSR, where they are."""

    def __init__(self, given):
        offsets, indices, values, shape = _parts(given)
        self.shape = _sizes(shape)
        if len(self.shape) != 2:
            raise ValueError(f"the matrix has {len(self.shape)} dimensions: expected 2. A plan is for one matrix of "
                             "numbers: of a batch make a plan for each, of a vector give A.reshape(1, -1).tocsr()")
        self._given = given
        rows, cols = self.shape
        if not 0 <= min(self.shape) <= max(self.shape) < 2**63:
            raise ValueError(f"the matrix has the shape {self.shape}: expected two sizes of 64 bits")
        arrays = {"row offsets": offsets, "column indices": indices, "values": values}
        streams = {name: _arrays.stream_of(array) for name, array in arrays.items()}
        found = [_arrays.memory_of(name, array, streams[name]) for name, array in arrays.items()]
        self.offsets, self.indices, self.values = found
        if len({memory.on_host for memory in found}) > 1 or len({memory.device for memory in found}) > 1:
            raise ValueError("the three arrays of the matrix are not all in one place")
        for name, memory in zip(arrays, found):
            types = VALUE_TYPES if memory is self.values else INTEGER_TYPES
            if memory.dtype not in types:
                raise TypeError(f"the {name} are {memory.dtype}: expected {' or '.join(types)}")
        if len(self.values.shape) != 1:
            raise ValueError(f"the values have the shape {self.values.shape}: expected a number for each entry")
        self.nnz, = self.values.shape
        if self.offsets.shape != (rows + 1,) or self.indices.shape != self.values.shape:
            raise ValueError(f"a matrix of {rows} rows and {self.nnz} values has {self.offsets.shape} row "
                             f"offsets and {self.indices.shape} column indices")
        # SciPy leaves room behind the last entry where entries were taken away.
        if self.offsets.on_host:
            self.nnz = min(self.nnz, max(0, int(_arrays.on_host(self.offsets)[-1])))
        self.streams = {stream.handle: stream for stream in streams.values()}
        self.dtype, self.on_host, self.device = self.values.dtype, self.values.on_host, self.values.device

    def copy_into(self, context):
        """A handle of a copy that the library checked."""
        if not self.on_host and context.ordinal >= 0 and not context.primary_context.wait(self.streams):
            raise RuntimeError("a matrix cannot be copied from a GPU while the stream of its arrays is captured")
        rows, cols = self.shape
        csr = Csr(rows=rows, cols=cols, nnz=self.nnz)
        csr.row_offsets, csr.offset_type = self.offsets.pointer, _number(INTEGER_TYPES, self.offsets)
        csr.column_indices, csr.index_type = self.indices.pointer, _number(INTEGER_TYPES, self.indices)
        csr.values, csr.value_type = self.values.pointer, _number(VALUE_TYPES, self.values)
        csr.location = location(self.values)
        try:
            return create(library.sparserl_matrix_create, context.handle, ctypes.byref(csr))
        except Error as error:
            # SciPy and CuPy make such, by products for one.
            is_unsorted = error.status == Status.INVALID_MATRIX and "out of order" in error.text
            if is_unsorted and hasattr(self._given, "sum_duplicates"):
                raise Error(error.status, f"{error.text} (A.sum_duplicates() sorts rows and merges duplicates)") from None
            raise


def destroy(handle):
    """Destroys a handle of a matrix."""
    check(library.sparserl_matrix_destroy(handle))


def location(memory):
    """Where memory is, as the library calls it."""
    return CONSTANTS["SPARSERL_HOST" if memory.on_host else "SPARSERL_DEVICE"].number


def _number(types, memory):
    return CONSTANTS[types[memory.dtype]].number


def _parts(given):
    if _arrays.is_torch(given):
        if str(given.layout) != "torch.sparse_csr":
            raise TypeError(f"the matrix is {given.layout}: give A.to_sparse_csr()")
        return given.crow_indices(), given.col_indices(), given.values(), given.shape
    # CSC has the same attributes, and means the transposed matrix by them. A text has a method of this name.
    layout = getattr(given, "format", "csr")
    if isinstance(layout, str) and layout != "csr":
        raise TypeError(f"the matrix is {layout}: give A.tocsr()")
    try:
        return given.indptr, given.indices, given.data, given.shape
    except AttributeError:
        raise TypeError(_no_matrix(given)) from None


def _no_matrix(given):
    if hasattr(given, "__dlpack__"):
        return ("the matrix is a dense array: give a sparse one, scipy.sparse.csr_array(A) or "
                "cupyx.scipy.sparse.csr_matrix(A)")
    what = repr(given) if given is None or isinstance(given, str) else f"of {type(given)}"
    return (f"the matrix is {what}: expected one in CSR, of SciPy, CuPy or PyTorch, or anything with indptr, indices, "
            "data and shape")


def _sizes(shape):
    try:
        return tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"the matrix has the shape {shape!r}: expected two whole numbers") from None
