"""Compiling before there is a matrix."""

import ctypes

import numpy

from . import _arrays, _context
from ._library import CONSTANTS, Options, check, library
from ._matrix import VALUE_TYPES
from ._plan import options_of


def compile_ahead(dtype, op="spmv", cols=None, *, dense=None, context=None, **options):
    """Compiles every kernel that `sparserl.plan` may begin with for matrices of a type (f16, bf16, f32 or f64, as
    NumPy or PyTorch call it, or "bfloat16"), whatever the matrix, and gives their number, those that were there
    among it. What follows the type is what the plans will be given; of the options `values_variable` and those of
    epilogues count, with `transpose_too` for those of the transpose.

    The kernels are kept in the cache folder: plans of this and later processes do not wait for a compiler then. For
    what is installed, or runs before a job, also without a GPU, for the `target` of the context. It takes all cores
    for seconds to minutes, and milliseconds when all is there. An epilogue in CUDA C is compiled once more, to be
    tried, by the first plan for each size of a matrix.
    """
    options = options_of(op, cols, dense, options)
    context = _context.of(context, None)
    number, kernels = CONSTANTS[VALUE_TYPES[_type_of(dtype)]].number, ctypes.c_int64()
    with Options(options) as given:
        check(library.sparserl_compile_ahead(context.handle, number, given, ctypes.byref(kernels)))
    return kernels.value


def _type_of(dtype):
    name = str(dtype).removeprefix("torch.")
    found = _arrays.TORCH_TYPES.get(name)
    # NumPy takes None for float64.
    if found is None and dtype is not None:
        try:
            found = numpy.dtype(dtype).str[1:]
        except TypeError:
            pass
    if found not in VALUE_TYPES:
        raise TypeError(f"dtype is {dtype!r}: expected float16, bfloat16, float32 or float64")
    return found
