"""Matrices to test with."""

import numpy
import scipy.sparse


def random(rows, cols, nnz, dtype=numpy.float64, seed=1):
    """A matrix with about so many entries, some rows of which are empty and one of which is long."""
    draw = numpy.random.default_rng(seed)
    at = draw.integers(0, max(rows, 1), nnz), draw.integers(0, max(cols, 1), nnz)
    at[0][at[0] % 7 == 3] = rows // 2
    matrix = scipy.sparse.coo_array((draw.standard_normal(nnz), at), shape=(rows, cols)).tocsr()
    return matrix.astype(dtype)


def vector(length, dtype=numpy.float64, seed=2):
    """A vector of normal numbers."""
    return numpy.random.default_rng(seed).standard_normal(length).astype(dtype)
