"""Matrices to test with."""

import ctypes

import numpy
import scipy.sparse

from sparserl import _arrays


def random(rows, cols, nnz, dtype=numpy.float64, seed=1):
    """A matrix with about so many entries, some rows of which are empty and one of which is long."""
    draw = numpy.random.default_rng(seed)
    at = draw.integers(0, max(rows, 1), nnz), draw.integers(0, max(cols, 1), nnz)
    at[0][at[0] % 7 == 3] = rows // 2
    matrix = scipy.sparse.coo_array((draw.standard_normal(nnz), at), shape=(rows, cols)).tocsr()
    return matrix.astype(dtype)


def even(rows, cols, of_a_row, dtype=numpy.float64, seed=1):
    """A matrix with about as many entries in each row."""
    draw = numpy.random.default_rng(seed)
    at = numpy.repeat(numpy.arange(rows), of_a_row), draw.integers(0, cols, rows * of_a_row)
    matrix = scipy.sparse.coo_array((draw.standard_normal(rows * of_a_row), at), shape=(rows, cols)).tocsr()
    return matrix.astype(dtype)


class Bfloat16:
    """Numbers as bfloat16, which NumPy has not, by DLPack; `wide` is what they are."""

    class _Managed(ctypes.Structure):
        _fields_ = [*_arrays._Tensor._fields_, ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, numbers):
        # Cut off, which is as good as rounded here.
        self.bits = (numpy.ascontiguousarray(numbers, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
        self.shape = self.bits.shape

    @property
    def wide(self):
        return (self.bits.astype(numpy.uint32) << 16).view(numpy.float32)

    def __dlpack_device__(self):
        return _arrays.CPU, 0

    def __dlpack__(self):
        self.lengths = (ctypes.c_int64 * len(self.shape))(*self.shape)
        self.managed = self._Managed(data=self.bits.ctypes.data, device_type=_arrays.CPU, ndim=len(self.shape),
                                     code=4, bits=16, lanes=1, shape=self.lengths)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def vector(length, dtype=numpy.float64, seed=2):
    """A vector of normal numbers."""
    return numpy.random.default_rng(seed).standard_normal(length).astype(dtype)
