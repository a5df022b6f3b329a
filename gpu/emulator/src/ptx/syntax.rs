//! PTX as it is written.

use std::collections::HashMap;
use std::ops::Range;

/// A module's text, taken apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// `.file`: names by number.
    pub(super) files: HashMap<u32, String>,
    pub(super) variables: Vec<Declaration>,
    pub(super) functions: Vec<Function>,
}

/// `.entry` or `.func`.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) is_kernel: bool,
    pub(super) results: Vec<Declaration>,
    pub(super) parameters: Vec<Declaration>,
    pub(super) most_threads: Option<u32>,
    /// `.reqnctapercluster`
    pub(super) cluster: Option<[u32; 3]>,
    /// Where the arrays lie that the compiler has joined to one variable, within that.
    pub(super) local_arrays: Vec<Range<u64>>,
    /// None where it is only declared.
    pub(super) body: Option<Vec<Statement>>,
}

/// Something in a body.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) line: u32,
    pub(super) kind: StatementKind,
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// `{`
    Open,
    /// `}`
    Close,
    Label(String),
    /// `name: .branchtargets label, label;`
    BranchTargets {
        name: String,
        labels: Vec<String>,
    },
    /// `.loc`
    Location {
        /// File and line, then those where their function is called, and so on.
        places: Vec<(u32, u32)>,
    },
    Registers {
        ty: Type,
        names: Vec<RegisterName>,
    },
    Variable(Declaration),
    Instruction(Instruction),
}

/// `%x`, or `%r<10>` for `%r0` to `%r9`.
#[derive(Clone, Debug)]
pub(super) struct RegisterName {
    pub(super) name: String,
    pub(super) count: Option<u64>,
}

/// `@!%p add.s32 %r1, %r2, 3;`
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// Name of the predicate, and the value with which it takes effect.
    pub(super) guard: Option<(String, bool)>,
    pub(super) opcode: String,
    pub(super) operands: Vec<Operand>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// A register, special register, variable, function or label.
    Name {
        name: String,
        negated: bool,
        offset: i64,
    },
    Integer(u64),
    /// Bits of a binary32.
    Single(u32),
    /// Bits of a binary64.
    Double(u64),
    /// `_`
    Ignored,
    /// `a|b`
    Pair(Box<[Operand; 2]>),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `(a, b)`
    List(Vec<Operand>),
    /// `[name+offset]` or `[offset]`
    Address {
        base: Option<String>,
        offset: i64,
    },
    /// `[a, {b, c}]`: of textures and tensors.
    Other,
}

/// Where a variable is declared to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclaredSpace {
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) space: DeclaredSpace,
    /// `.extern`
    pub(super) is_extern: bool,
    pub(super) align: u64,
    /// Of an element.
    pub(super) ty: Type,
    /// Elements; none for `name[]`.
    pub(super) count: Option<u64>,
    pub(super) initial: Vec<Initial>,
}

impl Declaration {
    /// Size in bytes; 0 for `name[]`.
    pub(super) fn bytes(&self) -> u64 {
        self.count.unwrap_or(0).saturating_mul(u64::from(self.ty.bits / 8))
    }
}

/// An element of an initialiser.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Initial {
    Integer(u64),
    Single(u32),
    Double(u64),
    /// `name+8`, `generic(name)`, or `0xFF00(name)`: the bits of the mask, shifted down.
    Address {
        name: String,
        offset: i64,
        mask: Option<u64>,
    },
}

/// A fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    /// 1 for predicates.
    pub(super) bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Predicate,
    Untyped,
    Unsigned,
    Signed,
    Float,
}

impl Type {
    /// Of `u32`, without the dot.
    pub(super) fn parse(word: &str) -> Option<Self> {
        let (kind, bits) = match word {
            "pred" => (Kind::Predicate, 1),
            "b8" => (Kind::Untyped, 8),
            "b16" | "f16" | "bf16" => (Kind::Untyped, 16),
            "b32" | "f16x2" | "bf16x2" => (Kind::Untyped, 32),
            "b64" => (Kind::Untyped, 64),
            "b128" => (Kind::Untyped, 128),
            "u8" => (Kind::Unsigned, 8),
            "u16" => (Kind::Unsigned, 16),
            "u32" => (Kind::Unsigned, 32),
            "u64" => (Kind::Unsigned, 64),
            "s8" => (Kind::Signed, 8),
            "s16" => (Kind::Signed, 16),
            "s32" => (Kind::Signed, 32),
            "s64" => (Kind::Signed, 64),
            "f32" => (Kind::Float, 32),
            "f64" => (Kind::Float, 64),
            _ => return None,
        };
        Some(Self { kind, bits })
    }
}
