"""libsparserl, called as its header says.

Options, statuses, functions and structures are read from sparserl.h, which cbindgen writes: what it
gains is there in Python, and nothing can differ.
"""

import ctypes
import enum
import operator
import os
import re
import sys
from pathlib import Path

# Names a libsparserl.so or the folder that has one, in the place of the one beside this file.
VARIABLE = "SPARSERL_LIBRARY"
# Names the folders in which the library looks for NVRTC first.
COMPILER_VARIABLE = "SPARSERL_NVRTC"

FOLDER = Path(__file__).resolve().parent
NUMBERS = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
           "double": ctypes.c_double, "size_t": ctypes.c_size_t,
           "sparserl_status": ctypes.c_int32}


def _header():
    # Beside this file where it is installed, two folders above in a checkout.
    places = [FOLDER / "sparserl.h", FOLDER.parents[1] / "sparserl.h"]
    for place in places:
        if place.is_file():
            return place.read_text()
    raise ImportError(f"there is no sparserl.h at {' or '.join(map(str, places))}")


HEADER = _header()


class Constant:
    """A number of the header, and what is said of it there."""

    def __init__(self, comment, number):
        self.comment = " ".join(line.lstrip("/ ") for line in comment.splitlines())
        self.number = int(number)


CONSTANTS = {name: Constant(comment, number) for comment, name, number in
             re.findall(r"((?://.*\n)*)#define (SPARSERL_\w+) (\d+)\n", HEADER)}

# They follow each other at the end of the constants.
Status = enum.IntEnum("Status", {
    name.removeprefix("SPARSERL_"): CONSTANTS[name].number
    for name in re.findall(r"#define (SPARSERL_\w+) \d", HEADER[HEADER.index("#define SPARSERL_SUCCESS"):])
})


def group(prefix):
    """The constants with a prefix, by the rest of their names in lower case."""
    return {name.removeprefix(prefix).lower(): constant
            for name, constant in CONSTANTS.items() if name.startswith(prefix)}


def _structure(name):
    fields = re.search(rf"typedef struct {name} {{\n(.*?)\n}}", HEADER, re.DOTALL)[1]
    found = re.findall(r"^  (?:const )?(\w+) (\*?)(\w+)(?:\[(\d+)\])?;", fields, re.MULTILINE)
    types = [(field, ctypes.c_void_p if pointer else NUMBERS[kind], length)
             for kind, pointer, field, length in found]
    return [(field, kind * int(length) if length else kind) for field, kind, length in types]


class Csr(ctypes.Structure):
    """`sparserl_csr`."""

    _fields_ = _structure("sparserl_csr")


LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


class Log(ctypes.Structure):
    """`sparserl_log`."""

    _fields_ = [("function", LOG_FUNCTION), ("user", ctypes.c_void_p)]


def _open():
    named = os.environ.get(VARIABLE)
    path = Path(named or FOLDER).resolve()
    if path.is_dir():
        path /= "libsparserl.so"
    if not path.is_file():
        raise ImportError(f"there is no {path}: install the package by pip, or name the library by {VARIABLE}")
    library = ctypes.CDLL(str(path))
    for result, name, parameters in re.findall(
            r"^((?:const )?\w+) \*?(sparserl_\w+)\(([^)]*)\);", HEADER, re.MULTILINE):
        function = getattr(library, name)
        function.restype = ctypes.c_char_p if result == "const char" else NUMBERS[result]
        parameters = [parameter.split() for parameter in parameters.split(",")]
        function.argtypes = [ctypes.c_void_p if "*" in words[-1] else NUMBERS[words[0]]
                             for words in parameters if words != ["void"]]
    return library


def _name_compiler():
    # The library looks among the packages of the `python3` in PATH, which may be another one.
    if COMPILER_VARIABLE in os.environ:
        return
    wheels = [Path(folder) / wheel for folder in sys.path if folder
              for wheel in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")]
    found = [str(wheel) for wheel in wheels if wheel.is_dir()]
    if found:
        os.environ[COMPILER_VARIABLE] = os.pathsep.join(found)


_name_compiler()
library = _open()


def version():
    """The library's version, as MAJOR.MINOR.PATCH."""
    number = library.sparserl_version()
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"


class Error(Exception):
    """A call of the library that did not do what it was asked to.

    `status` is a member of `sparserl.Status`, `text` says in one line what is wrong.
    """

    def __init__(self, status, text):
        words = library.sparserl_status_text(status).decode()
        super().__init__(f"{words}: {text}")
        self.status, self.text = Status(status), text

    def __reduce__(self):
        return Error, (int(self.status), self.text)


def check(status):
    """Raises what a call returned unless it is success."""
    if status:
        raise Error(status, library.sparserl_last_error().decode(errors="replace"))


def create(function, *arguments):
    """The handle that a function of the library makes."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle.value


# An option's comment says first of what type it is.
OPTIONS = group("SPARSERL_OPTION_")


class Options:
    """Options of a context or a plan, for as long as a `with` lasts."""

    def __init__(self, given):
        self.given = given

    def __enter__(self):
        self.handle = create(library.sparserl_options_create)
        try:
            for name, value in self.given.items():
                if value is not None:
                    self._set(name, value)
        except BaseException:
            self.__exit__()
            raise
        return self.handle

    def _set(self, name, value):
        option = OPTIONS.get(name)
        if option is None:
            raise TypeError(f"there is no option {name!r}: expected one of {', '.join(OPTIONS)}")
        kind = re.match(r"(\w+)", option.comment)[1]
        if kind == "Text":
            value = os.fsencode(value)
            pointer, size = value, len(value)
        elif kind == "sparserl_log":
            pointer, size = ctypes.byref(value), ctypes.sizeof(value)
        else:
            kind = NUMBERS[kind]
            number = _float(name, value) if kind is ctypes.c_double else _integer(name, value, kind)
            pointer, size = ctypes.byref(kind(number)), ctypes.sizeof(kind)
        check(library.sparserl_options_set(self.handle, option.number, pointer, size))

    def __exit__(self, *_):
        library.sparserl_options_destroy(self.handle)


def _float(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}: expected a number") from None


def path_of(path):
    """A path as the library takes it."""
    path = os.fsencode(path)
    if b"\0" in path:
        raise ValueError("embedded null byte")  # As open() says it: C ends there.
    return path


def _integer(name, value, kind):
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1e6 calls
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: expected a whole number") from None
    if kind(value).value != value:
        raise OverflowError(f"{name} is {value}, which is no {kind.__name__.removeprefix('c_')}")
    return value
