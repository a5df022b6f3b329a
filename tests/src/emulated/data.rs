//! Arguments of a launch. All numbers are exact in `f64`, whatever they are stored as.

use anyhow::{Context, Result, bail};
use half::{bf16, f16};

use super::layouts::Matrix;
use super::random::{draw, fraction};

/// An argument.
#[derive(Debug)]
pub struct CaseArgument {
    /// Name of the parameter in the kernel.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// What it holds.
    pub content: Content,
}

/// What an argument holds.
#[derive(Debug)]
pub enum Content {
    /// One number, passed by value.
    Value(Vec<f64>),
    /// A buffer that the kernel may only read.
    ReadOnly(Vec<f64>),
    /// The same, which kernels before it in the stream may be writing.
    Input(Vec<f64>),
    /// A buffer with something in it.
    Writable(Vec<f64>),
    /// A buffer of so many bytes that holds nothing yet.
    Output(usize),
}

impl Content {
    /// The numbers; none of an output.
    #[must_use]
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::Value(numbers)
            | Self::ReadOnly(numbers)
            | Self::Input(numbers)
            | Self::Writable(numbers) => numbers,
            Self::Output(_) => &[],
        }
    }
}

impl CaseArgument {
    pub(super) fn parse(text: &str, matrix: Option<&Matrix>) -> Result<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let (name, rights, element, fill) = match words.as_slice() {
            [
                name,
                rights @ ("read-only" | "input" | "writable" | "output"),
                element,
                fill @ ..,
            ] => (*name, *rights, *element, fill),
            [name, element, fill @ ..] => (*name, "value", *element, fill),
            _ => bail!("no argument"),
        };
        let element = ElementType::parse(element)?;
        let content = match rights {
            "value" => Content::Value(numbers(name, Some(1), fill, matrix)?),
            "output" => {
                let [count] = fill else { bail!("an output has a number of elements only") };
                let count = match count.parse() {
                    Ok(count) => count,
                    Err(_) => number_of(&numbers(name, None, fill, matrix)?)?,
                };
                Content::Output(count * element.bytes())
            }
            rights => {
                let (count, fill) = match fill {
                    [first, rest @ ..] if first.parse::<usize>().is_ok() => {
                        (Some(first.parse()?), rest)
                    }
                    fill => (None, fill),
                };
                let numbers = numbers(name, count, fill, matrix)?;
                match rights {
                    "read-only" => Content::ReadOnly(numbers),
                    "input" => Content::Input(numbers),
                    _ => Content::Writable(numbers),
                }
            }
        };
        Ok(Self { name: name.to_owned(), element, content })
    }
}

fn number_of(numbers: &[f64]) -> Result<usize> {
    Ok(*numbers.first().context("no number")? as usize)
}

fn numbers(
    name: &str,
    count: Option<usize>,
    fill: &[&str],
    matrix: Option<&Matrix>,
) -> Result<Vec<f64>> {
    let indices = || Ok::<_, anyhow::Error>(0..count.context("no number of elements")?);
    Ok(match fill {
        ["zero"] => indices()?.map(|_| 0.0).collect(),
        ["value", value] => {
            let value = value.parse()?;
            indices()?.map(|_| value).collect()
        }
        ["iota", first] => {
            let first: f64 = first.parse()?;
            indices()?.map(|i| first + i as f64).collect()
        }
        ["random"] => indices()?.map(|i| fraction(name, i)).collect(),
        ["random", below] => {
            let below: u64 = below.parse()?;
            indices()?.map(|i| ((draw(name, i) >> 33) % below) as f64).collect()
        }
        [layout] => matrix.context("no matrix")?.layout(layout, 1)?,
        [layout, parameter] => matrix.context("no matrix")?.layout(layout, parameter.parse()?)?,
        _ => bail!("unknown content"),
    })
}

/// How a number is stored.
#[derive(Clone, Copy, Debug)]
pub enum ElementType {
    /// binary16
    F16,
    /// bfloat16
    BF16,
    /// binary32
    F32,
    /// binary64
    F64,
    /// Whole numbers of so many bytes, in two's complement if signed.
    Integer {
        /// 1, 2, 4 or 8.
        bytes: usize,
    },
}

impl ElementType {
    fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "f16" => Self::F16,
            "bf16" => Self::BF16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "u8" => Self::Integer { bytes: 1 },
            "u16" | "i16" => Self::Integer { bytes: 2 },
            "u32" | "i32" => Self::Integer { bytes: 4 },
            "u64" | "i64" => Self::Integer { bytes: 8 },
            _ => bail!("no type `{word}`"),
        })
    }

    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::Integer { bytes } => bytes,
        }
    }

    /// The bytes of an array.
    #[must_use]
    pub fn encode(self, numbers: &[f64]) -> Vec<u8> {
        let encode = |&number: &f64| match self {
            Self::F16 => f16::from_f64(number).to_le_bytes().to_vec(),
            Self::BF16 => bf16::from_f64(number).to_le_bytes().to_vec(),
            Self::F32 => (number as f32).to_le_bytes().to_vec(),
            Self::F64 => number.to_le_bytes().to_vec(),
            Self::Integer { bytes } => {
                (number as i64).to_le_bytes().into_iter().take(bytes).collect()
            }
        };
        numbers.iter().flat_map(encode).collect()
    }

    /// The numbers of an array; whole numbers as signed.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        let decode = |element: &[u8]| {
            let is_negative = element.last().is_some_and(|&byte| byte >= 0x80);
            let mut wide = [if is_negative { 0xff } else { 0 }; 8];
            for (to, from) in wide.iter_mut().zip(element) {
                *to = *from;
            }
            let bits = i64::from_le_bytes(wide);
            match self {
                Self::F16 => f16::from_bits(bits as u16).to_f64(),
                Self::BF16 => bf16::from_bits(bits as u16).to_f64(),
                Self::F32 => f64::from(f32::from_bits(bits as u32)),
                Self::F64 => f64::from_bits(bits as u64),
                Self::Integer { .. } => bits as f64,
            }
        };
        bytes.chunks_exact(self.bytes()).map(decode).collect()
    }
}
