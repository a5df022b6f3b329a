"""What is asked of CUDA's driver: whether a stream is captured, to wait for one, and to let one wait for another.

A plan must not be destroyed under a launch. Nothing tells a garbage collector that a stream has come
past one, so each plan keeps the streams that it was used on, or of those that nothing keeps an event.
"""

import contextlib
import ctypes
import functools
import os

# The legacy default stream, by its two handles. It cannot be captured.
LEGACY = (0, 1)
RELAXED = 2
DISABLE_TIMING = 2
SUCCESS = 0


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")


class Device:
    """A device's primary context, which CUDA's runtime, PyTorch and CuPy use, too."""

    def __init__(self, ordinal):
        device, self._context = ctypes.c_int(), ctypes.c_void_p()
        _check(_driver().cuInit(0))
        _check(_driver().cuDeviceGet(ctypes.byref(device), ordinal))
        # Never released: launches of plans that nobody destroys may be left.
        _check(_driver().cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device))

    @contextlib.contextmanager
    def _current(self):
        _check(_driver().cuCtxPushCurrent_v2(self._context))
        try:
            yield
        finally:
            _driver().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def wait(self, streams, events=()):
        """Waits for streams and events; false, having waited for some, where one of them cannot be waited for
        as long as something is captured."""
        driver, mode = _driver(), ctypes.c_int(RELAXED)
        with self._current():
            # In this mode nothing that is done here breaks a capture of another thread.
            _check(driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
            try:
                # What went wrong on a stream is told to those who use it.
                for event in events:
                    driver.cuEventSynchronize(event.handle)
                for stream in streams:
                    if _is_captured(stream) is not False:
                        return False
                    driver.cuStreamSynchronize(_handle(stream))
                return True
            finally:
                driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def record(self, stream, event=None):
        """An event behind all that was asked of a stream, which is not captured: the one that is given, or a new one."""
        with self._current():
            if event is None:
                event = Event()
            else:
                # It may be of another stream, of which the handle was, and is not forgotten.
                _check(_driver().cuStreamWaitEvent(_handle(stream), event.handle, 0))
            _check(_driver().cuEventRecord(event.handle, _handle(stream)))
            return event

    def order(self, first, then):
        """Lets what is asked of a stream from now on wait for what was asked of another. Nothing is done where one of
        them is captured, since an event would take the other one into its graph."""
        with self._current():
            if _is_captured(first) is not False or _is_captured(then) is not False:
                return
            event = self.record(first)
            _check(_driver().cuStreamWaitEvent(_handle(then), event.handle, 0))

    def is_captured(self, stream):
        """Whether one of its streams is being captured into a graph."""
        if stream in LEGACY:
            return False
        answer = _is_captured(stream)
        if answer is None:
            # Perhaps for want of a current context, which this thread may not have.
            with self._current():
                answer = _is_captured(stream)
        return answer is True


# By ordinal.
device = functools.cache(Device)


class Event:
    """An event of the current context. It may be let go of before the streams have come to it."""

    def __init__(self):
        self.handle, self._process = ctypes.c_void_p(), os.getpid()
        _check(_driver().cuEventCreate(ctypes.byref(self.handle), DISABLE_TIMING))

    def __del__(self):
        if self.handle and os.getpid() == self._process:
            _driver().cuEventDestroy_v2(self.handle)


def _handle(stream):
    return ctypes.c_void_p(0 if stream in LEGACY else stream)


def _is_captured(stream):
    # None where the driver does not tell, as of the legacy stream while another is captured.
    status = ctypes.c_int()
    answer = _driver().cuStreamIsCapturing(_handle(stream), ctypes.byref(status))
    return bool(status.value) if answer == SUCCESS else None


def _check(status):
    if status != SUCCESS:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(f"CUDA's driver: {(name.value or b'').decode()} ({status})")
