"""The package on a GPU, with PyTorch, and with CuPy and JAX where they are. Needs SciPy.
`SPARSERL_LIBRARY=path/to/libsparserl.so PYTHONPATH=ffi/python python3 ffi/python/tests/device.py`
"""

import gc
import importlib.util
import os
import statistics
import sys
import threading
import time
import unittest
from pathlib import Path

import matrix
import numpy
import torch

import sparserl

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
import gcn

A = matrix.random(5_000, 4_000, 100_000)


def has(module):
    return importlib.util.find_spec(module) is not None


def plan_of(A, **options):
    # Nothing is swapped, unless a test says so.
    return sparserl.plan(A, **{"expected_calls": 0, **options})


def vector(length, dtype=numpy.float64, seed=2):
    return torch.tensor(matrix.vector(length, dtype, seed), device="cuda")


def check(y, expected, tolerance=1e-11):
    torch.testing.assert_close(y.cpu(), torch.as_tensor(expected), rtol=tolerance, atol=tolerance)


def seconds_on_the_gpu(acts):
    """Of a call of each, the median of rounds in which they take turns."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    count, rounds = 200, []
    for _ in range(6):
        rounds.append([])
        for act in acts:
            # The host is through with all calls before the first begins.
            torch.cuda._sleep(100_000_000)
            begin.record()
            for _ in range(count):
                act()
            end.record()
            end.synchronize()
            rounds[-1].append(1e-3 * begin.elapsed_time(end) / count)
    # The first warms up.
    return [statistics.median(of_one) for of_one in zip(*rounds[1:])]


class OnGpu(unittest.TestCase):
    def test_all_arguments_of_both_sides(self):
        for dtype, tolerance in ((numpy.float64, 1e-11), (numpy.float32, 1e-3)):
            typed = A.astype(dtype)
            plan = plan_of(typed, transpose_too=True)
            for side, reference in ((plan, typed), (plan.T, typed.T)):
                rows, cols = side.shape
                x, y = vector(cols, dtype), vector(rows, dtype, seed=3)
                product, old = reference @ x.cpu().numpy(), y.cpu().numpy()
                check(side @ x, product, tolerance)
                check(side(x, y, 2, -3), 2 * product - 3 * old, tolerance)
                self.assertIs(side(x, y, 2, -3, out=y), y)
                check(y, 2 * product - 3 * old, tolerance)

    def test_the_better_kernel(self):
        plan = sparserl.plan(A, expected_calls=10_000_000, deadline=20, transpose_too=True)
        x, y = vector(4_000), vector(5_000)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            check(plan @ x, A @ x.cpu().numpy())
        plan.wait()
        check(plan @ x, A @ x.cpu().numpy())
        check(plan.T @ y, A.T @ y.cpu().numpy())
        self.assertGreater(plan.calls, 2)
        self.assertIsNotNone(plan.planning_seconds)
        self.assertEqual(plan.device, 0)
        print(f"{plan.why}; {plan.measured_seconds} s, cuSPARSE {plan.cusparse_seconds} s", file=sys.stderr)

    def test_matrices_and_values_from_the_device(self):
        csr = torch.tensor(A.toarray(), device="cuda").to_sparse_csr()
        plan = plan_of(csr, values_variable=True, transpose_too=True)
        x, y = vector(4_000), vector(5_000)
        check(plan @ x, A @ x.cpu().numpy())
        changed = A.copy()
        for seed, place in ((7, lambda values: torch.tensor(values, device="cuda")), (8, numpy.copy)):
            changed.data[:] = matrix.vector(A.nnz, seed=seed)
            plan.update(place(changed.data))
            check(plan @ x, changed @ x.cpu().numpy())
            check(plan.T @ y, changed.T @ y.cpu().numpy())

    def test_the_current_stream(self):
        plan, x = plan_of(A), vector(4_000)
        stream, expected = torch.cuda.Stream(), A @ x.cpu().numpy()
        plan @ x
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            # Long enough for a product on another stream to be seen too early.
            late = torch.zeros_like(x)
            torch.cuda._sleep(100_000_000)
            late.copy_(x)
            y = plan @ late
            done = torch.cuda.Event()
            done.record()
        self.assertFalse(done.query())
        stream.synchronize()
        check(y, expected)
        # It waits for what was asked of the current stream, and the result is its own.
        late.zero_()
        torch.cuda._sleep(100_000_000)
        late.copy_(x)
        y = plan(late, stream=stream.cuda_stream)
        stream.synchronize()
        check(y, expected)

    def test_graphs(self):
        plan = plan_of(A, transpose_too=True, values_variable=True)
        x, values = vector(4_000), torch.tensor(A.data, device="cuda")
        plan.T @ (plan @ x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            plan.update(values)
            y = plan(plan.T @ (plan @ x), alpha=0.5)
        del plan
        gc.collect()
        for scale in (2.0, 3.0):
            values.copy_(torch.tensor(scale * A.data))
            graph.replay()
            torch.cuda.synchronize()
            expected = 0.5 * (A @ (A.T @ (A @ x.cpu().numpy()))) * scale**3
            torch.testing.assert_close(y.cpu(), torch.as_tensor(expected), rtol=1e-9, atol=1e-9 * abs(expected).max())

    def test_epilogues(self):
        x, lower = vector(4_000), torch.full((5_000,), -0.5, device="cuda", dtype=torch.float64)
        upper = lower + 1.5
        check(plan_of(A, epilogue="relu") @ x, numpy.maximum(A @ x.cpu().numpy(), 0))
        clamped = plan_of(A, epilogue="clamp")(x, user=(lower, upper))
        check(clamped, numpy.clip(A @ x.cpu().numpy(), -0.5, 1))
        source = ("__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) "
                  "{ return product * user.scale[row] + user.shift; }")
        plan = plan_of(A, epilogue_source=source, epilogue_user="Scalar shift; const Scalar scale[rows];")
        check(plan(x, user=(2.0, lower)), -0.5 * (A @ x.cpu().numpy()) + 2)
        # Of the transposed matrix, too, and by itself.
        y = vector(5_000)
        product = A.T @ y.cpu().numpy()
        for transposed, expected in (("none", product), ("relu", numpy.maximum(product, 0))):
            plan = plan_of(A, epilogue="clamp", transpose_too=True, transposed_epilogue=transposed)
            check(plan.T @ y, expected)
            check(plan(x, user=(lower, upper)), numpy.clip(A @ x.cpu().numpy(), -0.5, 1))

    def test_nothing_leaks_or_is_freed_early(self):
        x, large = vector(4_000), matrix.random(4_000, 4_000, 2_000_000)
        expected = large @ x.cpu().numpy()

        def once():
            plan = plan_of(large)
            torch.cuda._sleep(20_000_000)
            return plan @ x  # the plan goes before the product begins

        once()
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        for _ in range(5):
            check(once(), expected)
        torch.cuda.synchronize()
        self.assertLess(free - torch.cuda.mem_get_info()[0], 16 << 20)

    def test_threads(self):
        # Of plain CSR by rows, which needs no workspace.
        plan, x, wrong = plan_of(matrix.even(5_000, 4_000, 20)).wait(), vector(4_000), []
        expected = (plan @ x).cpu()

        def work():
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(100):
                    if not torch.equal((plan @ x).cpu(), expected):
                        wrong.append(1)

        torch.cuda.synchronize()
        self.assertEqual(plan.workspace_bytes, 0)
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(wrong, [])

    def test_wrong_use(self):
        plan, x = plan_of(A), vector(4_000)
        with self.assertRaisesRegex(ValueError, "x is on the host, and the plan is for GPU 0"):
            plan @ x.cpu()
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            plan @ vector(8_000)[::2]
        with self.assertRaisesRegex(sparserl.Error, "x and z are the same"):
            plan_of(A[:4_000])(x, out=x)
        check(plan @ x, A @ x.cpu().numpy())

    def test_overhead(self):
        plan, x = plan_of(A).wait(), vector(4_000)
        out, count = torch.empty(5_000, device="cuda", dtype=torch.float64), 5_000
        for what, act in (("plan(x, out=out)", lambda: plan(x, out=out)), ("plan @ x", lambda: plan @ x)):
            act()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                act()
            seconds = (time.perf_counter() - start) / count
            torch.cuda.synchronize()
            print(f"{what}: {1e6 * seconds:.1f} us of the host", file=sys.stderr)
            self.assertLess(seconds, 1e-3)

    def test_graphs_beside_torch_sparse(self):
        for name, (nodes, edges) in gcn.graphs(100_000).items():
            A = gcn.normalised(nodes, edges)
            arrays = [torch.tensor(array) for array in (A.indptr, A.indices, A.data)]
            csr = torch.sparse_csr_tensor(*arrays, size=A.shape, device="cuda")
            for cols in (32, 16):
                plan = sparserl.plan(A, op="spmm", cols=cols, transpose_too=True).wait()
                x = torch.randn(nodes, cols, device="cuda")
                out = torch.empty_like(x)
                # A is symmetric.
                for side in (plan, plan.T):
                    torch.testing.assert_close(side(x, out=out), csr @ x, rtol=1e-4, atol=1e-5)
                    own, other = seconds_on_the_gpu([lambda: side(x, out=out), lambda: csr @ x])
                    print(f"{name}, {cols} columns: {1e6 * own:.1f} us, torch.sparse {1e6 * other:.1f} us, predicted "
                          f"{1e6 * side.predicted_seconds:.1f} us; {side.why}\n{side.program}", file=sys.stderr)

    @unittest.skipUnless(has("cupy"), "needs CuPy")
    def test_cupy(self):
        import cupy
        import cupyx.scipy.sparse

        plan = plan_of(cupyx.scipy.sparse.csr_matrix(A))
        x = cupy.asarray(matrix.vector(4_000))
        cupy.cuda.Device().synchronize()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            y = plan @ x
        stream.synchronize()
        self.assertIsInstance(y, cupy.ndarray)
        numpy.testing.assert_allclose(y.get(), A @ x.get(), rtol=1e-10, atol=1e-10)
        self.assertIn(stream.ptr, plan._kernels.handle.uses.streams)

    @unittest.skipUnless(has("jax"), "needs JAX")
    def test_jax(self):
        # It takes most of the memory otherwise.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        jax.config.update("jax_enable_x64", True)
        x = jax.device_put(matrix.vector(4_000), jax.devices("gpu")[0])
        out = torch.empty(5_000, device="cuda", dtype=torch.float64)
        x.block_until_ready()
        check(plan_of(A)(x, out=out), A @ numpy.asarray(x))


if __name__ == "__main__":
    unittest.main()
