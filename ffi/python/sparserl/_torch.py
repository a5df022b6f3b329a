"""Products in PyTorch: differentiable with respect to the dense operand, and traceable by torch.compile.

What is traced is the operator `sparserl::product`, which knows a plan by a number. PyTorch takes longer for a
call of it than a product takes, so that what is not traced goes by `_Product`. torch.compile traces `plan(x)`,
and leaves `plan @ x` to Python: TorchDynamo knows no `@` of other objects than tensors.
"""

import ctypes

import torch

from . import _arrays
from ._handle import DEFAULT_STREAMS
from ._library import Error, Status, check, library
from ._plan import PLANS

# Other tensors may have no memory, as where something traces by them.
PLAIN = (torch.Tensor, torch.nn.Parameter)
TYPES = {"f2": torch.float16, "f4": torch.float32, "f8": torch.float64, _arrays.BFLOAT16: torch.bfloat16}


def usual(kernels, op, x, out):
    """op(A) x as most ask for it: of plain tensors on the plan's GPU, on the current stream. None of other operands,
    right or wrong ones."""
    if torch.compiler.is_compiling() or type(x) not in PLAIN:
        return None
    by_one_side = _usual_of(kernels, op)
    if by_one_side is None or not torch.is_grad_enabled():
        return by_one_side and by_one_side.product(x, out)
    if out is not None and out.requires_grad:
        return None
    if not x.requires_grad:
        return by_one_side.product(x, out)
    # product() says why others have none.
    has_derivative = kernels.has_transposed and not kernels.epilogues[1 - op]
    return _Product.apply(x, kernels, op) if out is None and has_derivative and by_one_side.takes(x) else None


def _usual_of(kernels, op):
    # None where a plan has more to be told, or no GPU.
    if kernels.host is not None or kernels.epilogues[op] or kernels.order == _arrays.COLUMN_MAJOR:
        return None
    if kernels.usual[op] is None:
        kernels.usual[op] = _Usual(kernels, op)
    return kernels.usual[op]


class _Usual:
    """Products with one side of a matrix, alpha 1 and beta 0, of contiguous tensors. Python takes longer for one than
    the GPU, so that all that does not change from call to call is made once."""

    def __init__(self, kernels, op):
        plan, columns = kernels.view(op), kernels.columns
        rows, cols = plan.shape
        self._given, self._result = (torch.Size(plan.operand_shape(length)) for length in (cols, rows))
        self._dtype, self._context, self._uses = TYPES[kernels.dtype], kernels.context, kernels.handle.uses
        handle, one, zero = kernels.handle.number, kernels.scalar(1), kernels.scalar(0)
        one, zero = ctypes.byref(one), ctypes.byref(zero)
        if columns is None:
            execute = library.sparserl_execute_op
            self._execute = lambda stream, x, out: execute(handle, op, stream, one, x, zero, None, out, None)
        else:
            execute = library.sparserl_execute_matrices
            self._execute = lambda stream, x, out: execute(
                handle, op, stream, one, x, columns, zero, None, columns, out, columns, None)

    def takes(self, x):
        """Whether it is an operand."""
        return self._lies(x, self._given)

    def _lies(self, tensor, shape):
        return (tensor.dtype is self._dtype and tensor.is_cuda and tensor.shape == shape
                and tensor.get_device() == self._context.ordinal and tensor.is_contiguous())

    def product(self, x, out=None):
        """Of a plain tensor, or None where it, or what is to be written, is not as usual."""
        if not self._lies(x, self._given):
            return None
        if out is not None and not (type(out) in PLAIN and self._lies(out, self._result)):
            return None
        uses, stream = self._uses, _arrays.torch_stream_handle(self._context.ordinal)
        # One that is not known yet has to be kept.
        if stream not in uses.streams:
            return None
        self._context.check_process()
        # Before the call: nobody may destroy the plan between it and a note.
        if stream not in DEFAULT_STREAMS and self._context.primary_context.is_captured(stream):
            uses.is_captured = True
        made = x.new_empty(self._result) if out is None else out
        check(self._execute(stream, x.data_ptr(), made.data_ptr()))
        if out is not None:
            _arrays.note_written([out])
        return made


def is_needed(*tensors):
    """Whether a product has to be an operator of PyTorch: it is traced, or derivatives are asked for."""
    if torch.compiler.is_compiling():
        return True
    tensors = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    if any(type(tensor) not in PLAIN for tensor in tensors):
        return True
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def cast(kernels, operand):
    """An operand in the matrix's type, where PyTorch chooses types itself (autocast)."""
    if not isinstance(operand, torch.Tensor) or operand.dtype == TYPES[kernels.dtype]:
        return operand
    is_cast = operand.is_floating_point() and torch.is_autocast_enabled(operand.device.type)
    return operand.to(TYPES[kernels.dtype]) if is_cast else operand


def _check_values(kernels, updates):
    if kernels.updates != updates:
        raise RuntimeError("the values of the plan were updated after the product whose derivative is asked for: "
                           "update them after backward()")


def _is_differentiated(x):
    return torch.is_grad_enabled() and x.requires_grad


def _check_derivative(kernels, op):
    if kernels.epilogues[op]:
        option = "epilogue" if op == 0 else "transposed_epilogue"
        raise Error(Status.UNSUPPORTED, "the derivative is a product with the transposed matrix, which has an epilogue "
                                        f'in this plan: make it with {option}="none"')


def product(kernels, op, x, y, alpha, beta):
    """alpha op(A) x + beta y, of vectors or matrices, differentiable with respect to x and y."""
    if kernels.epilogues[op]:
        raise Error(Status.UNSUPPORTED, "the derivative of an epilogue is not known, nor is it traced")
    if _is_differentiated(x):
        if not kernels.has_transposed:
            raise Error(Status.UNSUPPORTED, "the derivative is a product with the transposed matrix: make the plan "
                                            "with transpose_too=True")
        _check_derivative(kernels, 1 - op)
    result = _product(x, kernels, op)
    if alpha != 1:
        result = alpha * result
    if y is not None and beta != 0:
        result = result + beta * y
    return result


def _product(x, kernels, op):
    if torch.compiler.is_compiling() or type(x) not in PLAIN:
        return torch.ops.sparserl.product(x, kernels.number, op)
    if not _is_differentiated(x):
        return _computed(x, kernels, op)
    return _Product.apply(x, kernels, op)


def _computed(x, kernels, op):
    # product() has refused an epilogue of the side that was asked for: one here is that of a derivative.
    _check_derivative(kernels, op)
    by_one_side = _usual_of(kernels, op) if type(x) in PLAIN else None
    result = by_one_side and by_one_side.product(x)
    if result is not None:
        return result
    x, order = x.detach(), kernels.order
    # Gradients come as they like.
    if not _arrays.lies(tuple(x.shape), x.stride(), order):
        x = x.T.contiguous().T if order == _arrays.COLUMN_MAJOR else x.contiguous()
    return kernels.view(op).computed(x)


class _Product(torch.autograd.Function):
    # One with a `setup_context` takes as long as the operator.
    @staticmethod
    def forward(ctx, x, kernels, op):
        ctx.kernels, ctx.op, ctx.updates = kernels, op, kernels.updates
        return _computed(x, kernels, op)

    @staticmethod
    def backward(ctx, gradient):
        _check_values(ctx.kernels, ctx.updates)
        return _product(gradient, ctx.kernels, 1 - ctx.op), None, None


@torch.library.custom_op("sparserl::product", mutates_args=())
def _operator(x: torch.Tensor, plan: int, op: int) -> torch.Tensor:
    return _computed(x, PLANS[plan], op)


@_operator.register_fake
def _fake(x, plan, op):
    # What is traced for several plans has symbols for their numbers.
    kernels = PLANS[int(plan)]
    return _arrays.torch_empty(x, (kernels.view(int(op)).shape[0], *x.shape[1:]), kernels.order)


def _keep(ctx, inputs, output):
    _, ctx.plan, ctx.op = inputs
    # The derivative is asked for after everybody else may have let go of the plan.
    ctx.kernels = PLANS[int(ctx.plan)]
    ctx.updates = ctx.kernels.updates


def _derivative(ctx, gradient):
    _check_values(ctx.kernels, ctx.updates)
    return torch.ops.sparserl.product(gradient, ctx.plan, 1 - ctx.op), None, None


_operator.register_autograd(_derivative, setup_context=_keep)
