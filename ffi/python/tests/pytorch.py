"""Derivatives and tracing of products in PyTorch, on the GPU if there is one, else on the host. Needs
PyTorch and SciPy. `python3 pytorch.py`
"""

import gc
import unittest

import matrix
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import sparserl
from sparserl import Status

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONTEXT = sparserl.Context(policy="cost", device=0 if DEVICE == "cuda" else -1)
A = matrix.random(60, 40, 300)
DENSE = torch.tensor(A.toarray(), device=DEVICE)


def plan_of(A, **options):
    return sparserl.plan(A, context=CONTEXT, expected_calls=0, **options)


def vector(length, **options):
    return torch.tensor(matrix.vector(length), device=DEVICE, **options)


class PyTorch(unittest.TestCase):
    def setUp(self):
        self.plan = plan_of(A, transpose_too=True)
        self.x = vector(40, requires_grad=True)

    def test_derivatives(self):
        gradcheck, y = torch.autograd.gradcheck, vector(60, requires_grad=True)
        self.assertTrue(gradcheck(lambda x: self.plan @ x, self.x))
        self.assertTrue(gradcheck(lambda y: self.plan.T @ y, y))
        self.assertTrue(gradcheck(lambda x, y: self.plan(x, y, 2.0, 3.0), (self.x, y)))
        self.assertTrue(torch.autograd.gradgradcheck(lambda x: self.plan @ x, self.x))
        # A gradient that is not contiguous.
        (self.plan @ self.x).sum().backward()
        torch.testing.assert_close(self.x.grad, DENSE.T.sum(1))

    def test_dense_matrices(self):
        plan = plan_of(A, op="spmm", cols=3, transpose_too=True)
        x, y = vector(120, requires_grad=True), vector(180, requires_grad=True)
        act = lambda x, y: plan(x.view(40, 3), y.view(60, 3), 2.0, 3.0)
        torch.testing.assert_close(act(x, y), 2 * DENSE @ x.view(40, 3) + 3 * y.view(60, 3))
        self.assertTrue(torch.autograd.gradcheck(act, (x, y)))
        self.assertTrue(torch.autograd.gradgradcheck(act, (x, y)))
        compiled = torch.compile(lambda x: torch.relu(plan(x)), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x.view(40, 3)), torch.relu(DENSE @ x.view(40, 3)))
        torch.library.opcheck(torch.ops.sparserl.product, (x.detach().view(40, 3), plan._kernels.number, 0))

    def test_matrices_as_they_lie(self):
        for order in ("strided", "column-major"):
            plan = plan_of(A, op="spmm", cols=4, dense=order, transpose_too=True)
            wide = vector(400)
            x = wide.view(40, 10)[:, 2:6] if order == "strided" else wide.view(10, 40)[2:6].T
            torch.testing.assert_close(plan @ x, DENSE @ x)
            out = wide.new_empty(60, 10)[:, :4] if order == "strided" else wide.new_empty(4, 60).T
            self.assertIs(plan(x, out=out), out)
            torch.testing.assert_close(out, DENSE @ x)
            # Gradients of sums have strides of their own.
            leaf = x.detach().requires_grad_()
            (plan @ leaf).sum().backward()
            torch.testing.assert_close(leaf.grad, DENSE.T.sum(1, keepdim=True).expand(40, 4))
            self.assertTrue(torch.autograd.gradcheck(lambda x: plan @ x, (leaf,)))
            torch.library.opcheck(torch.ops.sparserl.product, (x, plan._kernels.number, 0))

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            dense = DENSE.to(dtype)
            plan = plan_of(dense.to_sparse_csr(), op="spmm", cols=8, transpose_too=True)
            self.assertEqual(str(plan.dtype), str(dtype).removeprefix("torch."))
            x = vector(320).view(40, 8).to(dtype).requires_grad_()
            product = plan @ x
            self.assertIs(product.dtype, dtype)
            torch.testing.assert_close(product.double(), dense.double() @ x.double(), rtol=1e-2, atol=1e-2)
            product.sum().backward()
            expected = dense.double().T.sum(1, keepdim=True).expand(40, 8)
            torch.testing.assert_close(x.grad.double(), expected, rtol=2e-2, atol=5e-2)

    def test_usual_products_are_as_others(self):
        for options in ({}, {"op": "spmm", "cols": 3}):
            plan = plan_of(A, transpose_too=True, **options)
            shape = (40,) if not options else (40, 3)
            x = vector(3 * 40)[:40].clone() if not options else vector(120).view(shape)
            # The first is asked of a stream that the plan does not know yet.
            products = [plan @ x, plan @ x, plan(x, out=torch.empty_like(DENSE @ x)), plan(x, alpha=1, beta=0)]
            for product in products:
                torch.testing.assert_close(product, DENSE @ x)
                self.assertTrue(torch.equal(product, products[0]))
            self.assertEqual([side is not None for side in plan._kernels.usual], [DEVICE == "cuda", False])
            leaf = x.clone().requires_grad_()
            for _ in range(2):
                own, = torch.autograd.grad(plan @ leaf, leaf, products[0])
                torch.testing.assert_close(own, DENSE.T @ products[0])
            for wrong, error, text in ((x[1:], ValueError, "x has the shape"), (x.float(), TypeError, "x holds f4")):
                for given in (wrong, wrong.clone().requires_grad_()):
                    with self.assertRaisesRegex(error, text):
                        plan @ given
            with self.assertRaisesRegex(ValueError, "out has the shape"):
                plan(x, out=torch.empty_like(x))
            plan.close()
            with self.assertRaises(sparserl.Error):
                plan @ x

    def test_the_derivative_keeps_the_plan(self):
        y = self.plan @ self.x
        self.plan = None
        gc.collect()
        y.sum().backward()
        torch.testing.assert_close(self.x.grad, DENSE.T.sum(1))

    def test_matrices_in_csr(self):
        plan = plan_of(DENSE.to_sparse_csr())
        torch.testing.assert_close(plan @ self.x.detach(), DENSE @ self.x.detach())
        with self.assertRaisesRegex(TypeError, "to_sparse_csr"):
            plan_of(DENSE.to_sparse_coo())

    def test_tracing(self):
        # The code of the graph is PyTorch's own, so that no compiler is needed.
        def compiled(function):
            return torch.compile(function, fullgraph=True, backend="aot_eager")

        act = compiled(lambda x: torch.relu(self.plan(2 * x)) + 1)
        expected = torch.relu(DENSE @ (2 * self.x)) + 1
        torch.testing.assert_close(act(self.x), expected)
        own, = torch.autograd.grad(act(self.x).sum(), self.x)
        other, = torch.autograd.grad(expected.sum(), self.x)
        torch.testing.assert_close(own, other)
        act = compiled(lambda plan, x: plan(x))
        for plan, dense in ((self.plan, DENSE), (plan_of(2 * A), 2 * DENSE), (self.plan.T, DENSE.T)):
            x = vector(plan.shape[1])
            torch.testing.assert_close(act(plan, x), dense @ x)

    def test_only_what_is_traced_goes_by_the_operator(self):
        # It takes the host several times as long.
        self.assertEqual(type((self.plan @ self.x).grad_fn).__name__, "_ProductBackward")
        with FakeTensorMode() as mode:
            y = self.plan @ mode.from_tensor(self.x)
        self.assertIsInstance(y, FakeTensor)
        self.assertEqual(y.shape, (60,))
        self.assertIn("sparserl", y.grad_fn.name())

    def test_what_has_no_memory_goes_by_the_operator_without_derivatives_too(self):
        x, changed = self.x.detach(), plan_of(A, values_variable=True)
        mode = FakeTensorMode()
        fake, out, values = (mode.from_tensor(tensor) for tensor in (x, vector(60), vector(A.nnz)))
        with mode:
            y = self.plan(fake, alpha=2)
        self.assertIsInstance(y, FakeTensor)
        self.assertEqual(y.shape, (60,))
        with self.assertRaisesRegex(ValueError, "out= and stream="):
            self.plan(x, out=out)
        with self.assertRaisesRegex(TypeError, "values is a FakeTensor without memory"):
            changed.update(values)
        traced = make_fx(lambda x: self.plan(x) + 1, tracing_mode="fake")(x)
        self.assertIn("sparserl.product", traced.code)

    def test_what_is_written_is_known_to_have_changed(self):
        x, out, leaf = self.x.detach(), vector(60), vector(60, requires_grad=True)
        square = (leaf * out).sum()
        self.plan(x, out=out)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            square.backward()
        terms, weights = vector(60), vector(60)
        dot, square = plan_of(A, epilogue="dot_terms"), (leaf * terms).sum()
        version = weights._version
        dot(x, user=(weights, terms))
        self.assertEqual(weights._version, version)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            square.backward()
        with torch.inference_mode():
            self.plan(x, out=torch.empty_like(out))
        # As of PyTorch's own operators with out=.
        with self.assertRaisesRegex(ValueError, "out= and stream="):
            self.plan(x, out=leaf)
        with torch.no_grad():
            self.plan(x, out=leaf)
        torch.testing.assert_close(leaf.detach(), DENSE @ x)

    def test_types_that_pytorch_chooses(self):
        plan = plan_of(A.astype("f4"), op="spmm", cols=3, transpose_too=True)
        layer, x = torch.nn.Linear(5, 3, device=DEVICE), vector(200).view(40, 5).float()
        act = lambda x: plan(layer(x))
        with self.assertRaisesRegex(TypeError, "x holds b2, and the matrix f4"):
            plan(layer(x).detach().bfloat16())
        for function in (act, torch.compile(act, fullgraph=True, backend="aot_eager")):
            with torch.autocast(DEVICE, torch.bfloat16):
                y = function(x)
            self.assertIs(y.dtype, torch.float32)
            torch.testing.assert_close(y, DENSE.float() @ layer(x), rtol=3e-2, atol=3e-2)
            gradient, = torch.autograd.grad(y.sum(), layer.weight)
            self.assertIs(gradient.dtype, torch.float32)

    def test_new_values_before_the_derivative(self):
        plan = plan_of(A, transpose_too=True, values_variable=True)
        y = plan @ self.x
        plan.update(2 * A.data)
        with self.assertRaisesRegex(RuntimeError, "the values of the plan were updated after"):
            y.sum().backward()
        (plan @ self.x).sum().backward()
        torch.testing.assert_close(self.x.grad, 2 * DENSE.T.sum(1))

    def test_the_operator_is_what_pytorch_expects(self):
        arguments = (self.x, self.plan._kernels.number, 0)
        torch.library.opcheck(torch.ops.sparserl.product, arguments)

    def test_wrong_use(self):
        for options, text in (({}, "transpose_too=True"), ({"epilogue": "relu", "transpose_too": True}, "epilogue")):
            with self.assertRaises(sparserl.Error) as caught:
                plan_of(A, **options) @ self.x
            self.assertIs(caught.exception.status, Status.UNSUPPORTED)
            self.assertIn(text, caught.exception.text)
        # A derivative has no epilogue, and is a product with the other side.
        plan = plan_of(A, transpose_too=True, transposed_epilogue="relu")
        for function in (lambda x: plan @ x, lambda x: plan(x, alpha=2)):
            with self.assertRaises(sparserl.Error) as caught:
                function(self.x)
            self.assertIs(caught.exception.status, Status.UNSUPPORTED)
            self.assertIn('in this plan: make it with transposed_epilogue="none"', caught.exception.text)
        torch.testing.assert_close(plan @ self.x.detach(), DENSE @ self.x.detach())
        traced = torch.compile(lambda x: plan(x), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(traced(self.x.detach()), DENSE @ self.x.detach())
        y = vector(60)
        torch.testing.assert_close(plan.T @ y, torch.relu(DENSE.T @ y))
        with self.assertRaises(sparserl.Error) as caught:
            plan.T @ vector(60, requires_grad=True)
        self.assertIn("the derivative of an epilogue is not known", caught.exception.text)
        with self.assertRaisesRegex(ValueError, "out= and stream="):
            self.plan(self.x, out=vector(60))
        batch = torch.stack([DENSE, DENSE])
        hybrid = torch.sparse_csr_tensor([0, 1], [0], torch.ones(1, 2), (1, 1, 2))
        for given in (batch.to_sparse_csr(), hybrid):
            with self.assertRaisesRegex(ValueError, "the matrix has 3 dimensions: expected 2"):
                plan_of(given)
        with self.assertRaisesRegex(TypeError, "x is on meta"):
            self.plan @ torch.empty(40, dtype=torch.float64, device="meta")


if __name__ == "__main__":
    unittest.main()
