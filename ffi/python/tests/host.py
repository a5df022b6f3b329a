"""The package where there is no GPU: plans are made, checked by emulation and saved, and products are
computed on the host. Needs SciPy. `python3 host.py`
"""

import copy
import gc
import operator
import os
import pickle
import re
import tempfile
import threading
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import matrix
import numpy
import process
import scipy.sparse.linalg
from numpy.testing import assert_allclose

import sparserl
from sparserl import Status, _library

# Plain CSR at once, where the kernel does not matter.
CONTEXT = sparserl.Context(device=-1, policy="cost")
A = matrix.random(300, 200, 2_000)


def plain(A, **options):
    return sparserl.plan(A, context=CONTEXT, expected_calls=0, **options)


class Products(unittest.TestCase):
    def test_four_lines(self):
        plan = sparserl.plan(A)
        x = matrix.vector(200)
        assert_allclose(plan @ x, A @ x, rtol=1e-13)
        self.assertIn("emulated", plan.why)

    def test_types_of_values_and_integers(self):
        for dtype in (numpy.float32, numpy.float64):
            for offsets in (numpy.int32, numpy.int64):
                for indices in (numpy.int32, numpy.int64):
                    given = types.SimpleNamespace(
                        indptr=A.indptr.astype(offsets), indices=A.indices.astype(indices),
                        data=A.data.astype(dtype), shape=A.shape)
                    x = matrix.vector(200, dtype)
                    y = plain(given) @ x
                    self.assertEqual(y.dtype, dtype)
                    assert_allclose(y, A.astype(dtype) @ x, rtol=1e-5 if dtype == numpy.float32 else 1e-13, atol=1e-5)

    def test_all_arguments_of_both_sides(self):
        plan = plain(A, transpose_too=True)
        for side, reference in ((plan, A), (plan.T, A.T), (plan.T.T, A)):
            rows, cols = side.shape
            x, y = matrix.vector(cols), matrix.vector(rows, seed=3)
            expected = 2 * (reference @ x) - 3 * y
            assert_allclose(side(x, y, 2, -3), expected, rtol=1e-12)
            out = numpy.full(rows, numpy.nan)
            self.assertIs(side(x, y, alpha=2, beta=-3, out=out), out)
            assert_allclose(out, expected, rtol=1e-12)
            self.assertIs(side(x, y, 2, -3, out=y), y)
            assert_allclose(y, expected, rtol=1e-12)
            # What is not read may hold anything.
            assert_allclose(side(x, numpy.full(rows, numpy.nan)), reference @ x, rtol=1e-13)

    def test_dense_matrices(self):
        for dtype in (numpy.float16, numpy.float32, numpy.float64):
            tolerance = {"rtol": 1e-12} if dtype == numpy.float64 else {"rtol": 2e-3, "atol": 2e-2}
            typed = types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=A.data.astype(dtype), shape=A.shape)
            plan = sparserl.plan(typed, op="spmm", cols=6, context=CONTEXT, expected_calls=0, transpose_too=True,
                                 values_variable=True)
            self.assertEqual((plan.columns, plan.dtype), (6, dtype))
            self.assertIn("spmm 6 ", plan.program)
            for values in (A.data, matrix.vector(A.nnz, seed=9)):
                plan.update(values.astype(dtype))
                exact = A.astype(numpy.float64)
                exact.data[:] = values.astype(dtype)
                for side, reference in ((plan, exact), (plan.T, exact.T)):
                    rows, cols = side.shape
                    x = matrix.vector(6 * cols, dtype).reshape(cols, 6)
                    y = matrix.vector(6 * rows, dtype, seed=3).reshape(rows, 6)
                    product = side @ x
                    self.assertEqual((product.dtype, product.shape), (dtype, (rows, 6)))
                    assert_allclose(product, reference @ x.astype(float), **tolerance)
                    expected = 2 * (reference @ x.astype(float)) - 3 * y
                    self.assertIs(side(x, y, 2, -3, out=y), y)
                    assert_allclose(y, expected, **tolerance)

    def dense_products(self, plan, arranged):
        """Products of both sides with matrices as `arranged` lays them, results of the package's and of the
        caller's."""
        for side, reference in ((plan, A), (plan.T, A.T)):
            rows, cols = side.shape
            x = arranged(matrix.vector(8 * cols).reshape(cols, 8))
            y = arranged(matrix.vector(8 * rows, seed=3).reshape(rows, 8))
            assert_allclose(side @ x, reference @ x, rtol=1e-12)
            expected = 2 * (reference @ x) - 3 * y
            assert_allclose(side(x, y, 2, -3), expected, rtol=1e-12)
            out = arranged(numpy.full((rows, 8), numpy.nan))
            whole = out.base.copy()
            self.assertIs(side(x, y, 2, -3, out=out), out)
            assert_allclose(out, expected, rtol=1e-12)
            # What lies between them stays.
            base, out.base[:] = out.base.copy(), whole
            changed = ~((base == whole) | (numpy.isnan(base) & numpy.isnan(whole)))
            self.assertEqual(changed.sum(), out.size)
            self.assertIs(side(x, y, 2, -3, out=y), y)
            assert_allclose(y, expected, rtol=1e-12)

    def test_rows_with_gaps(self):
        plan = plain(A, op="spmm", cols=8, dense="strided", transpose_too=True)
        self.assertEqual(plan.dense, "strided")

        def slice_of(array):
            wide = numpy.full((array.shape[0], 13), 7.0)
            wide[:, 3:11] = array
            return wide[:, 3:11]

        self.dense_products(plan, slice_of)
        # Rows of the one lie between those of the other.
        both = matrix.vector(16 * 200).reshape(200, 16)
        square = plain(A[:200], op="spmm", cols=8, dense="strided")
        expected = A[:200] @ both[:, :8]
        square(both[:, :8], out=both[:, 8:])
        assert_allclose(both[:, 8:], expected, rtol=1e-12)
        with self.assertRaisesRegex(ValueError, "x is not contiguous.*dense='column-major'"):
            plan @ numpy.asfortranarray(numpy.ones((200, 8)))
        for strides in ((0, 8), (8, 8), (-64, 8)):
            x = numpy.lib.stride_tricks.as_strided(numpy.ones(5000)[2000:], (200, 8), strides)
            with self.assertRaisesRegex(ValueError, "x is not contiguous"):
                plan @ x
        plain_rows = plain(A, op="spmm", cols=8)
        self.assertEqual(plain_rows.dense, "row-major")
        with self.assertRaisesRegex(ValueError, "make the plan with dense='strided'"):
            plain_rows @ slice_of(numpy.ones((200, 8)))
        with self.assertRaisesRegex(ValueError, "dense='banded': expected 'row-major' or 'strided' or 'column-major'"):
            plain(A, op="spmm", cols=8, dense="banded")
        with self.assertRaisesRegex(sparserl.Error, "is for matrices"):
            plain(A, dense="strided")

    def test_columns(self):
        plan = plain(A, op="spmm", cols=8, dense="column-major", transpose_too=True)
        self.assertEqual(plan.dense, "column-major")
        self.assertTrue((plan @ numpy.asfortranarray(numpy.ones((200, 8)))).flags.f_contiguous)

        def transposed(array):
            return array.T.copy().T

        def slice_of(array):
            wide = numpy.full((20, array.shape[0] + 5), 7.0)
            wide[3:11, 2:-3] = array.T
            return wide[3:11, 2:-3].T

        self.dense_products(plan, transposed)
        self.dense_products(plan, slice_of)
        with self.assertRaisesRegex(ValueError, "column after column.*numpy.asfortranarray"):
            plan @ numpy.ones((200, 8))
        with self.assertRaisesRegex(ValueError, "out does not lie column after column"):
            plan(transposed(numpy.ones((200, 8))), out=numpy.empty((300, 8)))
        # One column, or one row, is both.
        for shape in ((1, 8), (200, 1), (1, 1)):
            for order in ("strided", "column-major", "row-major"):
                one = plain(A[:, :shape[0]], op="spmm", cols=shape[1], dense=order)
                x = numpy.ones(shape)
                assert_allclose(one @ x, A[:, :shape[0]] @ x, rtol=1e-13)

    def test_bfloat16(self):
        given = types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=matrix.Bfloat16(A.data), shape=A.shape)
        exact = A.astype(numpy.float64)
        exact.data[:] = given.data.wide
        x, out = matrix.Bfloat16(matrix.vector(200)), matrix.Bfloat16(numpy.zeros(300))
        plan = plain(given)
        self.assertEqual(plan.dtype, "bfloat16")
        plan(x, out=out)
        assert_allclose(out.wide, exact @ x.wide.astype(float), rtol=2**-8, atol=1e-5)
        with self.assertRaisesRegex(TypeError, "give the result's as out="):
            plan @ x
        # Rounded to nearest, and of two that are equally near to the even one.
        ones = types.SimpleNamespace(indptr=numpy.arange(5), indices=numpy.zeros(4, int),
                                     data=matrix.Bfloat16(numpy.ones(4)), shape=(4, 1))
        y = matrix.Bfloat16(numpy.array([2.0**-8, 2.0**-7 + 2.0**-8, 2.0**-9, numpy.nan]))
        out = matrix.Bfloat16(numpy.zeros(4))
        plain(ones)(matrix.Bfloat16(numpy.ones(1)), y, beta=1, out=out)
        numpy.testing.assert_array_equal(out.wide, numpy.array([1, 1 + 2.0**-6, 1, numpy.nan], numpy.float32))

    def test_epilogues_that_are_ready(self):
        def ready(name, v, vectors, columns):
            lower, upper, step = -numpy.abs(vectors), numpy.abs(vectors) / 2, 0.75
            rows = vectors[:, 0].copy() if v.ndim == 2 else vectors
            return {
                "relu": lambda: (numpy.maximum(v, 0), ()),
                "bias": lambda: (v + (rows[:, None] if v.ndim == 2 else rows), (rows,)),
                "column_bias": lambda: (v + columns, (columns,)),
                "clamp": lambda: (numpy.clip(v, lower, upper), (lower, upper)),
                "axpy": lambda: (v + step * vectors, (vectors, step)),
                "dot_terms": lambda: (v, (vectors, numpy.zeros_like(v))),
            }[name]()

        large = matrix.random(4_000, 3_000, 300_000)
        for A, options in ((large, {}), (matrix.random(300, 200, 2_000), {"op": "spmm", "cols": 4})):
            columns = matrix.vector(4, seed=7)
            shaped = lambda length, seed: matrix.vector(length * (4 if options else 1), seed=seed).reshape(
                (length, 4) if options else length)
            for name in ("relu", "bias", "clamp", "axpy", "dot_terms", *["column_bias"] * bool(options)):
                plan = plain(A, epilogue=name, transpose_too=True, **options)
                for side, reference in ((plan, A), (plan.T, A.T)):
                    rows, cols = side.shape
                    x, y = shaped(cols, 2), shaped(rows, 3)
                    v = 2 * (reference @ x) - 3 * y
                    expected, user = ready(name, v, shaped(rows, 4), columns)
                    with self.subTest(name, options=options, rows=rows):
                        assert_allclose(side(x, y, 2, -3, user=user), expected, rtol=1e-12, atol=1e-12)
                        if name == "dot_terms":
                            assert_allclose(user[1], v * user[0], rtol=1e-12, atol=1e-12)
        # Each side may have its own, or none.
        x, y, bias = matrix.vector(200), matrix.vector(300), matrix.vector(200, seed=4)
        plan = plain(A, epilogue="relu", transposed_epilogue="bias", transpose_too=True)
        self.assertEqual((plan.epilogue, plan.T.epilogue, plan.T.T.epilogue), ("relu", "bias", "relu"))
        self.assertEqual((plan.epilogue_user, plan.T.epilogue_user), ("", "const Dense bias[rows];"))
        assert_allclose(plan @ x, numpy.maximum(A @ x, 0), rtol=1e-12, atol=1e-12)
        assert_allclose(plan.T(y, user=(bias,)), A.T @ y + bias, rtol=1e-12, atol=1e-12)
        with self.assertRaises(sparserl.Error) as caught:
            plan.T(y)
        self.assertEqual((caught.exception.status, caught.exception.text), (Status.NULL_POINTER, "user is NULL"))
        for options, ends in (({"epilogue": "relu", "transposed_epilogue": "none"}, (True, False)),
                              ({"transposed_epilogue": "relu"}, (False, True))):
            plan = plain(A, transpose_too=True, **options)
            for side, reference, operand, is_cut in ((plan, A, x, ends[0]), (plan.T, A.T, y, ends[1])):
                v = reference @ operand
                self.assertLess(v.min(), 0)
                with self.subTest(options, shape=side.shape):
                    assert_allclose(side @ operand, numpy.maximum(v, 0) if is_cut else v, rtol=1e-12, atol=1e-12)
                    self.assertEqual(side.epilogue, "relu" if is_cut else "")
        # Sums are in a wider type than operands in half precision, and so are terms.
        half = types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=A.data.astype("f2"), shape=A.shape)
        x, vector, terms = matrix.vector(200, "f2"), matrix.vector(300, "f2"), numpy.zeros(300, "f4")
        y = plain(half, epilogue="dot_terms")(x, user=(vector, terms))
        assert_allclose(terms, y.astype("f4") * vector, rtol=2e-3, atol=1e-3)
        # What is no number stays none.
        x = numpy.full(200, numpy.nan)
        for name, user in (("relu", ()), ("clamp", (numpy.zeros(300), numpy.ones(300)))):
            result = plain(A, epilogue=name)(x, user=user)
            numpy.testing.assert_array_equal(numpy.isnan(result), numpy.diff(A.indptr) > 0)

    def test_matrices_for_several_threads(self):
        large = matrix.random(40_000, 30_000, 900_000)
        plan = plain(large, transpose_too=True)
        x, y = matrix.vector(30_000), matrix.vector(40_000)
        assert_allclose(plan(x, y, 1, 1), large @ x + y, rtol=1e-12)
        assert_allclose(plan.T @ y, large.T @ y, rtol=1e-9, atol=1e-9)

    def test_matrices_without_entries(self):
        for shape in ((3, 2), (1, 1), (0, 4), (4, 0)):
            plan = plain(matrix.random(*shape, 0), transpose_too=True)
            assert_allclose(plan @ numpy.ones(shape[1]), numpy.zeros(shape[0]))
            assert_allclose(plan.T @ numpy.ones(shape[0]), numpy.zeros(shape[1]))

    def test_vectors_by_dlpack(self):
        class Foreign:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

        x = matrix.vector(400)
        assert_allclose(plain(A) @ Foreign(x[100:300]), A @ x[100:300], rtol=1e-13)
        with self.assertRaisesRegex(ValueError, "x is not contiguous"):
            plain(A) @ Foreign(x[::2])

    def test_new_values(self):
        plan = plain(A, transpose_too=True, values_variable=True)
        x, y = matrix.vector(200), matrix.vector(300)
        for seed in (5, 6):
            changed = A.copy()
            changed.data[:] = matrix.vector(A.nnz, seed=seed)
            plan.update(changed.data)
            assert_allclose(plan @ x, changed @ x, rtol=1e-12)
            assert_allclose(plan.T @ y, changed.T @ y, rtol=1e-12)
        with self.assertRaises(ValueError):
            plan.update(changed.data[1:])

    def test_new_values_while_a_product_is_made_ready(self):
        make = scipy.sparse.csr_array
        for side in (lambda plan: plan, lambda plan: plan.T):
            changed, plan = 2 * A, plain(A, transpose_too=True, values_variable=True)
            operand = matrix.vector(side(plan).shape[1])

            def late(*arguments, **options):
                # As another thread would, between the reading of the old values and the first product by them.
                plan.update(changed.data)
                return make(*arguments, **options)

            with mock.patch("scipy.sparse.csr_array", late):
                side(plan) @ operand
            assert_allclose(side(plan) @ operand, side(changed) @ operand, rtol=1e-12)

    def test_solvers(self):
        solve = scipy.sparse.linalg
        S = (A[:200] @ A[:200].T + 100 * scipy.sparse.eye_array(200)).tocsr()
        S.sum_duplicates()
        plan, b = plain(S, transpose_too=True), matrix.vector(200)
        for method in (solve.cg, solve.gmres, solve.bicg):
            for right in (b, b.reshape(-1, 1)):
                x, failed = method(plan, right, rtol=1e-10)
                self.assertEqual(failed, 0)
                assert_allclose(S @ x, b, rtol=1e-8, atol=1e-8)
        values = lambda of: numpy.sort(solve.eigsh(of, k=3, return_eigenvectors=False))
        assert_allclose(values(plan), values(S), rtol=1e-8)
        # What is not square, and another side of it.
        plan = plain(A, transpose_too=True)
        for side, reference in ((plan, A), (plan.T, A.T)):
            b = matrix.vector(side.shape[0])
            expected = solve.lsqr(reference, b)[0]
            assert_allclose(solve.lsqr(side, b)[0], expected, rtol=1e-6, atol=1e-9)
            values = lambda of: numpy.sort(solve.svds(of, k=3, return_singular_vectors=False))
            assert_allclose(values(side), values(reference), rtol=1e-8)
            # Columns of matrices have gaps.
            operator, X = solve.aslinearoperator(side), numpy.ones((side.shape[1], 3))
            self.assertEqual((operator.shape, operator.dtype), (side.shape, A.dtype))
            assert_allclose(operator @ X, reference @ X, rtol=1e-12)
            assert_allclose(operator.H @ b, reference.T @ b, rtol=1e-12)
        one_sided = plain(A)
        self.assertFalse(hasattr(one_sided, "rmatvec") or hasattr(one_sided.T, "matvec"))
        assert_allclose(one_sided.T.rmatvec(b[:200]), A @ b[:200], rtol=1e-12)
        for without in (one_sided.T, plain(A, op="spmm", cols=3)):
            with self.assertRaisesRegex(AttributeError, "matvec and rmatvec if it is for SpMV"):
                without.matvec

    def test_vectors_of_solvers(self):
        plan = plain(A, transpose_too=True)
        for act, reference in ((plan.matvec, A), (plan.rmatvec, A.T), (plan.T.matvec, A.T), (plan.T.rmatvec, A)):
            rows, cols = reference.shape
            x = matrix.vector(2 * cols)[::2]
            for given in (x, x.reshape(-1, 1), x.copy()):
                product, expected = act(given), reference @ given
                self.assertEqual(product.shape, expected.shape)
                assert_allclose(product, expected, rtol=1e-12)
            for shape in ((1, cols), (cols // 2, 2), (2, cols // 2), (cols - 1,), (cols - 1, 1), (cols, 1, 1), ()):
                with self.assertRaisesRegex(ValueError, re.escape(f"x has the shape {shape}: expected ({cols},) or")):
                    act(numpy.ones(shape))
            for given in (None, list(x)):
                with self.assertRaisesRegex(TypeError, "expected an array"):
                    act(given)

    def test_plans_are_no_operands_of_numpy(self):
        plan, x, y = plain(A, transpose_too=True), matrix.vector(200), matrix.vector(300)
        for act in (
            lambda: x + plan, lambda: plan + x, lambda: x * plan, lambda: plan * x, lambda: x[0] * plan,
            lambda: 2 * plan, lambda: numpy.add(x, plan), lambda: numpy.multiply(plan, 2),
            lambda: numpy.matmul(plan, x), lambda: numpy.matmul(y, plan),
            lambda: operator.imatmul(y, plan), lambda: operator.iadd(x, plan),
        ):
            with self.assertRaises(TypeError):
                act()
        self.assertIs(x == plan, False)

    def test_vectors_before_plans(self):
        plan, x, y = plain(A, transpose_too=True), matrix.vector(200), matrix.vector(300)
        assert_allclose(y @ plan, y @ A, rtol=1e-12)
        assert_allclose(x @ plan.T, x @ A.T, rtol=1e-12)
        for error, text, act in [
            (ValueError, r"x has the shape \(200,\): expected \(300,\)", lambda: x @ plan),
            (ValueError, r"x has the shape \(2, 300\): expected \(300,\)", lambda: numpy.ones((2, 300)) @ plan),
            (sparserl.Error, "TRANSPOSE_TOO", lambda: y @ plain(A)),
            (TypeError, "expected an array", lambda: list(y) @ plan),
            (TypeError, "expected an array", lambda: A.T @ plan),
        ]:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                act()
        dense = plain(A, op="spmm", cols=4, dense="column-major", transpose_too=True)
        Y = matrix.vector(1200).reshape(4, 300)
        with self.assertRaisesRegex(TypeError, r"write \(plan.T @ X.T\).T"):
            Y @ dense
        assert_allclose((dense.T @ Y.T).T, Y @ A, rtol=1e-12)

    def test_the_matrix_is_copied(self):
        changed = A.copy()
        plan, x = plain(changed), matrix.vector(200)
        changed.data[:] = 0
        assert_allclose(plan @ x, A @ x, rtol=1e-13)

    def test_threads(self):
        plan, x = plain(A), matrix.vector(200)
        expected, wrong = plan @ x, []

        def work():
            for _ in range(50):
                if not numpy.array_equal(plan @ x, expected):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(wrong, [])


class Plans(unittest.TestCase):
    def test_what_is_known(self):
        plan = sparserl.plan(A, context=CONTEXT, transpose_too=True)
        self.assertIn("chosen by the cost model", plan.why)
        self.assertRegex(plan.program, "^sparserl \\d+\nspmv f64\n")
        self.assertIn("__global__", plan.source)
        self.assertTrue(plan.cubin.startswith(b"\x7fELF"))
        self.assertNotEqual(plan.T.source, "")
        self.assertGreater(plan.packed_bytes, 8 * A.nnz)
        self.assertGreater(plan.predicted_seconds, 0)
        self.assertGreater(plan.planning_seconds, 0)
        # Nothing was measured.
        self.assertIsNone(plan.measured_seconds)
        self.assertIsNone(plan.cusparse_seconds)
        self.assertEqual((plan.shape, plan.T.shape, plan.nnz, plan.dtype), ((300, 200), (200, 300), A.nnz, "f8"))
        self.assertLessEqual({"why", "cubin", "calls_to_pay"}, set(dir(plan)))
        self.assertEqual((plan.epilogue, plan.epilogue_user), ("", ""))
        self.assertIs(plan.wait(), plan)
        with self.assertRaises(AttributeError):
            plan.colour
        ready = {"axpy": "const Dense vector[rows][N];Scalar factor;", "relu": ""}
        for name, declared in ready.items():
            plan = plain(A, epilogue=name)
            self.assertEqual((plan.epilogue, plan.epilogue_user), (name, declared))
        text = "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar, const User& user) " \
               "{ return product * user.step; }"
        plan = plain(A, epilogue_source=text, epilogue_user="Scalar step")
        self.assertEqual((plan.epilogue, plan.epilogue_user), (text, "Scalar step;"))

    def test_a_deadline_ends_an_emulation(self):
        # Which takes a minute and more of so many columns.
        begin = time.monotonic()
        plan = sparserl.plan(A, op="spmm", cols=1_000_000, context=CONTEXT, deadline=2)
        self.assertIn("the deadline came", plan.why)
        self.assertLess(time.monotonic() - begin, 30)

    def test_saved_and_loaded(self):
        x = matrix.vector(200)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.plan"
            plan = sparserl.plan(A, context=CONTEXT)
            plan.save(path)
            loaded = sparserl.load(path, A, context=CONTEXT)
            self.assertEqual((loaded.program, loaded.cubin), (plan.program, plan.cubin))
            assert_allclose(loaded @ x, A @ x, rtol=1e-13)
            plain(A, epilogue="axpy").save(path)
            loaded = sparserl.load(path, A, context=CONTEXT)
            self.assertEqual((loaded.epilogue, loaded.epilogue_user),
                             ("axpy", "const Dense vector[rows][N];Scalar factor;"))
            plain(A, epilogue="axpy", transposed_epilogue="clamp", transpose_too=True).save(path)
            loaded = sparserl.load(path, A, context=CONTEXT)
            self.assertEqual((loaded.epilogue, loaded.T.epilogue), ("axpy", "clamp"))
            y, lower, upper = matrix.vector(300), numpy.full(200, -0.5), numpy.full(200, 0.5)
            assert_allclose(loaded.T(y, user=(lower, upper)), numpy.clip(A.T @ y, lower, upper), rtol=1e-12, atol=1e-12)
            dense = sparserl.plan(A, op="spmm", cols=5, context=CONTEXT, expected_calls=0)
            dense.save(path)
            self.assertEqual(sparserl.load(path, A, context=CONTEXT).columns, 5)
            limited = sparserl.load(path, A, context=CONTEXT, memory_limit=1 << 30, check_pointers=False)
            self.assertEqual(limited.columns, 5)
            with self.assertRaises(OverflowError):
                sparserl.load(path, A, context=CONTEXT, memory_limit=-1)
            for order in ("strided", "column-major"):
                sparserl.plan(A, op="spmm", cols=5, dense=order, context=CONTEXT, expected_calls=0).save(path)
                self.assertEqual(sparserl.load(path, A, context=CONTEXT).dense, order)
            self.refused(Status.MISMATCH, "another pattern", sparserl.load, path, A[:299], context=CONTEXT)
            path.write_bytes(b"nothing")
            self.refused(Status.FILE, "no plan of SparseRL", sparserl.load, path, A, context=CONTEXT)
            self.refused(Status.FILE, "cannot be written", plan.save, Path(folder) / "no" / "a.plan")

    def test_compiled_ahead(self):
        with tempfile.TemporaryDirectory() as folder:
            with sparserl.Context(device=-1, policy="cost", cache_folder=folder) as context:
                # Of one column vectors are no wider than an element.
                kernels = sparserl.compile_ahead(numpy.float32, op="spmm", cols=1, context=context)
                kept = sorted(Path(folder).rglob("*.cubin"))
                self.assertEqual(len(kept), kernels)
                self.assertGreaterEqual(kernels, 28)
                for dtype in ("float32", numpy.dtype("f4"), "f4"):
                    self.assertEqual(sparserl.compile_ahead(dtype, "spmm", 1, context=context), kernels)
                sparserl.plan(A.astype("f4"), op="spmm", cols=1, context=context, expected_calls=0).close()
                self.assertEqual(sorted(Path(folder).rglob("*.cubin")), kept)
        for dtype in (numpy.int32, "f16 or so", None, 8):
            with self.assertRaisesRegex(TypeError, "expected float16, bfloat16, float32 or float64"):
                sparserl.compile_ahead(dtype, context=CONTEXT)
        with self.assertRaisesRegex(TypeError, "expected a sparserl.Context"):
            sparserl.compile_ahead("f4", context=1)
        with self.assertRaisesRegex(ValueError, "expected op='spmv'"):
            sparserl.compile_ahead("f4", cols=3, context=CONTEXT)
        self.refused(Status.INVALID_ARGUMENT, "EPILOGUE is softmax", sparserl.compile_ahead, "f4", context=CONTEXT,
                     epilogue="softmax")

    def refused(self, status, text, act, *arguments, **options):
        with self.assertRaises(sparserl.Error) as caught:
            act(*arguments, **options)
        self.assertIs(caught.exception.status, status)
        self.assertIn(text, caught.exception.text)
        self.assertIn(text, str(caught.exception))

    def test_room_behind_the_last_entry_is_no_entry(self):
        given = types.SimpleNamespace(
            indptr=A.indptr, indices=numpy.append(A.indices, [7, 8]), data=numpy.append(A.data, [numpy.nan, 2]),
            shape=A.shape)
        plan, x = plain(given, values_variable=True), matrix.vector(200)
        assert_allclose(plan @ x, A @ x, rtol=1e-13)
        plan.update(2 * A.data)
        assert_allclose(plan @ x, 2 * (A @ x), rtol=1e-13)

    def test_wrong_use(self):
        plan, x = plain(A), matrix.vector(200)
        # The library's refusals.
        self.refused(Status.UNSUPPORTED, "TRANSPOSE_TOO", lambda: plan.T @ matrix.vector(300))
        self.refused(Status.UNSUPPORTED, "VALUES_VARIABLE", plan.update, A.data)
        self.refused(Status.INVALID_ARGUMENT, "expected 0, 1 or -1", plain, A, measure=5)
        self.refused(Status.INVALID_ARGUMENT, "option of a context", plain, A, policy="cost")
        self.refused(Status.EPILOGUE, "", plain, A, epilogue_source="no CUDA")
        self.refused(Status.EPILOGUE, "of products with the transpose", plain, A, transpose_too=True,
                     transposed_epilogue_source="no CUDA")
        self.refused(Status.INVALID_ARGUMENT, "set SPARSERL_OPTION_TRANSPOSE_TOO = 1", plain, A,
                     transposed_epilogue="none")
        self.refused(Status.MEMORY_LIMIT, "may take 100", plain, A, memory_limit=100)
        unsorted = scipy.sparse.csr_array((A.data.copy(), A.indices[::-1].copy(), A.indptr.copy()), shape=A.shape)
        self.refused(Status.INVALID_MATRIX, "A.sum_duplicates()", plain, unsorted)
        unsorted.sum_duplicates()
        assert_allclose(plain(unsorted) @ x, unsorted @ x, rtol=1e-13)
        unsorted.data[3] = numpy.nan
        with self.assertRaises(sparserl.Error) as caught:
            plain(unsorted)
        self.assertNotIn("sum_duplicates", caught.exception.text)
        self.refused(Status.NULL_POINTER, "y is NULL", plan, x, beta=1)
        square = plain(A[:200])
        self.refused(Status.INVALID_ARGUMENT, "same vector", square, x, out=x)
        both = matrix.vector(301)
        self.refused(Status.INVALID_ARGUMENT, "y and out overlap", plan, x, both[:-1], beta=1, out=both[1:])
        own = plain(A, epilogue_source="__device__ Scalar epilogue(unsigned, Scalar product, Scalar, const User&) "
                                       "{ return product; }")
        self.refused(Status.NO_DEVICE, "the epilogue is CUDA C", own, x)
        self.refused(Status.NULL_POINTER, "user is NULL", plain(A, epilogue="bias"), x)
        for user in ((), (x, x), (x,), (1.0,)):
            with self.assertRaisesRegex((TypeError, ValueError), "user"):
                plain(A, epilogue="bias")(x, user=user)
        with self.assertRaisesRegex(ValueError, "user has 1 members, and the epilogue takes 0: none"):
            plan(x, user=(x,))
        self.refused(Status.INVALID_ARGUMENT, "COLUMNS: expected 1 to 1048576", sparserl.plan, A, op="spmm", cols=0)
        for offsets in ([-2**31, 0, 1, 3], [2**30, 2**30 + 1, 2**30 + 2, 2**30 + 3], [0, 2, 1, 3]):
            wild = scipy.sparse.identity(3, format="csr")
            wild.indptr[:] = offsets
            self.refused(Status.INVALID_MATRIX, "", plain, wild)
        strided = plain(A, op="spmm", cols=3, dense="strided")
        buffer = numpy.zeros((300, 6))
        y = numpy.lib.stride_tricks.as_strided(buffer, (300, 3), (24, 8))
        self.refused(Status.INVALID_ARGUMENT, "y and out overlap", strided, matrix.vector(600).reshape(200, 3), y,
                     beta=1, out=buffer[:, :3])
        plan.close()
        self.refused(Status.INVALID_HANDLE, "destroyed", lambda: plan @ x)
        self.refused(Status.INVALID_HANDLE, "destroyed", lambda: plan.why)
        # What the package sees by itself.
        plan, read_only = plain(A), numpy.zeros(300)
        read_only.flags.writeable = False
        for error, text, act in [
            (ValueError, "shape", lambda: plan @ x[1:]),
            (ValueError, "shape", lambda: plan @ numpy.ones((200, 2))),
            (ValueError, "shape", lambda: plan(x, out=numpy.empty(299))),
            (ValueError, "read-only", lambda: plan(x, out=read_only)),
            (ValueError, "contiguous", lambda: plan @ matrix.vector(400)[::2]),
            (TypeError, "holds f4", lambda: plan @ x.astype("f4")),
            (TypeError, "expected an array", lambda: plan @ list(x)),
            (TypeError, "no option 'colour'", lambda: plain(A, colour=1)),
            (OverflowError, "expected_calls", lambda: sparserl.plan(A, context=CONTEXT, expected_calls=-1)),
            (TypeError, "expected_calls is 'many'", lambda: sparserl.plan(A, context=CONTEXT, expected_calls="many")),
            (TypeError, "deadline is 'soon'", lambda: plain(A, deadline="soon")),
            (TypeError, "", lambda: plan(x, alpha=None)),
            (TypeError, "", lambda: plan(x, alpha="2")),
            (ValueError, "null byte", lambda: plan.save("a\0.plan")),
            (ValueError, "null byte", lambda: sparserl.load("a\0.plan", A, context=CONTEXT)),
            (ValueError, "expected two sizes of 64 bits", lambda: plain(types.SimpleNamespace(
                indptr=A.indptr, indices=A.indices, data=A.data, shape=(300, 2**64 + 200)))),
            (TypeError, "give A.tocsr", lambda: plain(A.tocsc())),
            (TypeError, "the matrix is a dense array: .* scipy.sparse.csr_array", lambda: plain(A.toarray())),
            (TypeError, "the matrix is None: expected one in CSR, of SciPy, CuPy or PyTorch", lambda: plain(None)),
            (TypeError, "the matrix is 'A': expected one in CSR", lambda: plain("A")),
            (TypeError, "the matrix is 'a.plan': expected one in CSR", lambda: sparserl.load(A, "a.plan")),
            (TypeError, "the matrix is of <class 'list'>: expected one in CSR", lambda: plain(A.toarray().tolist())),
            (TypeError, "the matrix is of <class 'sparserl.*Plan'>: expected one in CSR", lambda: plain(plan)),
            (TypeError, "the matrix has the shape None: expected two whole numbers", lambda: plain(
                types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=A.data, shape=None))),
            (TypeError, "context is 'cost': expected a sparserl.Context", lambda: sparserl.plan(A, context="cost")),
            (TypeError, "context is 0: expected a sparserl.Context", lambda: sparserl.load("a.plan", A, context=0)),
            (ValueError, "the matrix has 1 dimensions: expected 2", lambda: plain(scipy.sparse.csr_array(x))),
            (ValueError, r"the values have the shape \(\d+, 1\): expected", lambda: plain(
                types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=A.data.reshape(-1, 1), shape=A.shape))),
            (TypeError, r"a mask hides elements of x: .* by filled\(0\)", lambda: plan @ numpy.ma.masked_greater(x, 0.5)),
            (TypeError, "a mask hides elements of values", lambda: plain(types.SimpleNamespace(
                indptr=A.indptr, indices=A.indices, data=numpy.ma.masked_greater(A.data, 0.5), shape=A.shape))),
            (TypeError, "x is not in the byte order", lambda: plan @ x.astype(">f8")),
            (TypeError, "values are i8", lambda: plain(A.astype(numpy.int64))),
            (TypeError, "no stream", lambda: plan(x, stream="first")),
            (ValueError, "a number of columns", lambda: sparserl.plan(A, op="spmm")),
            (ValueError, "a number of columns", lambda: sparserl.plan(A, cols=8)),
            (ValueError, r"expected \(200, 8\)", lambda: plain(A, op="spmm", cols=8) @ x),
            (ValueError, "contiguous", lambda: plain(A, op="spmm", cols=8) @ numpy.ones((8, 200)).T),
        ]:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                act()

    def test_handles_end_with_their_plans(self):
        with plain(A) as plan:
            number = plan._kernels.number
        plan.close()
        other = plain(A)
        numbers, side = [number, other._kernels.number], other.T
        del other
        gc.collect()
        alive = _library.library.sparserl_plan_wait
        self.assertEqual(alive(numbers[0]), Status.INVALID_HANDLE)
        self.assertEqual(alive(numbers[1]), Status.SUCCESS)
        # Its last view.
        del side
        gc.collect()
        self.assertEqual(alive(numbers[1]), Status.INVALID_HANDLE)

    def test_plans_do_not_go_to_forks(self):
        plan, x = plain(A), matrix.vector(200)
        child = os.fork()
        if child == 0:
            refusals = [lambda: plan.why, lambda: plan @ x, lambda: plain(A), lambda: sparserl.Context(device=-1)]
            answer = 0
            for act in refusals:
                try:
                    act()
                    answer = 1
                except RuntimeError as error:
                    answer = answer or "forked" not in str(error)
            del plan, refusals, act
            gc.collect()
            os._exit(answer)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        assert_allclose(plan @ x, A @ x, rtol=1e-13)

    def test_the_context_talks_and_ends(self):
        lines = []
        with sparserl.Context(device=-1, policy="cost", log=lines.append) as context:
            plan = sparserl.plan(A, context=context)
        self.assertTrue(any("chosen by" in line for line in lines), lines)
        assert_allclose(plan @ matrix.vector(200), A @ matrix.vector(200), rtol=1e-13)
        self.refused(Status.INVALID_HANDLE, "context", sparserl.plan, A, context=context)
        with self.assertRaisesRegex(TypeError, "no option"):
            sparserl.Context(colour=1)
        for log in (5, "log", False):
            with self.assertRaisesRegex(TypeError, f"log is {log!r}: expected a function"):
                sparserl.Context(device=-1, log=log)

    def test_nothing_is_copied_that_has_a_handle(self):
        plan, x = plain(A, transpose_too=True), matrix.vector(200)
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "^a context is not copied .* make another by sparserl.Context"):
                act(CONTEXT)
            for side in (plan, plan.T, {"plan": plan}["plan"]):
                with self.assertRaisesRegex(TypeError, r"^a plan is not copied .* plan.save\(path\).*sparserl.load"):
                    act(side)
        gc.collect()
        assert_allclose(plan @ x, A @ x, rtol=1e-13)
        assert_allclose(plain(A) @ x, A @ x, rtol=1e-13)


class Ends(unittest.TestCase):
    """The end of a process, which nobody but another one can look at."""

    def ran(self, before, after):
        """What a process prints that does something before the package is imported, and after it has a plan of a matrix
        for several threads."""
        lines = ["import atexit, sys, threading", *before, "import matrix, numpy, sparserl",
                 "log = (lambda line: None) if 'log' in sys.argv else None",
                 "context = sparserl.Context(device=-1, policy='cost', log=log)",
                 "A, x = matrix.random(4_000, 3_000, 300_000), matrix.vector(3_000)",
                 "plan = sparserl.plan(A, context=context, expected_calls=0)",
                 "def multiply(): print(numpy.allclose(plan @ x, A @ x))", *after]
        for arguments in ([], ["log"]):
            status, printed, errors = process.ended(lines, *arguments)
            self.assertEqual((status, errors), (0, ""))
            yield printed

    def test_products_of_handlers(self):
        # Handlers are called in turn, the last one first.
        for printed in self.ran(["atexit.register(lambda: multiply())"], ["atexit.register(multiply)"]):
            self.assertEqual(printed, ["True"] * 2)
        for printed in self.ran(["atexit.register(lambda: multiply())"], ["multiply()", "atexit.register(multiply)"]):
            self.assertEqual(printed, ["True"] * 3)

    def test_products_of_threads(self):
        wait = "threading.main_thread().join()"
        own = f"threading.Thread(target=lambda: [{wait}, *map(lambda _: multiply(), range(3))]).start()"
        for printed in self.ran([], ["multiply()", own]):
            self.assertEqual(printed, ["True"] * 4)
        # They are stopped where they are.
        forever = ["def work():", "    while True: plan @ x", "multiply()"]
        start = "[threading.Thread(target=work, daemon=True).start() for _ in range(4)]"
        for printed in self.ran([], [*forever, start]):
            self.assertEqual(printed, ["True"])

    def test_plans_that_are_left(self):
        # In modules and a cycle, and used once more when Python is all but gone.
        left = ["class Last:", "    def __del__(self):", "        try: self.plan @ self.x",
                "        except Exception: pass", "last = sys.last = Last()",
                "last.plan, last.x, last.last = plan, x, last", "multiply()"]
        for printed in self.ran([], left):
            self.assertEqual(printed, ["True"])

    def test_logs_end_before_python(self):
        late = ["def late():", "    context.close()", "    for act in (lambda: sparserl.plan(A, context=context),",
                "                lambda: sparserl.Context(device=-1, log=print)):", "        try: act()",
                "        except Exception as error: print(type(error).__name__)", "    multiply()",
                "atexit.register(late)"]
        for printed in self.ran(late, []):
            self.assertEqual(printed, ["Error", "RuntimeError", "True"])


class Header(unittest.TestCase):
    def test_nothing_of_it_is_missed(self):
        functions = set(re.findall(r"\b(sparserl_\w+)\(", re.sub("//.*", "", _library.HEADER)))
        self.assertGreaterEqual(len(functions), 18)
        for name in functions:
            self.assertIsNotNone(getattr(_library.library, name).argtypes, name)
        self.assertEqual(list(Status), list(range(len(Status))))
        for status in Status:
            self.assertNotEqual(_library.library.sparserl_status_text(status), b"unknown status")
        kinds = {re.match(r"\w+", option.comment)[0] for option in _library.OPTIONS.values()}
        self.assertLessEqual(kinds, {"Text", "sparserl_log", *_library.NUMBERS})
        self.assertEqual(len(_library.Csr._fields_), 12)
        self.assertRegex(sparserl.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
