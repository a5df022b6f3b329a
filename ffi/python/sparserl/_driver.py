"""What is asked of CUDA's driver: whether a stream is captured, and to wait for one.

A plan must not be destroyed under a launch. Nothing tells a garbage collector that a stream has come
past one, so each plan keeps the streams that it was used on.
"""

import ctypes
import functools

# The legacy default stream, by its two handles. It cannot be captured.
LEGACY = (0, 1)
RELAXED = 2
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

    def wait(self, streams):
        """Waits for streams; false, having waited for some, where one of them cannot be waited for
        as long as something is captured."""
        driver, mode = _driver(), ctypes.c_int(RELAXED)
        _check(driver.cuCtxPushCurrent_v2(self._context))
        # In this mode nothing that is done here breaks a capture of another thread.
        _check(driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
        try:
            for stream in streams:
                if _is_captured(stream) is not False:
                    return False
                # What went wrong on the stream is told to those who use it.
                driver.cuStreamSynchronize(ctypes.c_void_p(stream))
            return True
        finally:
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


    def is_captured(self, stream):
        """Whether one of its streams is being captured into a graph."""
        if stream in LEGACY:
            return False
        answer = _is_captured(stream)
        if answer is None:
            # Perhaps for want of a current context, which this thread may not have.
            _check(_driver().cuCtxPushCurrent_v2(self._context))
            answer = _is_captured(stream)
            _driver().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return answer is True


# By ordinal.
device = functools.cache(Device)


def _is_captured(stream):
    # None where the driver does not tell, as of the legacy stream while another is captured.
    status = ctypes.c_int()
    answer = _driver().cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(status))
    return bool(status.value) if answer == SUCCESS else None


def _check(status):
    if status != SUCCESS:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(f"CUDA's driver: {(name.value or b'').decode()} ({status})")
