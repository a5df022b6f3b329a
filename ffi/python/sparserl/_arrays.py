"""Vectors and matrices as NumPy, CuPy, PyTorch, and everything with `__cuda_array_interface__` or
DLPack have them: addresses, types and streams. Nothing is copied.
"""

import contextlib
import ctypes
import functools
import sys
from typing import Any, NamedTuple

import numpy

# Types of DLPack's devices.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# DLPack has no name for the default stream but the legacy one's handle.
DLPACK_LEGACY_STREAM = 1
# Handles of it.
LEGACY_STREAMS = {0, 1}
# Letters of NumPy's kinds, by DLPack's type codes; NumPy has no bfloat16.
KINDS = {0: "i", 1: "u", 2: "f", 4: "b", 5: "c"}
# How types are called here that NumPy has not, and what it takes their bits for.
BFLOAT16, BFLOAT16_BITS = "b2", "u2"
TORCH_TYPES = {"float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": BFLOAT16, "int32": "i4", "int64": "i8",
               "uint8": "u1"}

# What NumPy calls the byte order that this machine has not.
FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"

# How dense matrices lie: rows follow each other, or with gaps between them, or columns do, perhaps with gaps.
ROW_MAJOR, STRIDED, COLUMN_MAJOR = "row-major", "strided", "column-major"


class Memory(NamedTuple):
    """Where an array is, and what it holds."""

    pointer: int
    shape: tuple
    dtype: str  # as NumPy's, without the byte order: "f8"; or BFLOAT16
    on_host: bool
    device: int | None  # None where it is not told, or on the host
    owner: Any  # keeps it
    is_read_only: bool = False
    strides: tuple | None = None  # in elements, of a matrix; None where rows follow each other without gaps
    stream: int | None = None  # on which it is used; None where nothing has to be waited for


class Stream:
    """A stream of somebody else's. `owner` gives what keeps it, or None where nothing is known to."""

    def __init__(self, handle, owner=lambda: None, is_given=False):
        self.handle, self.owner = handle, owner
        # By the caller, in the place of the one that an array's library has.
        self.is_given = is_given

    def others(self, memories):
        """The streams besides this one that memory is used on."""
        used = {memory.stream for memory in memories if memory is not None and memory.stream is not None}
        return {other for other in used if other != self.handle and not {other, self.handle} <= LEGACY_STREAMS}


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
    owner = functools.partial(sys.modules["torch"].cuda.current_stream, device)
    return Stream(torch_stream_handle(device), owner)


def torch_stream_handle(device):
    """The handle of PyTorch's current stream on a GPU."""
    torch = sys.modules["torch"]
    # The object takes longer to make than the rest of a call.
    handle = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda.current_stream(device).cuda_stream if handle is None else handle(device)


def _given_stream(given):
    if isinstance(given, int):
        return Stream(given, is_given=True)
    # PyTorch's and CuPy's `ExternalStream` is somebody else's handle, which it does not keep.
    owner = (lambda: None) if type(given).__name__ == "ExternalStream" else (lambda: given)
    if hasattr(given, "__cuda_stream__"):
        protocol = given.__cuda_stream__
        return Stream(int((protocol() if callable(protocol) else protocol)[1]), owner, True)
    for name in ("cuda_stream", "ptr"):
        if hasattr(given, name):
            return Stream(int(getattr(given, name)), owner, True)
    raise TypeError(f"a {type(given).__name__} is no stream: expected one of PyTorch, CuPy or cuda.core, or its handle")


def memory_of(name, array, stream, order=ROW_MAJOR):
    """Where an array is, which must lie as `order` says, and on which stream it is used: a library that orders by
    streams itself, by DLPack, is told of `stream` instead."""
    if is_torch(array):
        return _of_torch(name, array, order)
    if isinstance(array, numpy.ndarray):
        _check_order(name, array.dtype.str)
        if isinstance(array, numpy.ma.MaskedArray):
            raise _masked(name)
        strides = _strides(name, array.shape, array.strides, array.itemsize, order)
        is_read_only = not array.flags.writeable
        return Memory(array.ctypes.data, array.shape, array.dtype.str[1:], True, None, array, is_read_only, strides)
    # Asked for once: it is made anew each time.
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(name, array, interface, order)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(name, array, stream, order)
    raise TypeError(f"{name} is a {type(array).__name__}: expected an array of NumPy, CuPy or PyTorch, "
                    "or one with __cuda_array_interface__ or __dlpack__")


def _masked(name):
    return TypeError(f"a mask hides elements of {name}: give it without one, as by filled(0)")


def _check_order(name, kind):
    # The kind of a type as NumPy writes it: "<f8".
    if kind[0] == FOREIGN_ORDER:
        raise TypeError(f"{name} is not in the byte order of this machine")


def lies(shape, strides, order):
    """Whether an array lies as an order says, by its strides in elements."""
    if strides is None or 0 in shape:
        return order != COLUMN_MAJOR or len(shape) != 2 or 1 in shape or 0 in shape
    if len(shape) != 2 or order == ROW_MAJOR:
        return _is_contiguous(shape, strides)
    # A row, or a column, is contiguous, and the next one begins behind it.
    (count, other), (step, own) = (shape, strides) if order == STRIDED else (shape[::-1], strides[::-1])
    return (other == 1 or own == 1) and (count == 1 or step >= other)


def _is_contiguous(shape, strides):
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


def _strides(name, shape, strides, size, order):
    """The strides of an array in elements of so many bytes, if it lies as the order says."""
    shape = tuple(shape)
    is_whole = strides is None or all(stride % size == 0 for stride in strides)
    strides = None if strides is None else tuple(stride // size for stride in strides)
    if not is_whole or not lies(shape, strides, order):
        raise ValueError(f"{name} {_complaint(shape, strides if is_whole else None, order)}")
    if order == ROW_MAJOR or len(shape) != 2:
        return None
    return _plain_strides(shape, strides, order)


def _plain_strides(shape, strides, order):
    """The strides of a matrix whose lone row or column may have any."""
    rows, cols = shape
    if order == STRIDED:
        return None if strides is None or rows <= 1 else (strides[0], 1)
    return 1, strides[1] if strides is not None and cols > 1 else max(rows, 1)


def _complaint(shape, strides, order):
    """What is wrong with the strides of an array, and what to write."""
    if order == COLUMN_MAJOR:
        return ("does not lie column after column, and nothing is copied here: give one in Fortran's order "
                "(numpy.asfortranarray(x), x.T.contiguous().T), or make the plan without dense='column-major'")
    takes = [] if strides is None or len(shape) != 2 else \
        [other for other in (STRIDED, COLUMN_MAJOR) if other != order and lies(shape, strides, other)]
    other = f", or make the plan with dense={takes[0]!r}" if takes else ""
    return f"is not contiguous, and nothing is copied here: give a contiguous one{other}"


def leading(memory, order):
    """Elements from the beginning of a row to that of the next, or of a column."""
    if memory.strides is None:
        return memory.shape[1]
    return memory.strides[0] if order == STRIDED else memory.strides[1]


@functools.cache
def _torch_type(dtype):
    name = str(dtype).removeprefix("torch.")
    return TORCH_TYPES.get(name, name)


def _of_torch(name, tensor, order):
    strides = None
    # The usual case, which takes no time.
    if order == COLUMN_MAJOR or not tensor.is_contiguous():
        strides = _strides(name, tensor.shape, tensor.stride(), 1, order)
    # -1 for the host.
    device, on_host = tensor.get_device(), tensor.is_cpu
    if not on_host and not tensor.is_cuda:
        raise TypeError(f"{name} is on {tensor.device.type}: expected a tensor on cpu or cuda")
    pointer = tensor.data_ptr()
    # So has what something traces by, of which a derived class may be.
    if not pointer and tensor.numel():
        raise TypeError(f"{name} is a {type(tensor).__name__} without memory")
    place = (None, tensor, False, strides) if on_host else (device, tensor, False, strides, torch_stream_handle(device))
    return Memory(pointer, tuple(tensor.shape), _torch_type(tensor.dtype), on_host, *place)


def _of_interface(name, array, interface, order):
    shape, kind = tuple(interface["shape"]), interface["typestr"]
    _check_order(name, kind)
    if interface.get("mask") is not None:
        raise _masked(name)
    strides = _strides(name, shape, interface.get("strides"), int(kind[2:]), order)
    device = getattr(getattr(array, "device", None), "id", None)
    device = device if isinstance(device, int) else None
    pointer, is_read_only = interface["data"]
    # None where its library says that nothing has to be waited for.
    stream = interface.get("stream")
    return Memory(pointer or 0, shape, kind[1:], False, device, array, is_read_only, strides, stream)


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


def _of_dlpack(name, array, stream, order):
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
    if tensor.lanes != 1:
        raise TypeError(f"{name} holds vectors of {tensor.lanes} elements")
    strides = _strides(name, shape, tensor.strides[:tensor.ndim] if tensor.strides else None, 1, order)
    dtype, on_host = f"{KINDS.get(tensor.code, '?')}{step}", kind in (CPU, CUDA_HOST)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return Memory(pointer, shape, dtype, on_host, None if on_host else device, (array, capsule), False, strides)


def note_written(arrays):
    """Tells PyTorch of tensors that were written to, lest a derivative takes them for what they were."""
    for array in arrays:
        if is_torch(array):
            sys.modules["torch"].autograd.graph.increment_version(array)


def empty_like(array, shape, memory, stream, order=ROW_MAJOR):
    """A new array of an operand's kind, type and device, which lies as an order says, and where it is. Its memory is
    the stream's: PyTorch and CuPy give what is let go of to those who ask on the stream that it was taken on."""
    is_by_columns = order == COLUMN_MAJOR
    if is_torch(array):
        # The usual case, which takes no time.
        if not stream.is_given or memory.on_host:
            made = torch_empty(array, shape, order)
        else:
            with _as_current_in_torch(stream, memory.device):
                made = torch_empty(array, shape, order)
        strides = _plain_strides(shape, made.stride(), order) if is_by_columns else None
        return made, memory._replace(pointer=made.data_ptr(), shape=shape, owner=made, strides=strides, stream=None)
    letter = "F" if is_by_columns else "C"
    if isinstance(array, numpy.ndarray):
        made = numpy.empty(shape, array.dtype, letter)
    elif _is_cupy(array):
        with array.device, _as_current_in_cupy(stream):
            made = sys.modules["cupy"].empty(shape, array.dtype, order=letter)
    elif memory.on_host and memory.dtype != BFLOAT16:
        made = numpy.empty(shape, memory.dtype, letter)
    else:
        raise TypeError(f"how to make another {type(array).__name__} is not known here: give the result's as out=")
    # Nobody has used it on another stream.
    return made, memory_of("out", made, stream, order)._replace(stream=None)


def _as_current_in_torch(stream, device):
    cuda = sys.modules["torch"].cuda
    is_legacy = stream.handle in LEGACY_STREAMS
    return cuda.stream(cuda.default_stream(device) if is_legacy else cuda.ExternalStream(stream.handle, device))


def _as_current_in_cupy(stream):
    if not stream.is_given:
        return contextlib.nullcontext()
    cuda = sys.modules["cupy"].cuda
    return cuda.Stream.null if stream.handle in LEGACY_STREAMS else cuda.ExternalStream(stream.handle)


def torch_empty(tensor, shape, order):
    """A new tensor of a tensor's type and device, which lies as an order says."""
    if order == COLUMN_MAJOR and len(shape) == 2:
        return tensor.new_empty(shape[::-1]).T
    return tensor.new_empty(shape)


def on_host(memory):
    """An array of the host as NumPy's, without a copy; of BFLOAT16 it has the bits."""
    kind = numpy.dtype(BFLOAT16_BITS if memory.dtype == BFLOAT16 else memory.dtype)
    if 0 in memory.shape:
        return numpy.empty(memory.shape, kind)
    if memory.strides is None:
        elements = int(numpy.prod(memory.shape, dtype=numpy.int64))
    else:
        elements = 1 + sum((length - 1) * stride for length, stride in zip(memory.shape, memory.strides))
    array = numpy.frombuffer((ctypes.c_char * (kind.itemsize * elements)).from_address(memory.pointer), kind)
    if memory.strides is None:
        return array.reshape(memory.shape)
    strides = [stride * kind.itemsize for stride in memory.strides]
    return numpy.lib.stride_tricks.as_strided(array, memory.shape, strides)
