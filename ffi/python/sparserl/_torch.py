"""Products in PyTorch: differentiable with respect to the dense operand, and traceable by torch.compile.

What is traced is the operator `sparserl::product`, which knows a plan by a number. PyTorch takes longer for a
call of it than a product takes, so that what is not traced goes by `_Product`.
"""

import torch

from . import _arrays
from ._library import Error, Status
from ._plan import PLANS

# Other tensors may have no memory, as where something traces by them.
PLAIN = (torch.Tensor, torch.nn.Parameter)
TYPES = {"f2": torch.float16, "f4": torch.float32, "f8": torch.float64, _arrays.BFLOAT16: torch.bfloat16}


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


def product(kernels, op, x, y, alpha, beta):
    """alpha op(A) x + beta y, of vectors or matrices, differentiable with respect to x and y."""
    if kernels.epilogue:
        raise Error(Status.UNSUPPORTED, "the derivative of an epilogue is not known, nor is it traced")
    if x.requires_grad and not kernels.has_transposed:
        raise Error(Status.UNSUPPORTED, "the derivative is a product with the transposed matrix: make the plan with "
                                        "transpose_too=True")
    result = _product(x, kernels, op)
    if alpha != 1:
        result = alpha * result
    if y is not None and beta != 0:
        result = result + beta * y
    return result


def _product(x, kernels, op):
    if torch.compiler.is_compiling() or type(x) not in PLAIN:
        return torch.ops.sparserl.product(x, kernels.number, op)
    if not (torch.is_grad_enabled() and x.requires_grad):
        return _computed(x, kernels, op)
    return _Product.apply(x, kernels, op)


def _computed(x, kernels, op):
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
