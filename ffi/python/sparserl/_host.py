"""Products on the host, for where there is no GPU: SciPy's, on as many threads as there are cores."""

import collections
import concurrent.futures
import ctypes
import functools
import os
import queue

import numpy

from . import _arrays

# Entries from which another thread pays.
ENTRIES_OF_A_THREAD = 100_000


def _cores():
    return len(os.sched_getaffinity(0))


@functools.cache
def _pool():
    return concurrent.futures.ThreadPoolExecutor(_cores(), thread_name_prefix="sparserl")


def _share(act, blocks):
    """Does something to each block, on several threads, of which this one is the first."""
    left, done = collections.deque(blocks), queue.SimpleQueue()

    def work():
        while True:
            try:
                block = left.popleft()
            except IndexError:
                return
            try:
                act(block)
                done.put(None)
            except BaseException as error:
                done.put(error)

    try:
        for _ in range(len(blocks) - 1):
            _pool().submit(work)
    except RuntimeError:
        pass  # When Python ends it starts no threads: this one does what is left.
    work()
    # Not what was submitted is waited for: it may be done by a thread that was there, though no other was started.
    errors = [done.get() for _ in blocks]
    for error in errors:
        if error is not None:
            raise error


def numbers(memory):
    """An array of the host in the type of sums: without a copy where that is its own."""
    array = _arrays.on_host(memory)
    if memory.dtype == _arrays.BFLOAT16:
        return (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return array.astype(numpy.float32) if memory.dtype == "f2" else array


def store(memory, rows, result):
    """Puts rows of a result, in the type of sums, into an array of the host, rounded to its type."""
    array = _arrays.on_host(memory)
    if memory.dtype == _arrays.BFLOAT16:
        whole = result.view(numpy.uint32)
        # To nearest, of two that are equally near the even one; NaN stays NaN.
        result = numpy.where(numpy.isnan(result), 0x7fc0, (whole + 0x7fff + (whole >> 16 & 1)) >> 16)
    with numpy.errstate(over="ignore"):
        array[rows] = result.astype(array.dtype, copy=False)


class HostMatrix:
    """A matrix in CSR that nobody else changes, in blocks of rows with about as many entries each. Its
    values are in the type of sums."""

    def __init__(self, offsets, indices, values, shape):
        self.offsets, self.indices, self.values, self.shape = offsets, indices, values, shape

    @classmethod
    def copy_of(cls, matrix):
        """A copy of a matrix on the host."""
        offsets, indices = (_arrays.on_host(array) for array in (matrix.offsets, matrix.indices))
        values = numbers(matrix.values)[:matrix.nnz]
        return cls(offsets.copy(), indices[:matrix.nnz].copy(), values.copy(), matrix.shape)

    @functools.cached_property
    def _blocks(self):
        try:
            from scipy.sparse import csr_array
        except ImportError:
            raise ImportError("there is no GPU, and products on the host are SciPy's: pip install scipy") from None
        count = min(_cores(), len(self.values) // ENTRIES_OF_A_THREAD + 1)
        ends = numpy.linspace(0, len(self.values), count + 1)[1:-1]
        rows = self.shape[0]
        cuts = numpy.unique([0, *numpy.searchsorted(self.offsets, ends), rows])
        blocks = []
        for first, end in zip(cuts[:-1], cuts[1:]):
            offsets = self.offsets[first:end + 1]
            entries = slice(offsets[0], offsets[-1])
            arrays = (self.values[entries], self.indices[entries], offsets - offsets[0])
            blocks.append((slice(first, end), csr_array(arrays, shape=(end - first, self.shape[1]))))
        return blocks

    @functools.cached_property
    def transposed(self):
        """The transposed matrix."""
        rows, cols = self.shape
        # Stable, so that entries of a column stay in the order of their rows.
        order = numpy.argsort(self.indices, kind="stable")
        offsets = numpy.concatenate(([0], numpy.cumsum(numpy.bincount(self.indices, minlength=cols))))
        indices = numpy.repeat(numpy.arange(rows), numpy.diff(self.offsets))[order]
        return HostMatrix(offsets, indices, self.values[order], (cols, rows))

    def with_values(self, memory):
        """The matrix with other values. This one stays as it is: another thread may be multiplying by it."""
        return HostMatrix(self.offsets, self.indices, numbers(memory).copy(), self.shape)

    def multiply(self, x, y, alpha, beta, out, ending=lambda rows, v: v):
        """out = ending(alpha A x + beta y), of vectors or matrices; y is not read where beta is 0. `ending` is called
        for some rows at a time, by several threads."""
        scalar = self.values.dtype.type
        # What is no number is refused, as it is on a GPU.
        alpha, beta = (scalar(ctypes.c_double(factor).value) for factor in (alpha, beta))
        x = numbers(x)
        y = numbers(y) if beta != 0 else None

        def act(block):
            rows, matrix = block
            product = matrix @ x
            product *= alpha
            if beta != 0:
                product += beta * y[rows]
            store(out, rows, ending(rows, product))

        _share(act, self._blocks)
