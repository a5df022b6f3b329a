"""Vectors and matrices as NumPy, CuPy, PyTorch, and everything with `__cuda_array_interface__` or
DLPack have them: addresses, types and streams. Nothing is copied.
"""

import ctypes
import functools
import sys
from typing import Any, NamedTuple

import numpy

# Types of DLPack's devices.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# DLPack has no name for the default stream but the legacy one's handle.
DLPACK_LEGACY_STREAM = 1
# Letters of NumPy's kinds, by DLPack's type codes; NumPy has no bfloat16.
KINDS = {0: "i", 1: "u", 2: "f", 4: "b", 5: "c"}
# How types are called here that NumPy has not, and what it takes their bits for.
BFLOAT16, BFLOAT16_BITS = "b2", "u2"
TORCH_TYPES = {"float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": BFLOAT16, "int32": "i4", "int64": "i8",
               "uint8": "u1"}


class Memory(NamedTuple):
    """Where an array is, and what it holds."""

    pointer: int
    shape: tuple
    dtype: str  # as NumPy's, without the byte order: "f8"; or BFLOAT16
    on_host: bool
    device: int | None  # None where it is not told, or on the host
    owner: Any  # keeps it
    is_read_only: bool = False


class Stream:
    """A stream of somebody else's. `owner` gives what keeps it."""

    def __init__(self, handle, owner=lambda: None):
        self.handle, self.owner = handle, owner


def is_torch(array):
    """Whether it is a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _is_cupy(array):
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def stream_of(array, given=None):
    """The stream that products of an array are asked of: the one that is given, its library's
    current one, or the default stream."""
    if given is not None:
        return _given_stream(given)
    if is_torch(array):
        if not array.is_cuda:
            return Stream(0)
        return _torch_stream(array.get_device())
    if _is_cupy(array):
        stream = sys.modules["cupy"].cuda.get_current_stream(array.device.id)
        return Stream(stream.ptr, lambda: stream)
    interface = getattr(array, "__cuda_array_interface__", None)
    return Stream((interface or {}).get("stream") or 0)


def _torch_stream(device):
    torch = sys.modules["torch"]
    owner = functools.partial(torch.cuda.current_stream, device)
    # The object takes longer to make than the rest of a call, and is wanted once.
    handle = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return Stream(owner().cuda_stream if handle is None else handle(device), owner)


def _given_stream(given):
    if isinstance(given, int):
        return Stream(given)
    if hasattr(given, "__cuda_stream__"):
        protocol = given.__cuda_stream__
        return Stream(int((protocol() if callable(protocol) else protocol)[1]), lambda: given)
    for name in ("cuda_stream", "ptr"):
        if hasattr(given, name):
            return Stream(int(getattr(given, name)), lambda: given)
    raise TypeError(f"a {type(given).__name__} is no stream: expected one of PyTorch, CuPy or cuda.core, or its handle")


def memory_of(name, array, stream):
    """Where an array is; it must be contiguous, in C's order. What is written to it before a call on
    `stream` is seen there: where its library orders by streams, it is told of this one."""
    if is_torch(array):
        return _of_torch(name, array)
    if isinstance(array, numpy.ndarray):
        _need(name, array.flags.c_contiguous and array.dtype.isnative)
        is_read_only = not array.flags.writeable
        return Memory(array.ctypes.data, array.shape, array.dtype.str[1:], True, None, array, is_read_only)
    # Asked for once: it is made anew each time.
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(name, array, interface)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(name, array, stream)
    raise TypeError(f"{name} is a {type(array).__name__}: expected an array of NumPy, CuPy or PyTorch, "
                    "or one with __cuda_array_interface__ or __dlpack__")


def _need(name, is_contiguous):
    if not is_contiguous:
        raise ValueError(f"{name} is not contiguous, and nothing is copied here: give a contiguous one")


@functools.cache
def _torch_type(dtype):
    name = str(dtype).removeprefix("torch.")
    return TORCH_TYPES.get(name, name)


def _of_torch(name, tensor):
    _need(name, tensor.is_contiguous())
    # -1 for the host.
    device, on_host = tensor.get_device(), tensor.is_cpu
    if not on_host and not tensor.is_cuda:
        raise TypeError(f"{name} is on {tensor.device.type}: expected a tensor on cpu or cuda")
    return Memory(tensor.data_ptr(), tuple(tensor.shape), _torch_type(tensor.dtype), on_host,
                  None if on_host else device, tensor)


def _of_interface(name, array, interface):
    shape, kind = tuple(interface["shape"]), interface["typestr"]
    _need(name, _is_contiguous(shape, interface.get("strides"), int(kind[2:])))
    device = getattr(getattr(array, "device", None), "id", None)
    device = device if isinstance(device, int) else None
    pointer, is_read_only = interface["data"]
    return Memory(pointer or 0, shape, kind[1:], False, device, array, is_read_only)


def _is_contiguous(shape, strides, step):
    if strides is None or 0 in shape:
        return True
    for length, stride in zip(reversed(shape), reversed(tuple(strides))):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


class _Tensor(ctypes.Structure):
    """`DLTensor`, with which a `DLManagedTensor` begins."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _of_dlpack(name, array, stream):
    kind, device = array.__dlpack_device__()
    if kind in (CUDA, CUDA_MANAGED):
        capsule = array.__dlpack__(stream=stream.handle or DLPACK_LEGACY_STREAM)
    elif kind in (CPU, CUDA_HOST):
        capsule = array.__dlpack__()
    else:
        raise TypeError(f"{name} is on a device of DLPack's type {kind}: expected the host or CUDA")
    # It is not consumed: when it is let go of, its library takes the tensor back.
    tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape, step = tuple(tensor.shape[:tensor.ndim]), tensor.bits // 8
    strides = [stride * step for stride in tensor.strides[:tensor.ndim]] if tensor.strides else None
    _need(name, tensor.lanes == 1 and _is_contiguous(shape, strides, step))
    dtype, on_host = f"{KINDS.get(tensor.code, '?')}{step}", kind in (CPU, CUDA_HOST)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return Memory(pointer, shape, dtype, on_host, None if on_host else device, (array, capsule))


def empty_like(array, shape, memory, stream):
    """A new array of an operand's kind, type and device, and where it is."""
    if is_torch(array):
        made = array.new_empty(shape)
        return made, memory._replace(pointer=made.data_ptr(), shape=shape, owner=made)
    if isinstance(array, numpy.ndarray):
        made = numpy.empty(shape, array.dtype)
    elif _is_cupy(array):
        with array.device:
            made = sys.modules["cupy"].empty(shape, array.dtype)
    elif memory.on_host and memory.dtype != BFLOAT16:
        made = numpy.empty(shape, memory.dtype)
    else:
        raise TypeError(f"how to make another {type(array).__name__} is not known here: give the result's as out=")
    return made, memory_of("out", made, stream)


def on_host(memory):
    """An array of the host as NumPy's, without a copy; of BFLOAT16 it has the bits."""
    kind = numpy.dtype(BFLOAT16_BITS if memory.dtype == BFLOAT16 else memory.dtype)
    length = kind.itemsize * int(numpy.prod(memory.shape, dtype=numpy.int64))
    if length == 0:
        return numpy.empty(memory.shape, kind)
    array = numpy.frombuffer((ctypes.c_char * length).from_address(memory.pointer), kind)
    return array.reshape(memory.shape)
