"""y = A x: the whole of the package that most programs need. `python3 spmv.py`"""

import numpy
import scipy.sparse

import sparserl

A = scipy.sparse.csr_array([[1.0, 0, 2], [0, 3, 0], [4, 5, 6]])
plan = sparserl.plan(A)
x = numpy.array([1.0, 10, 100])
if plan.device is not None:
    import cupy  # or PyTorch, or anything with DLPack
    x = cupy.asarray(x)
y = plan @ x
print("y =", y, "expected [201. 30. 654.]")
print("kernel:", plan.why)
