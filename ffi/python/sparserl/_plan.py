"""Plans: the kernels of one matrix, and their products."""

import ctypes
import sys
import weakref

import numpy

from . import _arrays, _context, _epilogue, _host, _matrix
from ._handle import PlanHandle
from ._library import CONSTANTS, Error, Options, Status, check, create, group, library, path_of

OP_NONE, OP_TRANSPOSE = (CONSTANTS[f"SPARSERL_OP_{name}"].number for name in ("NONE", "TRANSPOSE"))
TEXTS, NUMBERS = group("SPARSERL_TEXT_"), group("SPARSERL_NUMBER_")
# How dense matrices lie, as `dense=` says it, by the header's numbers.
ORDERS = {constant.number: name.replace("_", "-") for name, constant in group("SPARSERL_DENSE_").items()}
# Machine code is no text.
BYTES = {"cubin"}
WITHOUT_MATVEC = "a plan has matvec and rmatvec if it is for SpMV, and has kernels for them"
# What is traced knows plans by the numbers of their handles, which are never given out again.
PLANS = weakref.WeakValueDictionary()
# Types of sums, by those of matrices.
SCALARS = {"f2": ctypes.c_float, "f4": ctypes.c_float, "f8": ctypes.c_double, _arrays.BFLOAT16: ctypes.c_float}


def _text(plan, op, key):
    length, buffer, size = ctypes.c_size_t(), None, 0
    while True:
        status = library.sparserl_plan_text(plan, op, key, buffer, size, ctypes.byref(length))
        # A better kernel's may have become longer meanwhile.
        if status != Status.BUFFER_TOO_SMALL:
            check(status)
            if buffer is not None:
                return buffer.raw[:length.value]
        size = length.value + 1
        buffer = ctypes.create_string_buffer(size)


def _is(number, expected):
    return isinstance(number, (int, float)) and number == expected


class _Kernels:
    """What the two views of a plan share."""

    def __init__(self, number, context, matrix):
        self.handle = PlanHandle(number, context)
        self.context = context
        self.shape, self.dtype, self.nnz = matrix.shape, matrix.dtype, matrix.nnz
        self.scalar = SCALARS[matrix.dtype]
        # NumPy has no bfloat16.
        self.numpy_dtype = "bfloat16" if self.dtype == _arrays.BFLOAT16 else numpy.dtype(self.dtype)
        self.host = None if self._has_gpu() else _host.HostMatrix.copy_of(matrix)
        # The second line of a program: "spmv f64", "spmm 32 f64 variable".
        operation = _text(number, OP_NONE, TEXTS["program"].number).decode().splitlines()[1].split()
        self.columns = int(operation[1]) if operation[0] == "spmm" else None
        self.order = ORDERS[int(self._number(OP_NONE, NUMBERS["dense"].number)[1])]
        self.has_transposed = self._number(OP_TRANSPOSE, NUMBERS["packed_bytes"].number)[0] != Status.UNSUPPORTED
        # Of both sides, which may have different ones. Of a side without kernels the library refuses products.
        sides = (OP_NONE, OP_TRANSPOSE if self.has_transposed else OP_NONE)
        texts = lambda key: [_text(number, op, TEXTS[key].number).decode() for op in sides]
        self.epilogues, self.user_members = texts("epilogue"), [*map(_epilogue.members, texts("epilogue_user"))]
        # How often values were updated.
        self.updates = 0
        # What each side needs for usual products of PyTorch's tensors, made with the first.
        self.usual = [None, None]
        PLANS[number] = self
        self.number = number
        # The module for PyTorch, once it is needed.
        self.by_torch = None
        if "torch" in sys.modules:
            # Lest it is imported while something is traced.
            self.load_torch()

    def load_torch(self):
        from . import _torch
        self.by_torch = _torch
        return _torch

    def _has_gpu(self):
        # A product of nothing is refused anyway, first of all where there is no GPU.
        status = library.sparserl_execute(self.handle.number, None, None, None, None, None, None)
        return status != Status.NO_DEVICE

    def _number(self, op, key):
        value = ctypes.c_double()
        status = library.sparserl_plan_number(self.handle.number, op, key, ctypes.byref(value))
        return status, value.value

    def view(self, op):
        """The plan as it is seen from a side."""
        return Plan(self, op)


class Plan:
    """The kernels of a matrix, made by `sparserl.plan` or `sparserl.load`.

    `plan @ x` is A x; `plan(x, y, alpha, beta)` is alpha A x + beta y, or what the plan's epilogue makes
    of it. Of a plan for SpMM, x and y are matrices of `plan.columns` columns, which is None for SpMV. On a GPU
    a product is asked of the caller's current stream and not waited for. Products of one plan must not overlap
    on the GPU, as they may on two streams, unless `workspace_bytes` is 0 after `wait()`, or each stream was given
    a workspace by `set_workspace`. Every method may be called from every thread.

    `plan.T` is the transposed matrix: the same plan, seen from the other side. `x @ plan` of a vector is
    `plan.T @ x`.

    What is known of the plan: `why`, `program`, `source` (CUDA C++), `cubin` (bytes), `epilogue`, `epilogue_user`;
    `packed_bytes`, `predicted_seconds`, `measured_seconds`, `csr_seconds`, `cusparse_seconds`, `planning_seconds`,
    `calls`, `calls_to_pay`, `workspace_bytes`, which are None where they are not known, or not yet. The
    header says what they are (SPARSERL_TEXT_..., SPARSERL_NUMBER_...). Those of `plan.T` are of its kernels and its
    epilogue.
    """

    # NumPy would take a plan for a number, of any type.
    __array_ufunc__ = None

    def __init__(self, kernels, op=OP_NONE):
        self._kernels, self._op = kernels, op
        self.shape = kernels.shape if op == OP_NONE else kernels.shape[::-1]
        self.dtype = kernels.numpy_dtype

    @property
    def T(self):
        """The transposed matrix; it has kernels if the plan was made with `transpose_too=True`."""
        return Plan(self._kernels, OP_TRANSPOSE if self._op == OP_NONE else OP_NONE)

    @property
    def columns(self):
        """Columns of the dense matrices, or None where operands are vectors."""
        return self._kernels.columns

    @property
    def dense(self):
        """How the dense matrices lie: "row-major", "strided" (rows may have gaps between them) or "column-major"."""
        return self._kernels.order

    @property
    def nnz(self):
        """Stored entries."""
        return self._kernels.nnz

    @property
    def device(self):
        """The number of the GPU that products are made on, or None for the host."""
        return None if self._kernels.host is not None else self._kernels.context.ordinal

    def __repr__(self):
        rows, cols = self.shape
        return f"<sparserl.Plan of {rows} x {cols}, {self.nnz} entries, {self.dtype}>"

    def __getattr__(self, name):
        # Numbers and texts that the header has.
        if name in NUMBERS:
            return self._number(NUMBERS[name].number)
        if name in TEXTS:
            text = _text(self._handle(), self._op, TEXTS[name].number)
            return text if name in BYTES else text.decode()
        # What a property raises comes here, too.
        raise AttributeError(WITHOUT_MATVEC if name in ("matvec", "rmatvec") else f"a plan has no {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *TEXTS, *NUMBERS]

    def _handle(self):
        self._kernels.context.check_process()
        return self._kernels.handle.number

    def _number(self, key):
        value = ctypes.c_double()
        status = library.sparserl_plan_number(self._handle(), self._op, key, ctypes.byref(value))
        if status == Status.NOT_KNOWN:
            return None
        check(status)
        return int(value.value) if value.value.is_integer() else value.value

    def __matmul__(self, x):
        return self(x)

    def __rmatmul__(self, x):
        if self.columns is not None:
            raise TypeError("a plan is multiplied from the left by vectors only: for X @ plan write (plan.T @ X.T).T")
        return self.T(x)

    @property
    def matvec(self):
        """`plan @ x` as SciPy's and CuPy's iterative solvers ask for it, which take a plan for SpMV in the place of a
        matrix, or of a LinearOperator. x has the matrix's type, and is copied where it is not contiguous. Of a column,
        which has the shape (n, 1), the product is one, too."""
        if self.columns is not None or not self._has_kernels():
            raise AttributeError(WITHOUT_MATVEC)
        return self._of_vector

    @property
    def rmatvec(self):
        """The same with the transposed matrix, of plans made with `transpose_too=True`."""
        return self.T.matvec

    def _of_vector(self, x):
        rows, cols = self.shape
        shape = getattr(x, "shape", None)
        if shape is None:
            return self(x)
        if shape not in ((cols,), (cols, 1)):
            raise ValueError(f"x has the shape {tuple(shape)}: expected ({cols},) or ({cols}, 1)")
        product = self(x.ravel())
        return product if len(shape) == 1 else product.reshape(rows, 1)

    def _has_kernels(self):
        return self._op == OP_NONE or self._kernels.has_transposed

    def __call__(self, x, y=None, alpha=1.0, beta=0.0, out=None, *, stream=None, user=None):
        """alpha op(A) x + beta y, in `out` or a new array of x's kind; `out` may be y.

        Operands have the matrix's type, are on the plan's GPU, or on the host where it has none, and are
        contiguous, row after row; of a plan made with dense="strided" rows may have gaps between them, as those of
        X[:, 4:12] have, and of one with dense="column-major" columns follow each other, perhaps with gaps, as in
        Fortran's order or in X.T. Under PyTorch's autocast they become of the matrix's type. y is not read where beta
        is 0. `user` has what an epilogue takes, in the order of its members (`epilogue_user`): numbers, and arrays as
        long as it declares. What torch.compile is to trace is written as this call: it does not trace `plan @ x`.

        The stream is the current one of x's library, CuPy or PyTorch; of other arrays the one that
        `__cuda_array_interface__` names, or the default stream. The product begins when what was asked before of the
        other arrays' streams is done, and these wait for it. With `stream=` they do not: what is asked of them
        afterwards is the caller's to order, who also keeps the arrays until the product is done. Where one of two
        streams is captured into a graph nothing is ordered between them.
        """
        if _arrays.is_torch(x):
            # An import takes as long as a call of the driver, even of what is there.
            by_torch = self._kernels.by_torch or self._kernels.load_torch()
            if y is None and stream is None and user is None and _is(alpha, 1) and _is(beta, 0):
                result = by_torch.usual(self._kernels, self._op, x, out)
                if result is not None:
                    return result
            x, y = by_torch.cast(self._kernels, x), by_torch.cast(self._kernels, y)
            if by_torch.is_needed(x, y, out):
                if out is not None or stream is not None:
                    raise ValueError("out= and stream= are not for products that are traced or have derivatives")
                return by_torch.product(self._kernels, self._op, x, y, alpha, beta)
        return self.computed(x, y, alpha, beta, out, stream, user)

    def computed(self, x, y=None, alpha=1.0, beta=0.0, out=None, stream=None, user=None):
        """The same without derivatives, and not traced."""
        stream = _arrays.stream_of(x, stream)
        user = None if user is None else tuple(user)
        rows, cols = self.shape
        written = [] if out is None else [out]
        given = self._operand("x", x, cols, stream)
        old = None if y is None else self._operand("y", y, rows, stream)
        if out is None:
            out, result = _arrays.empty_like(x, self.operand_shape(rows), given, stream, self._kernels.order)
        else:
            result = self._operand("out", out, rows, stream)
        if result.is_read_only:
            raise ValueError("out is read-only")
        if self._kernels.host is None:
            self._execute(given, old, alpha, beta, result, stream, user)
        else:
            self._multiply(given, old, alpha, beta, result, user, stream)
        written += [value for member, value in zip(self._user_members, user or ()) if not member.is_const]
        _arrays.note_written(written)
        return out

    def operand_shape(self, rows):
        """The shape of an operand with so many rows."""
        return (rows,) if self.columns is None else (rows, self.columns)

    def _operand(self, name, array, rows, stream):
        memory, expected = _arrays.memory_of(name, array, stream, self._kernels.order), self.operand_shape(rows)
        if memory.shape != expected:
            raise ValueError(f"{name} has the shape {memory.shape}: expected {expected}")
        if memory.dtype != self._kernels.dtype:
            raise TypeError(f"{name} holds {memory.dtype}, and the matrix {self._kernels.dtype}")
        self._check_place(name, memory)
        return memory

    def _check_place(self, name, memory):
        kernels = self._kernels
        if memory.on_host != (kernels.host is not None):
            where = "on the host" if memory.on_host else "on a GPU"
            own = "the host" if kernels.host is not None else f"GPU {kernels.context.ordinal}"
            raise ValueError(f"{name} is {where}, and the plan is for {own}")
        if memory.device not in (None, kernels.context.ordinal):
            raise ValueError(f"{name} is on GPU {memory.device}, and the plan is for GPU {kernels.context.ordinal}")

    def _execute(self, x, y, alpha, beta, out, stream, user):
        kernels = self._kernels
        handle, scalar = self._handle(), kernels.scalar
        block, arrays = (None, []) if user is None else self._user_block(user, stream)
        alpha, beta, old = ctypes.byref(scalar(alpha)), ctypes.byref(scalar(beta)), None if y is None else y.pointer
        columns = kernels.columns
        if columns is None:
            act = lambda: check(library.sparserl_execute_op(
                handle, self._op, stream.handle, alpha, x.pointer, beta, old, out.pointer, block))
        else:
            ldx, ldout = _arrays.leading(x, kernels.order), _arrays.leading(out, kernels.order)
            ldy = columns if y is None else _arrays.leading(y, kernels.order)
            act = lambda: check(library.sparserl_execute_matrices(
                handle, self._op, stream.handle, alpha, x.pointer, ldx, beta, old, ldy, out.pointer, ldout, block))
        self._ask(stream, [x, y, out, *arrays], act)

    def _ask(self, stream, memories, act):
        """Asks something of a stream, behind what was asked of those that memory is used on. They wait for it in turn,
        unless the caller gave the stream, and orders the others by it."""
        kernels = self._kernels
        others = stream.others(memories)
        for other in others:
            kernels.context.primary_context.order(other, stream.handle)
        kernels.handle.uses.ask(stream, act)
        if not stream.is_given:
            for other in others:
                kernels.context.primary_context.order(stream.handle, other)

    def _user_block(self, user, stream):
        # The members of a struct of C, as the compiler would place them.
        scalar, members, values = self._kernels.scalar, self._user_members, self._user_values(user, stream)
        fields = [(f"member{place}", ctypes.c_void_p if member.extent else scalar)
                  for place, member in enumerate(members)]
        arrays = [value for member, value in zip(members, values) if member.extent]
        values = [value.pointer if member.extent else value for member, value in zip(members, values)]
        return ctypes.byref(type("User", (ctypes.Structure,), {"_fields_": fields})(*values)), arrays

    @property
    def _user_members(self):
        return self._kernels.user_members[self._op]

    def _user_values(self, user, stream):
        members = self._user_members
        if len(user) != len(members):
            declared = "; ".join(map(str, members)) or "none"
            raise ValueError(f"user has {len(user)} members, and the epilogue takes {len(members)}: {declared}")
        return [self._user_member(f"user[{place}]", member, value, stream)
                for place, (member, value) in enumerate(zip(members, user))]

    def _user_member(self, name, member, value, stream):
        is_number = isinstance(value, (int, float, numpy.number))
        if is_number != (not member.extent):
            kinds = ("an array", "a number")
            raise TypeError(f"{name} is {kinds[is_number]}: expected {kinds[not is_number]}, for {member}")
        if is_number:
            return float(value)
        memory = _arrays.memory_of(name, value, stream)
        dtype = numpy.dtype(self._kernels.scalar).str[1:] if member.is_scalar else self._kernels.dtype
        if memory.dtype != dtype:
            raise TypeError(f"{name} holds {memory.dtype}: expected {dtype}, for {member}")
        expected = member.shape(*self.shape, self.columns)
        if memory.shape != expected:
            raise ValueError(f"{name} has the shape {memory.shape}: expected {expected}, for {member}")
        if memory.is_read_only and not member.is_const:
            raise ValueError(f"{name} is read-only")
        self._check_place(name, memory)
        return memory

    def _multiply(self, x, y, alpha, beta, out, user, stream):
        # Refuses what the plan was not made for, as it does on a GPU.
        self._number(NUMBERS["packed_bytes"].number)
        endings = self._endings(user, stream)
        if y is None and beta != 0:
            raise Error(Status.NULL_POINTER, "y is NULL")
        # Not by their ends alone: rows of the one may lie between those of the other.
        if numpy.shares_memory(_arrays.on_host(x), _arrays.on_host(out)):
            raise Error(Status.INVALID_ARGUMENT, "x and out are the same vector: out may be y, but not x")
        is_other = beta != 0 and (y.pointer, y.shape, y.strides) != (out.pointer, out.shape, out.strides)
        if is_other and numpy.shares_memory(_arrays.on_host(y), _arrays.on_host(out)):
            raise Error(Status.INVALID_ARGUMENT, "y and out overlap: out may be y, but no other part of it")
        host = self._kernels.host
        host = host if self._op == OP_NONE else host.transposed
        host.multiply(x, y, alpha, beta, out, *endings)

    def _endings(self, user, stream):
        # What the host does to results before they are stored.
        epilogue = self._kernels.epilogues[self._op]
        if epilogue and epilogue not in _epilogue.ON_HOST:
            raise Error(Status.NO_DEVICE, "the epilogue is CUDA C: nothing but a GPU executes it")
        if user is None and self._user_members:
            raise Error(Status.NULL_POINTER, "user is NULL")
        values = [] if user is None else self._user_values(user, stream)
        if not epilogue:
            return []
        values = [_host.numbers(value) if isinstance(value, _arrays.Memory) else value for value in values]
        return [lambda rows, v: _epilogue.ON_HOST[epilogue](rows, v, *values)]

    def update(self, values, *, stream=None):
        """Gives a plan made with `values_variable=True` other values, in the order of the entries of the
        matrix that it was made of: from a GPU in the order of the stream, from the host after all products
        that were asked for, and waited for. In PyTorch the derivative of a product that was made before is refused
        afterwards, unless it is traced: then it is that with the other values."""
        kernels, stream = self._kernels, _arrays.stream_of(values, stream)
        memory = _arrays.memory_of("values", values, stream)
        if memory.shape != (kernels.nnz,) or memory.dtype != kernels.dtype:
            raise ValueError(f"values are {memory.shape} of {memory.dtype}: expected ({kernels.nnz},) of "
                             f"{kernels.dtype}")
        handle = self._handle()
        arguments = handle, stream.handle, memory.pointer, _matrix.location(memory)
        if kernels.host is None:
            if memory.on_host:
                kernels.handle.uses.wait()
            self._ask(stream, [memory], lambda: check(library.sparserl_plan_update_values(*arguments)))
        else:
            status = library.sparserl_plan_update_values(*arguments)
            if status != Status.NO_DEVICE or not memory.on_host:
                check(status)
            kernels.host = kernels.host.with_values(memory)
        kernels.updates += 1

    def set_workspace(self, workspace, *, stream=None):
        """Lets products on a stream write to an array of bytes on the GPU meanwhile, and no longer to the plan's
        own workspace, so that streams with one each may use the plan at the same time. It has `workspace_bytes`, of
        `plan.T` too where that is used, after `wait()`, and is aligned to 256 bytes, as new arrays are. None takes
        it back, and another takes its place, when what was asked of the stream is done. The stream is found as that of products is, by the
        workspace; without one it is the default stream, unless it is given."""
        stream = _arrays.stream_of(workspace, stream)
        uses, memory = self._kernels.handle.uses, None
        if workspace is not None:
            memory = _arrays.memory_of("workspace", workspace, stream)
            self._check_place("workspace", memory)
            if memory.dtype != "u1" or len(memory.shape) != 1:
                raise TypeError(f"workspace has {len(memory.shape)} dimensions of {memory.dtype}: expected bytes (u1) "
                                "in a row")
        pointer, size = (None, 0) if memory is None else (memory.pointer, memory.shape[0])
        number = self._handle()
        for other in stream.others([memory]):
            self._kernels.context.primary_context.order(other, stream.handle)
        uses.set_workspace(
            stream, memory, lambda: check(library.sparserl_plan_set_workspace(number, stream.handle, pointer, size)))

    def wait(self):
        """Waits until nothing better is searched for any more, and gives the plan."""
        check(library.sparserl_plan_wait(self._handle()))
        return self

    def save(self, path):
        """Writes the plan to a file, once nothing is searched for any more. It holds no matrix."""
        check(library.sparserl_plan_save(self._handle(), path_of(path)))

    def __reduce__(self):
        # What it has is the library's and on a GPU, where nothing here could make another of it.
        raise TypeError("a plan is not copied or pickled: give it to others as it is, or write it by plan.save(path), "
                        "to be read by sparserl.load(path, A)")

    def close(self):
        """Destroys the plan: waits for the streams that it was used on. Graphs with its products must not
        be launched any more."""
        self._kernels.handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def plan(A, op="spmv", cols=None, *, dense=None, context=None, **options):
    """A plan for products with a matrix in CSR of SciPy, CuPy or PyTorch, or of anything with `indptr`,
    `indices`, `data` and `shape` (f16, bf16, f32 or f64, 32- or 64-bit integers). Columns increase in each
    row. With `op="spmm"` the products are with dense matrices of `cols` columns, which lie as `dense` says:
    "row-major" without gaps (the default), "strided", with gaps between rows, or "column-major".

    On a GPU it is there as soon as plain CSR is compiled, which `sparserl.compile_ahead` does before; a better
    kernel takes its place when it is found in the background. Without a GPU all is done when this returns, and
    products are computed on the host by SciPy, with an epilogue if it is a ready one. The GPU is the one of the
    arrays, that of the context, or the first.

    The options are those of the header (SPARSERL_OPTION_...) in lower case: `expected_calls`, `measure`,
    `deadline`, `memory_limit`, `deterministic`, `values_variable`, `transpose_too`, `epilogue`,
    `epilogue_source`, `epilogue_user`, `transposed_epilogue`, `transposed_epilogue_source`,
    `transposed_epilogue_user`, `check_pointers`. Products of `plan.T` have the epilogue of those of `plan`, unless one
    of the options with `transposed_` says which they have; `transposed_epilogue="none"` is none, which
    `plan.T.epilogue` says as "": an empty text takes an option back.
    """
    options = options_of(op, cols, dense, options)

    def make(context, matrix):
        with Options(options) as given:
            return create(library.sparserl_plan_create, context, matrix, given)

    return _made(A, context, make)


def options_of(op, cols, dense, options):
    """The options of the header for what a plan is to compute."""
    if (op, cols is None) not in (("spmv", True), ("spmm", False)):
        raise ValueError(f"op={op!r}, cols={cols!r}: expected op='spmv', or op='spmm' and a number of columns")
    if cols is not None:
        options = {**options, "columns": cols}
    if dense is not None:
        numbers = {order: number for number, order in ORDERS.items()}
        if dense not in numbers:
            raise ValueError(f"dense={dense!r}: expected {' or '.join(map(repr, numbers))}")
        options = {**options, "dense": numbers[dense]}
    return options


def load(path, A, *, context=None, memory_limit=None, check_pointers=None):
    """A plan that was saved, for a matrix of the same pattern and a GPU of the same architecture. The file
    holds machine code: read only files that you trust. It does not hold the options that this takes."""
    def make(context, matrix):
        with Options({"memory_limit": memory_limit, "check_pointers": check_pointers}) as given:
            return create(library.sparserl_plan_load_with_options, context, matrix, path_of(path), given)

    return _made(A, context, make)


def _made(A, context, make):
    matrix = _matrix.Matrix(A)
    context = _context.of(context, matrix.device)
    copy = matrix.copy_into(context)
    try:
        number = make(context.handle, copy)
    finally:
        _matrix.destroy(copy)
    return Plan(_Kernels(number, context, matrix))
