"""SparseRL: CUDA kernels for sparse matrices, made for one matrix each.

    import sparserl
    plan = sparserl.plan(A)   # CSR of SciPy, CuPy or PyTorch
    y = plan @ x              # CuPy, PyTorch, NumPy, or anything with DLPack
    sparserl.plan(A, op="spmm", cols=32) @ X

`sparserl.plan` says which options there are, `sparserl.Plan` what a plan can do; `sparserl.compile_ahead`
compiles what plans begin with before there is a matrix. What the library refuses raises
`sparserl.Error`; wrong shapes and types raise ValueError and TypeError.

A plan lives in the process that made it, not in its forks.
"""

from ._ahead import compile_ahead
from ._context import Context
from ._library import Error, Status, version
from ._plan import Plan, load, plan

__all__ = ["Context", "Error", "Plan", "Status", "compile_ahead", "load", "plan"]
__version__ = version()
