//! The parameters that a kernel declares.

use std::fmt;

use sparserl_core::layout::ElementType;
use sparserl_core::task::Dtype;

use super::words::unqualified;

/// A parameter, as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Empty where it has none.
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A parameter's C++ type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pointer to elements.
    Array(Element),
    /// A number by value.
    Number(Element),
}

/// Type of a number, or of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float`, `double`, or one of 16 bits.
    Float(Dtype),
    /// Signed or not.
    Integer {
        /// Its size.
        bytes: usize,
    },
}

impl Parameter {
    /// Its name for a message, or its number where it has none.
    pub(super) fn quoted(&self, index: usize) -> String {
        if self.name.is_empty() {
            format!("number {}", index + 1)
        } else {
            format!("`{}`", self.name)
        }
    }
}

impl Kind {
    /// The type of floating-point elements.
    pub(super) fn dtype(self) -> Option<Dtype> {
        match self {
            Self::Array(Element::Float(dtype)) | Self::Number(Element::Float(dtype)) => Some(dtype),
            _ => None,
        }
    }
}

impl Element {
    /// The type that C++ or generated kernels call so.
    pub(super) fn of_words(words: &[&str]) -> Option<Self> {
        let bytes = match words {
            ["float"] => return Some(Self::Float(Dtype::F32)),
            ["double"] => return Some(Self::Float(Dtype::F64)),
            ["f16" | "__half" | "half"] => return Some(Self::Float(Dtype::F16)),
            ["bf16" | "__nv_bfloat16"] => return Some(Self::Float(Dtype::BF16)),
            ["u8" | "uint8_t" | "int8_t"] => 1,
            ["u16" | "uint16_t" | "int16_t"] => 2,
            ["u32" | "uint32_t" | "int32_t" | "uint"] => 4,
            ["u64" | "uint64_t" | "int64_t" | "size_t"] => 8,
            // In any order, as C++ has it.
            words => {
                let has = |word: &str| words.contains(&word);
                let longs = words.iter().filter(|&&word| word == "long").count();
                match (has("char"), has("short"), longs, has("int")) {
                    (true, false, 0, false) => 1,
                    (false, true, 0, _) => 2,
                    (false, false, 0, true) => 4,
                    (false, false, 0, false) if has("unsigned") || has("signed") => 4,
                    (false, false, 1 | 2, _) => 8,
                    _ => return None,
                }
            }
        };
        let is_integer =
            |word: &&str| !matches!(*word, "float" | "double" | "bool") && !HALVES.contains(word);
        words.iter().all(is_integer).then_some(Self::Integer { bytes })
    }

    /// Its size.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Float(dtype) => dtype.size(),
            Self::Integer { bytes } => bytes,
        }
    }
}

impl From<ElementType> for Element {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F32 => Self::Float(Dtype::F32),
            ElementType::F64 => Self::Float(Dtype::F64),
            ElementType::F16 => Self::Float(Dtype::F16),
            ElementType::BF16 => Self::Float(Dtype::BF16),
            ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
            | ElementType::I32 => Self::Integer { bytes: element.size() },
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element, pointer) = match self {
            Self::Array(element) => (element, "*"),
            Self::Number(element) => (element, ""),
        };
        match element {
            Element::Float(Dtype::F32) => write!(f, "float{pointer}"),
            Element::Float(Dtype::F64) => write!(f, "double{pointer}"),
            Element::Float(half @ (Dtype::F16 | Dtype::BF16)) => write!(f, "{half}{pointer}"),
            Element::Integer { bytes } => write!(f, "int{}_t{pointer}", 8 * bytes),
        }
    }
}

/// Reads what stands between a kernel's parentheses, without comments.
pub(super) fn read_parameters(text: &str) -> Result<Vec<Parameter>, ParameterError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(str::trim).map(parameter).collect()
}

fn parameter(text: &str) -> Result<Parameter, ParameterError> {
    let written = text.split('=').next().unwrap_or_default();
    let declarator = unqualified(written);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = declarator
        .split(|c| !is_name(c))
        .filter(|word| !word.is_empty() && !is_qualifier(word))
        .collect();
    let pointers = declarator.matches(['*', '[']).count();
    let is_other = |c: char| !(is_name(c) || c.is_whitespace() || "*[]".contains(c));
    // Types of 16 bits are one word, and names behind another type.
    let continues =
        |&(place, word): &(usize, &&str)| is_type(word) && (place == 0 || !HALVES.contains(word));
    let type_words = words.iter().enumerate().take_while(continues).count();
    let (types, names) = words.split_at(type_words);
    let has_other = declarator.contains(is_other) || names.len() > 1;
    let kind = match (Element::of_words(types).filter(|_| !has_other), pointers) {
        (Some(element), 0) => Some(Kind::Number(element)),
        (Some(element), 1) => Some(Kind::Array(element)),
        _ => None,
    };
    match kind {
        Some(kind) => {
            Ok(Parameter { name: names.first().copied().unwrap_or_default().to_owned(), kind })
        }
        None => {
            let declaration = written.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(ParameterError::Type { declaration: declaration.chars().take(80).collect() })
        }
    }
}

fn is_qualifier(word: &str) -> bool {
    ["const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__"]
        .contains(&word)
}

pub(super) fn is_type(word: &str) -> bool {
    let words = [
        "int", "unsigned", "signed", "float", "double", "long", "short", "char", "bool", "uint",
        "size_t", "u8", "u16", "u32", "u64", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
        "uint16_t", "uint32_t", "uint64_t",
    ];
    words.contains(&word) || HALVES.contains(&word)
}

/// Floating-point types of 16 bits, as generated kernels and CUDA call them.
const HALVES: [&str; 5] = ["f16", "__half", "half", "bf16", "__nv_bfloat16"];

/// It is not clear what a kernel's parameters are given, or they are none that can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No array or number of this type can be given.
    #[error(
        "the parameter `{declaration}` has a type that is not given: expected float, double, f16, bf16 or integers, or \
         pointers to them"
    )]
    Type {
        /// How it is declared.
        declaration: String,
    },
    /// Nobody says what a parameter is given, and its name is no standard one.
    #[error(
        "it is not known what the parameter {parameter} is given: declare it, as in {line}, with {expected} or another \
         expression in place of each ?"
    )]
    Unknown {
        /// Its name in backquotes, or its number.
        parameter: String,
        /// Standard names for what parameters of its type are given.
        expected: String,
        /// What to write.
        line: String,
    },
    /// The launch passes something unknown.
    #[error("the launch passes `{argument}`, which is not known: expected {known} or a number")]
    Argument {
        /// What it passes.
        argument: String,
        /// The standard names.
        known: String,
    },
    /// The launch does not pass as much as the kernel takes.
    #[error("the launch passes {arguments} arguments to {parameters} parameters")]
    Count {
        /// How many it passes.
        arguments: usize,
        /// How many there are.
        parameters: usize,
    },
    /// A parameter has another type than what it is given.
    #[error("the parameter {parameter} is of type {kind}, which cannot be given {role}")]
    Unsuitable {
        /// Its name in backquotes, or its number.
        parameter: String,
        /// Its type.
        kind: Kind,
        /// What it is given.
        role: String,
    },
    /// Two parameters are given the same.
    #[error("the parameters {first} and {second} are both given {role}")]
    Twice {
        /// The first.
        first: String,
        /// The second.
        second: String,
        /// What they are given.
        role: String,
    },
    /// The dense operand or the output is given to none.
    #[error("no parameter is given {role}")]
    Missing {
        /// Its standard name.
        role: String,
    },
}
