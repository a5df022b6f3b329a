"""What the package asks of a GPU, without one: on the driver of ffi/tests/c/driver.c, whose memory is the
host's and which keeps account. It multiplies by plain CSR in double precision. Needs SciPy, and the driver
where the loader finds it. `python3 on_driver.py`
"""

import contextlib
import ctypes
import gc
import itertools
import types
import unittest
import weakref
from unittest import mock

import matrix
import numpy
import process
import scipy.sparse
from numpy.testing import assert_allclose

import sparserl
from sparserl import Status, _arrays

driver = ctypes.CDLL("libcuda.so.1")
driver.driver_taken.restype = driver.driver_launches.restype = ctypes.c_long
driver.driver_stream.restype = ctypes.c_void_p
driver.driver_capture.argtypes = [ctypes.c_void_p, ctypes.c_int]
driver.driver_capture.restype = None
driver.driver_launched_with.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
driver.driver_waits.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
driver.driver_waits.restype = driver.driver_events.restype = driver.driver_uses_of_destroyed.restype = ctypes.c_long
driver.cuStreamDestroy_v2.argtypes = [ctypes.c_void_p]
STREAM, OTHER, ELSEWHERE = (driver.driver_stream(device) for device in (0, 0, 1))

A = matrix.random(300, 200, 2_000)
CONTEXT = sparserl.Context(policy="cost", device=0)


class Array:
    """An array in the driver's memory, as CuPy's: `host` is the same one."""

    def __init__(self, content, device=0, stream=None):
        context, self.address = ctypes.c_void_p(), ctypes.c_uint64()
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        driver.cuCtxPushCurrent_v2(context)
        assert driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(content.nbytes, 1))) == 0
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        memory = (ctypes.c_char * content.nbytes).from_address(self.address.value)
        self.host = numpy.frombuffer(memory, content.dtype).reshape(content.shape)
        self.host[:] = content
        self.interface = {"data": (self.address.value, False), "shape": content.shape, "typestr": content.dtype.str,
                          "version": 3, "stream": stream}

    @property
    def __cuda_array_interface__(self):
        return self.interface


class ByDlpack:
    """The same by DLPack, which knows no NumPy."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack_device__(self):
        return _arrays.CUDA, 0

    def __dlpack__(self, stream):
        self.streams.append(stream)
        return self.array.host.__dlpack__()


def empty(length, device=0):
    return Array(numpy.full(length, numpy.nan), device)


def lying(order, content):
    """An array in the driver's memory with gaps between rows or columns."""
    rows, cols = content.shape
    shape, part = ((rows, cols + 4), numpy.s_[:, 2:-2]) if order == "strided" else ((cols, rows + 3), numpy.s_[:, 1:-2])
    made = Array(numpy.full(shape, 7.0))
    made.host = made.host[part] if order == "strided" else made.host[part].T
    made.host[:] = content
    made.interface.update(data=(made.host.ctypes.data, False), shape=made.host.shape, strides=made.host.strides)
    return made


def aligned_room(size):
    """So many bytes, where CUDA would put them."""
    room = Array(numpy.zeros(size + 256, numpy.uint8))
    room.interface.update(data=(-(-room.address.value // 256) * 256, False), shape=(size,))
    return room


def plan_of(A, **options):
    return sparserl.plan(A, context=CONTEXT, expected_calls=0, **options)


class OnDriver(unittest.TestCase):
    def test_all_arguments_of_both_sides(self):
        plan = plan_of(A, transpose_too=True)
        for side, reference in ((plan, A), (plan.T, A.T)):
            rows, cols = side.shape
            x, y = Array(matrix.vector(cols)), Array(matrix.vector(rows, seed=3))
            old = y.host.copy()
            for stream in (None, STREAM):
                out = empty(rows)
                self.assertIs(side(x, out=out, stream=stream), out)
                assert_allclose(out.host, reference @ x.host, rtol=1e-12)
                side(x, y, 2, -3, out=out, stream=stream)
                assert_allclose(out.host, 2 * (reference @ x.host) - 3 * old, rtol=1e-12)
            side(x, y, 2, -3, out=y)
            assert_allclose(y.host, 2 * (reference @ x.host) - 3 * old, rtol=1e-12)

    def test_dense_matrices(self):
        # The driver multiplies by what it is told, the numbers of SPARSERL_F32, SPARSERL_F64 and SPARSERL_F16.
        for number, dtype in enumerate((numpy.float32, numpy.float64, numpy.float16)):
            driver.driver_multiply_as(number, 8)
            small = A.copy()
            small.data[:] = numpy.arange(A.nnz) % 3 - 1
            typed = types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=small.data.astype(dtype),
                                          shape=A.shape)
            plan = plan_of(typed, op="spmm", cols=8, transpose_too=True)
            for side, reference in ((plan, small), (plan.T, small.T)):
                rows, cols = side.shape
                x = Array((numpy.arange(8 * cols) % 4).reshape(cols, 8).astype(dtype))
                y = Array((numpy.arange(8 * rows) % 5).reshape(rows, 8).astype(dtype))
                expected = 2 * (reference @ x.host.astype(float)) - 3 * y.host
                for out in (Array(numpy.zeros((rows, 8), dtype)), y):
                    side(x, y, 2, -3, out=out, stream=STREAM)
                    numpy.testing.assert_array_equal(out.host, expected)
        driver.driver_multiply_as(1, 1)
        plan = plan_of(A, op="spmm", cols=8, epilogue="column_bias")
        x, out, bias = Array(numpy.zeros((200, 8))), Array(numpy.zeros((300, 8))), Array(numpy.zeros(8))
        before = driver.driver_launches()
        plan(x, out=out, user=(bias,))
        self.assertEqual(driver.driver_launches(), before + 1)
        for shape in ((200, 8), (300, 8), (300,)):
            with self.assertRaisesRegex(ValueError, r"expected \(8,\), for const Dense bias\[N\]"):
                plan(x, out=out, user=(Array(numpy.zeros(shape)),))

    def test_dense_matrices_as_they_lie(self):
        small = A.copy()
        small.data[:] = numpy.arange(A.nnz) % 3 - 1
        # Launches of a product, with C and D in one place.
        for order, launches in (("strided", 1), ("column-major", 4)):
            plan = plan_of(small, op="spmm", cols=8, dense=order, transpose_too=True)
            driver.driver_multiply_as(1, 8)
            for side, reference in ((plan, small), (plan.T, small.T)):
                rows, cols = side.shape
                x = lying(order, (numpy.arange(8 * cols) % 4).reshape(cols, 8).astype(float))
                y = lying(order, (numpy.arange(8 * rows) % 5).reshape(rows, 8).astype(float))
                expected = 2 * (reference @ x.host) - 3 * y.host
                before = driver.driver_launches()
                side(x, y, 2, -3, out=y, stream=STREAM)
                self.assertEqual(driver.driver_launches(), before + launches)
                numpy.testing.assert_array_equal(y.host, expected)
            driver.driver_multiply_as(1, 1)
        strided = plan_of(small, op="spmm", cols=8, dense="strided")
        x, out = lying("strided", numpy.ones((200, 8))), Array(numpy.zeros((300, 8)))
        x.interface.update(data=(x.interface["data"][0] + 8, False))
        # Aligned to its elements only.
        strided(x, out=out)
        x.interface.update(data=(x.interface["data"][0] + 4, False))
        with self.assertRaisesRegex(sparserl.Error, "b is not aligned to 8 bytes"):
            strided(x, out=out)
        fortran = lying("column-major", numpy.ones((200, 8)))
        with self.assertRaisesRegex(ValueError, "dense='column-major'"):
            strided(fortran, out=out)

    def test_matrices_and_values_from_the_device(self):
        class Csr:
            indptr, indices, data = Array(A.indptr.astype(numpy.int64)), Array(A.indices), Array(A.data)
            shape = A.shape

        plan = plan_of(Csr, values_variable=True)
        self.assertEqual(plan.device, 0)
        self.refused(Status.NO_DEVICE, sparserl.plan, Csr, context=sparserl.Context(policy="cost", device=-1))
        x, out, changed = Array(matrix.vector(200)), empty(300), A.copy()
        for seed, place in ((5, Array), (6, numpy.asarray)):
            changed.data[:] = matrix.vector(A.nnz, seed=seed)
            plan.update(place(changed.data))
            plan(x, out=out)
            assert_allclose(out.host, changed @ x.host, rtol=1e-12)

    def test_streams(self):
        plan, x, out = plan_of(A), Array(matrix.vector(200)), empty(300)

        class OfCore:
            def __cuda_stream__(self):
                return 0, STREAM

        class OfTorch:
            cuda_stream = STREAM

        class OfCupy:
            ptr = STREAM

        uses = plan._kernels.handle.uses
        self.assertEqual((uses.streams, uses.events), ({}, {}))
        for stream in (STREAM, OfCore(), OfTorch(), OfCupy()):
            plan(x, out=out, stream=stream)
        # Nothing keeps what is but a number.
        self.assertEqual((set(uses.streams), set(uses.events)), ({STREAM}, {STREAM}))
        # What the array says of itself, and the default stream.
        plan(Array(x.host, stream=OTHER), out=out)
        plan(x, out=out)
        self.assertEqual((set(uses.streams), set(uses.events)), ({STREAM, 0}, {STREAM, OTHER}))
        self.refused(Status.WRONG_DEVICE, plan, x, out=out, stream=ELSEWHERE)

    def test_streams_of_arrays(self):
        plan = plan_of(A, epilogue="axpy", values_variable=True)
        own, others = STREAM, [driver.driver_stream(0) for _ in range(4)]
        x, y, out, vector = [Array(matrix.vector(length), stream=stream)
                             for length, stream in zip((200, 300, 300, 300), others)]

        def waits(act):
            # A stream has nothing to wait for in its own events, which plans record anew behind the old ones.
            before = {pair: driver.driver_waits(*pair) for pair in itertools.permutations((own, *others), 2)}
            act()
            return {pair for pair, count in before.items() if driver.driver_waits(*pair) > count}

        # The stream that is given waits for those of the arrays, and who gives it orders the rest.
        product = lambda stream: plan(x, y, beta=1, out=out, user=(vector, 0.5), stream=stream)
        self.assertEqual(waits(lambda: product(own)), {(own, other) for other in others})
        # That of x and those of the others wait for each other.
        first, *rest = others
        both = {(first, other) for other in rest} | {(other, first) for other in rest}
        self.assertEqual(waits(lambda: product(None)), both)
        self.assertEqual(waits(lambda: plan.update(Array(A.data, stream=first), stream=own)), {(own, first)})
        room = aligned_room(4096)
        room.interface["stream"] = first
        self.assertEqual(waits(lambda: plan.set_workspace(room, stream=own)), {(own, first)})
        # Both are the default stream.
        x.interface["stream"], y.interface["stream"], out.interface["stream"] = None, 1, 1
        self.assertEqual(waits(lambda: plan(x, y, beta=1, out=out, user=(vector, 0.5))), set())
        self.assertEqual(driver.driver_waits(None, vector.interface["stream"]), 1)
        # An event would take a stream into the other's graph.
        x.interface["stream"] = first
        for captured in (own, first):
            driver.driver_capture(captured, 1)
            self.assertEqual(waits(lambda: product(own)), {(own, others[3])} - {(captured, others[3])})
            driver.driver_capture(captured, 0)

    def test_results_are_of_the_stream_that_is_given(self):
        class Ndarray(Array):
            device = contextlib.nullcontext()
            dtype = property(lambda self: self.host.dtype)

        current = [STREAM]

        @contextlib.contextmanager
        def as_current(handle):
            current.append(handle)
            yield
            current.pop()

        def made(length, dtype, order):
            asked.append(current[-1])
            return Ndarray(numpy.zeros(length, dtype), stream=current[-1])

        null = as_current(0)
        current_stream = lambda device: types.SimpleNamespace(ptr=current[-1])
        cuda = types.SimpleNamespace(ExternalStream=as_current, Stream=types.SimpleNamespace(null=null),
                                     get_current_stream=current_stream)
        cupy = types.SimpleNamespace(ndarray=Ndarray, cuda=cuda, empty=made)
        plan, x, asked = plan_of(A), Ndarray(matrix.vector(200), stream=STREAM), []
        Ndarray.device.id = 0
        with mock.patch.dict("sys.modules", cupy=cupy):
            for stream in (None, OTHER, 0):
                before = driver.driver_waits(stream, STREAM)
                assert_allclose(plan(x, stream=stream).host, A @ x.host, rtol=1e-12)
                # It waits for x, and nobody for what is new.
                self.assertEqual(driver.driver_waits(stream, STREAM) - before, stream is not None)
                self.assertEqual(driver.driver_waits(STREAM, stream), 0)
        self.assertEqual(asked, [STREAM, OTHER, 0])

    def test_streams_that_were_destroyed(self):
        gc.collect()
        x, out, events = Array(matrix.vector(200)), empty(300), driver.driver_events()
        taken, before = driver.driver_taken(), driver.driver_uses_of_destroyed()

        class ExternalStream:
            def __init__(self, handle):
                self.ptr = handle

        for of_handle in (lambda handle: handle, ExternalStream):
            plan = plan_of(A, values_variable=True)
            stream = driver.driver_stream(0)
            plan(x, out=out, stream=of_handle(stream))
            plan(x, out=out, stream=of_handle(stream))
            self.assertEqual(driver.driver_events(), events + 1)
            driver.cuStreamDestroy_v2(stream)
            # Products are waited for, and not by the stream, also while another is captured.
            plan.update(A.data, stream=STREAM)
            driver.driver_capture(OTHER, 1)
            plan.close()
            driver.driver_capture(OTHER, 0)
            del plan
        plan = plan_of(A)
        stream = driver.driver_stream(0)
        x.interface["stream"] = stream
        plan(x, out=out)
        driver.cuStreamDestroy_v2(stream)
        del plan
        self.assertEqual(driver.driver_uses_of_destroyed(), before)
        # All is given back, and the three streams.
        self.assertEqual((driver.driver_events(), driver.driver_taken()), (events, taken - 3))

    def test_workspaces(self):
        # A long row, which several threads share.
        arrow = scipy.sparse.eye_array(20_000, format="lil")
        arrow[0] = 1
        options = {"context": CONTEXT, "measure": 0, "expected_calls": 100_000_000}
        plan = sparserl.plan(arrow.tocsr(), **options).wait()
        x, out, needed = Array(numpy.ones(20_000)), empty(20_000), plan.workspace_bytes
        self.assertGreater(needed, 0)
        room = aligned_room(needed)
        address = room.interface["data"][0]
        for workspace, is_used in ((None, 0), (room, 1), (None, 0)):
            plan.set_workspace(workspace, stream=STREAM)
            self.assertIs(workspace is None, plan._kernels.handle.uses.workspaces[STREAM] is None)
            for stream, is_own in ((STREAM, 1), (OTHER, 0)):
                plan(x, out=out, stream=stream)
                self.assertEqual(driver.driver_launched_with(address, needed) > 0, is_used * is_own)
        with self.assertRaisesRegex(TypeError, "workspace has 1 dimensions of f8: expected bytes"):
            plan.set_workspace(x)
        with self.assertRaisesRegex(ValueError, "workspace is on the host"):
            plan.set_workspace(numpy.zeros(needed, numpy.uint8))
        room.interface["shape"] = (needed - 256,)
        plan.set_workspace(room)
        self.refused(Status.INVALID_ARGUMENT, plan, x, out=out)
        # The default stream has two handles.
        plan.set_workspace(None, stream=1)
        plan(x, out=out)
        self.assertEqual(plan._kernels.handle.uses.workspaces, {STREAM: None, 0: None})

    def test_dlpack(self):
        plan, x, out = plan_of(A), Array(matrix.vector(200)), empty(300)
        given = ByDlpack(x)
        plan(given, out=ByDlpack(out), stream=STREAM)
        assert_allclose(out.host, A @ x.host, rtol=1e-12)
        plan(given, out=out)
        # Their libraries order what they write by the stream, of which the default one is called 1.
        self.assertEqual(given.streams, [STREAM, 1])

    def refused(self, status, act, *arguments, **options):
        with self.assertRaises(sparserl.Error) as caught:
            act(*arguments, **options)
        self.assertIs(caught.exception.status, status)

    def test_wrong_use(self):
        plan, x, out = plan_of(A), Array(matrix.vector(200)), empty(300)
        before = driver.driver_launches()
        with self.assertRaisesRegex(ValueError, "x is on the host, and the plan is for GPU 0"):
            plan(x.host, out=out)
        with self.assertRaisesRegex(ValueError, "out is on the host"):
            plan(x, out=out.host)
        with self.assertRaisesRegex(TypeError, "give the result's as out="):
            plan @ x
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            x.interface["strides"] = (16,)
            plan(x, out=out)
        del x.interface["strides"]
        x.interface["typestr"] = ">f8"
        with self.assertRaisesRegex(TypeError, "x is not in the byte order"):
            plan(x, out=out)
        x.interface["typestr"], x.interface["mask"] = "<f8", x
        with self.assertRaisesRegex(TypeError, "a mask hides elements of x"):
            plan(x, out=out)
        del x.interface["mask"]
        self.refused(Status.WRONG_DEVICE, plan, empty(200, device=1), out=out)
        self.refused(Status.NULL_POINTER, plan, x, out=out, beta=1)
        # It says more of itself than there is.
        x.interface["data"] = (x.address.value + 8, False)
        self.refused(Status.INVALID_ARGUMENT, plan, x, out=out)
        self.assertEqual(driver.driver_launches(), before)

    def test_epilogues(self):
        plan = plan_of(A, epilogue="axpy")
        x, vector, out = Array(matrix.vector(200)), Array(matrix.vector(300)), empty(300)
        before = driver.driver_launches()
        plan(x, out=out, user=(vector, 0.5))
        self.assertEqual(driver.driver_launches(), before + 1)
        block = plan._user_block((vector, 0.5), _arrays.Stream(0))[0]._obj
        self.assertEqual((ctypes.sizeof(block), block.member0, block.member1), (16, vector.address.value, 0.5))
        self.refused(Status.NULL_POINTER, plan, x, out=out)
        with self.assertRaisesRegex(TypeError, r"user\[0\] holds f4: expected f8"):
            plan(x, out=out, user=(Array(numpy.zeros(300, "f4")), 0.5))
        with self.assertRaisesRegex(ValueError, r"user\[0\] has the shape \(299,\): expected \(300,\)"):
            plan(x, out=out, user=(Array(numpy.zeros(299)), 0.5))
        # A block that is shorter than the one that is read, or has something else in its places.
        for user in ((), (vector,), (vector, 0.5, 0.5)):
            with self.assertRaisesRegex(ValueError, f"user has {len(user)} members, and the epilogue takes 2"):
                plan(x, out=out, user=user)
        with self.assertRaisesRegex(TypeError, r"user\[0\] is a number: expected an array, for const Dense vector"):
            plan(x, out=out, user=(0.5, vector))
        with self.assertRaisesRegex(TypeError, r"user\[1\] is an array: expected a number, for Scalar factor"):
            plan(x, out=out, user=(vector, vector))
        for options in ({}, {"epilogue": "relu"}):
            with self.assertRaisesRegex(ValueError, "the epilogue takes 0: none"):
                plan_of(A, **options)(x, out=out, user=(vector,))
        self.assertEqual(driver.driver_launches(), before + 1)
        plan_of(A, epilogue="relu")(x, out=out, user=())
        # Sums are of another type than dense operands, and rows those of the transposed matrix.
        half = types.SimpleNamespace(indptr=A.indptr, indices=A.indices, data=A.data.astype("f2"), shape=A.shape)
        y, back = Array(numpy.zeros(300, "f2")), Array(numpy.zeros(200, "f2"))
        dot = plan_of(half, epilogue="dot_terms", transpose_too=True)
        dot.T(y, out=back, user=(Array(numpy.zeros(200, "f2")), Array(numpy.zeros(200, "f4"))))
        with self.assertRaisesRegex(TypeError, r"user\[1\] holds f2: expected f4, for Scalar terms\[rows\]\[N\]"):
            dot.T(y, out=back, user=(back, Array(numpy.zeros(200, "f2"))))
        terms = Array(numpy.zeros(200, "f4"))
        terms.interface["data"] = (terms.address.value, True)
        with self.assertRaisesRegex(ValueError, r"user\[1\] is read-only"):
            dot.T(y, out=back, user=(back, terms))

    def test_epilogues_of_sides(self):
        plan = plan_of(A, epilogue="axpy", transpose_too=True, transposed_epilogue_user="Scalar shift",
                       transposed_epilogue_source="""
            __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {
              return product + old + user.shift;
            }""")
        x, y, out, back = Array(matrix.vector(200)), Array(matrix.vector(300)), empty(300), empty(200)
        before = driver.driver_launches()
        plan(x, out=out, user=(y, 0.5))
        plan.T(y, out=back, user=(0.25,))
        self.assertEqual(driver.driver_launches(), before + 2)
        block = plan.T._user_block((0.25,), _arrays.Stream(0))[0]._obj
        self.assertEqual((ctypes.sizeof(block), block.member0), (8, 0.25))
        for side, operand, result, user in ((plan, x, out, (0.25,)), (plan.T, y, back, (x, 0.5))):
            with self.assertRaisesRegex(ValueError, f"user has {len(user)} members, and the epilogue takes"):
                side(operand, out=result, user=user)
            self.refused(Status.NULL_POINTER, side, operand, out=result)
        self.assertEqual(driver.driver_launches(), before + 2)
        plan = plan_of(A, epilogue="axpy", transpose_too=True, transposed_epilogue="none")
        plan.T(y, out=back)
        self.assertEqual(driver.driver_launches(), before + 3)

    def test_epilogues_take_numbers_in_device_memory(self):
        plan = plan_of(A, epilogue_user="const Scalar step[1]", epilogue_source="""
            __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {
              return old + *user.step * product;
            }""")
        x, out, before = Array(matrix.vector(200)), empty(300), driver.driver_launches()
        plan(x, out=out, user=(Array(numpy.ones(1)),))
        self.assertEqual(driver.driver_launches(), before + 1)
        with self.assertRaisesRegex(ValueError, r"user\[0\] has the shape \(2,\): expected \(1,\), for const Scalar step"):
            plan(x, out=out, user=(Array(numpy.ones(2)),))
        with self.assertRaisesRegex(TypeError, r"user\[0\] is a number: expected an array, for const Scalar step\[1\]"):
            plan(x, out=out, user=(0.5,))

    def test_nothing_is_freed_that_a_graph_or_a_stream_may_use(self):
        gc.collect()
        # A stream of somebody's who keeps it.
        kept = types.SimpleNamespace(ptr=STREAM)
        x, out, workspace = Array(matrix.vector(200)), empty(300), aligned_room(4096)
        taken = driver.driver_taken()
        # Done with: freed at once.
        plan = plan_of(A)
        plan(x, out=out, stream=kept)
        self.assertGreater(driver.driver_taken(), taken)
        del plan
        self.assertEqual(driver.driver_taken(), taken)
        # Something else is captured on its stream by now: freed when that is over.
        plan = plan_of(A)
        plan(x, out=out, stream=kept)
        own = driver.driver_taken()
        driver.driver_capture(STREAM, 1)
        with self.assertRaisesRegex(RuntimeError, "captured"):
            plan.close()
        del plan
        self.assertEqual(driver.driver_taken(), own)
        driver.driver_capture(STREAM, 0)
        with plan_of(A):
            self.assertEqual(driver.driver_taken(), own)
        self.assertEqual(driver.driver_taken(), taken)
        # A graph has it: freed by `close` alone, and so is what the graph writes to.
        plan = plan_of(A)
        plan.set_workspace(workspace, stream=STREAM)
        driver.driver_capture(STREAM, 1)
        plan(x, out=out, stream=kept)
        driver.driver_capture(STREAM, 0)
        number, own = plan._kernels.number, driver.driver_taken()
        written = weakref.ref(workspace)
        del plan, workspace
        gc.collect()
        self.assertEqual(driver.driver_taken(), own)
        self.assertIsNotNone(written())
        sparserl._library.library.sparserl_plan_destroy(number)
        plan = plan_of(A)
        driver.driver_capture(STREAM, 1)
        plan(x, out=out, stream=kept)
        driver.driver_capture(STREAM, 0)
        plan.close()
        self.assertEqual(driver.driver_taken(), taken)

    def test_the_end_of_a_process(self):
        # The library calls the log while Python ends, others use the plan, and what is left is used once more.
        lines = ["import atexit, sys, threading, time", "atexit.register(lambda: multiply())", "import numpy, sparserl",
                 "from on_driver import A, Array, OTHER, STREAM, empty",
                 "log = (lambda line: time.sleep(0.1)) if 'log' in sys.argv else None",
                 "context = sparserl.Context(device=0, log=log)",
                 "plan = sparserl.plan(A, context=context, measure=0, expected_calls=10**9)",
                 "x, out = Array(numpy.ones(200)), empty(300)",
                 "def multiply():", "    plan(x, out=out, stream=STREAM)",
                 "    print(numpy.allclose(out.host, A @ x.host))", "atexit.register(multiply)",
                 "def work(out):", "    while True: plan(x, out=out, stream=OTHER)",
                 "[threading.Thread(target=work, args=(empty(300),), daemon=True).start() for _ in range(3)]",
                 "class Last:", "    def __del__(self): self.plan(self.x, out=self.out)",
                 "last = sys.last = Last()", "last.plan, last.x, last.out, last.last = plan, x, empty(300), last"]
        for arguments in ([], ["log"]):
            self.assertEqual(process.ended(lines, *arguments), (0, ["True"] * 2, ""))

    def test_contexts_that_are_closed_while_a_process_ends(self):
        lines = ["import threading, time, matrix, sparserl", "begun = threading.Event()",
                 "def log(line):", "    begun.set()", "    time.sleep(0.5)", "    print('said')",
                 "context = sparserl.Context(policy='cost', device=0, log=log)",
                 "A = matrix.random(3_000, 2_000, 20_000)",
                 "plan = sparserl.plan(A, context=context, measure=0, expected_calls=10**9)", "begun.wait(60)",
                 "threading.Thread(target=context.close, daemon=True).start()"]
        self.assertEqual(process.ended(lines), (0, ["said"], ""))


if __name__ == "__main__":
    unittest.main()
