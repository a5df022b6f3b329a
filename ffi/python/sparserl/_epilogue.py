"""What the epilogue of a plan takes, and what those that are ready do on the host."""

import re
from typing import NamedTuple

import numpy

MEMBER = re.compile(r"(const )?(Scalar|Dense) (\w+)((?:\[\w+\])*);")


class Member(NamedTuple):
    """A member of the user block."""

    name: str
    extent: str  # how many elements an array has, as it is declared; empty for a number
    is_scalar: bool  # of the type of sums, not of that of the dense operands
    is_const: bool

    def __str__(self):
        const, kind = "const " * self.is_const, "Scalar" if self.is_scalar else "Dense"
        return f"{const}{kind} {self.name}{self.extent}"

    def shape(self, rows, cols, columns):
        """The shape of an array, for op(A) of so many rows and columns, and dense matrices of so many columns, which
        is None for vectors."""
        of_result = (rows,) if columns is None else (rows, columns)
        return {"[1]": (1,), "[rows]": (rows,), "[columns]": (cols,), "[N]": (columns or 1,),
                "[rows][N]": of_result}[self.extent]


def members(declarations):
    """The members that are declared, in order."""
    return [Member(name, extent, kind == "Scalar", bool(const))
            for const, kind, name, extent in MEMBER.findall(declarations)]


# What is done to rows of v = alpha op(A) x + beta y, as `ffi/src/epilogue.rs` has it in CUDA.


def _relu(rows, v):
    return numpy.where(v < 0, v.dtype.type(0), v)


def _bias(rows, v, bias):
    return v + bias[rows].reshape(-1, *[1] * (v.ndim - 1))


def _column_bias(rows, v, bias):
    return v + bias


def _clamp(rows, v, lower, upper):
    lower, upper = lower[rows], upper[rows]
    return numpy.where(v < lower, lower, numpy.where(v > upper, upper, v))


def _axpy(rows, v, vector, factor):
    return v + v.dtype.type(factor) * vector[rows]


def _dot_terms(rows, v, vector, terms):
    terms[rows] = v * vector[rows]
    return v


# By their names.
ON_HOST = {"relu": _relu, "bias": _bias, "column_bias": _column_bias, "clamp": _clamp, "axpy": _axpy,
           "dot_terms": _dot_terms}
