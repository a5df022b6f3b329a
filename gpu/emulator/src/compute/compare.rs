//! Comparison and selection.

use std::sync::Arc;

use ::half::{bf16, f16};

use super::float::Float;
use super::half::{self, Half};
use super::integer::{Integer, with_integer};
use super::lanes::{
    Destination, Pair, PredicateSource, Run, Source, Value, choose, map3, spread, test2,
};
use super::registers::Registers;
use super::select::{Flow, Form, Plan, Type};
use crate::error::PtxError;

/// Lanes for which a comparison holds.
type Lanes = Box<dyn Fn(&Registers) -> u32 + Send + Sync>;

/// What is compared; on floats true of no numbers where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal { unordered: bool },
    NotEqual { unordered: bool },
    Less { unordered: bool },
    LessOrEqual { unordered: bool },
    Greater { unordered: bool },
    GreaterOrEqual { unordered: bool },
    Numbers,
    NoNumbers,
}

impl Comparison {
    fn parse(name: &str, is_unsigned: bool) -> Option<Self> {
        let (unordered, name) = match name.strip_suffix('u') {
            Some(name) => (true, name),
            None => (false, name),
        };
        Some(match name {
            "eq" => Self::Equal { unordered },
            "ne" => Self::NotEqual { unordered },
            "lt" => Self::Less { unordered },
            "le" => Self::LessOrEqual { unordered },
            "gt" => Self::Greater { unordered },
            "ge" => Self::GreaterOrEqual { unordered },
            "lo" if is_unsigned && !unordered => Self::Less { unordered },
            "ls" if is_unsigned && !unordered => Self::LessOrEqual { unordered },
            "hi" if is_unsigned && !unordered => Self::Greater { unordered },
            "hs" if is_unsigned && !unordered => Self::GreaterOrEqual { unordered },
            "num" if !unordered => Self::Numbers,
            "nan" if !unordered => Self::NoNumbers,
            _ => return None,
        })
    }

    /// Lanes for which it holds of two integers.
    fn integers<T: Integer>(self, form: &mut Form<'_>) -> Result<Lanes, PtxError> {
        let sources = (form.source::<T>(1)?, form.source::<T>(2)?);
        Ok(match self {
            Self::Equal { unordered: false } => Box::new(test2(sources, |a, b| a == b)),
            Self::NotEqual { unordered: false } => Box::new(test2(sources, |a, b| a != b)),
            Self::Less { unordered: false } => Box::new(test2(sources, |a, b| a < b)),
            Self::LessOrEqual { unordered: false } => Box::new(test2(sources, |a, b| a <= b)),
            Self::Greater { unordered: false } => Box::new(test2(sources, |a, b| a > b)),
            Self::GreaterOrEqual { unordered: false } => Box::new(test2(sources, |a, b| a >= b)),
            _ => return Err(form.unknown()),
        })
    }

    /// Lanes for which it holds of what `f` makes of two floats.
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "the negated comparisons hold for NaN")]
    fn floats<A: Value, F: Float>(
        self,
        sources: (Source<A>, Source<A>),
        f: impl Fn(A) -> F + Copy + Send + Sync + 'static,
    ) -> Lanes {
        match self {
            Self::Equal { unordered: false } => Box::new(test2(sources, move |a, b| f(a) == f(b))),
            Self::NotEqual { unordered: false } => {
                Box::new(test2(sources, move |a, b| f(a) < f(b) || f(a) > f(b)))
            }
            Self::Less { unordered: false } => Box::new(test2(sources, move |a, b| f(a) < f(b))),
            Self::LessOrEqual { unordered: false } => {
                Box::new(test2(sources, move |a, b| f(a) <= f(b)))
            }
            Self::Greater { unordered: false } => Box::new(test2(sources, move |a, b| f(a) > f(b))),
            Self::GreaterOrEqual { unordered: false } => {
                Box::new(test2(sources, move |a, b| f(a) >= f(b)))
            }
            Self::Equal { unordered: true } => {
                Box::new(test2(sources, move |a, b| !(f(a) < f(b) || f(a) > f(b))))
            }
            Self::NotEqual { unordered: true } => {
                Box::new(test2(sources, move |a, b| f(a) != f(b)))
            }
            Self::Less { unordered: true } => Box::new(test2(sources, move |a, b| !(f(a) >= f(b)))),
            Self::LessOrEqual { unordered: true } => {
                Box::new(test2(sources, move |a, b| !(f(a) > f(b))))
            }
            Self::Greater { unordered: true } => {
                Box::new(test2(sources, move |a, b| !(f(a) <= f(b))))
            }
            Self::GreaterOrEqual { unordered: true } => {
                Box::new(test2(sources, move |a, b| !(f(a) < f(b))))
            }
            Self::Numbers => Box::new(test2(sources, move |a, b| !f(a).is_nan() && !f(b).is_nan())),
            Self::NoNumbers => Box::new(test2(sources, move |a, b| f(a).is_nan() || f(b).is_nan())),
        }
    }
}

/// What a comparison is combined with.
#[derive(Clone, Copy, Debug)]
struct Combination {
    f: fn(u32, u32) -> u32,
    with: PredicateSource,
}

fn combine(combination: Option<Combination>, registers: &Registers, lanes: u32) -> u32 {
    match combination {
        Some(Combination { f, with }) => f(lanes, with.read(registers)),
        None => lanes,
    }
}

/// What `setp` and `set` have in common: the comparison's lanes, a second element's for two halves,
/// and what they are combined with.
struct Test {
    lanes: [Option<Lanes>; 2],
    combination: Option<Combination>,
}

impl Test {
    /// Of operands 1 and 2, and 3 where they are combined with it.
    fn select(form: &mut Form<'_>, ty: Type) -> Result<Self, PtxError> {
        let is_unsigned = matches!(ty, Type::U16 | Type::U32 | Type::U64);
        let Some(comparison) = form.take_any(|name| Comparison::parse(name, is_unsigned)) else {
            return Err(form.unknown());
        };
        let f = form.take_any(|name| -> Option<fn(u32, u32) -> u32> {
            Some(match name {
                "and" => |a, b| a & b,
                "or" => |a, b| a | b,
                "xor" => |a, b| a ^ b,
                _ => return None,
            })
        });
        let lanes = match ty {
            Type::F32 => [Some(floats::<f32>(form, comparison)?), None],
            Type::F64 => [Some(floats::<f64>(form, comparison)?), None],
            Type::F16 => [Some(halves::<f16>(form, comparison)?), None],
            Type::BF16 => [Some(halves::<bf16>(form, comparison)?), None],
            Type::F16x2 => pairs::<f16>(form, comparison)?.map(Some),
            Type::BF16x2 => pairs::<bf16>(form, comparison)?.map(Some),
            _ => [Some(with_integer!(form, ty, T => comparison.integers::<T>(form)?)), None],
        };
        let combination = match f {
            Some(f) => Some(Combination { f, with: form.predicate(3)? }),
            None => None,
        };
        Ok(Self { lanes, combination })
    }
}

fn floats<F: Float>(form: &mut Form<'_>, comparison: Comparison) -> Result<Lanes, PtxError> {
    let flush = form.take("ftz");
    let sources = (form.source::<F>(1)?, form.source::<F>(2)?);
    Ok(if flush {
        comparison.floats(sources, F::flush)
    } else {
        comparison.floats(sources, |a: F| a)
    })
}

fn halves<H: Half>(form: &mut Form<'_>, comparison: Comparison) -> Result<Lanes, PtxError> {
    let finish = half::Finish::take(form);
    let sources = (form.source::<H>(1)?, form.source::<H>(2)?);
    Ok(comparison.floats(sources, move |a: H| finish.before(a).wide()))
}

fn pairs<H: Half>(form: &mut Form<'_>, comparison: Comparison) -> Result<[Lanes; 2], PtxError> {
    let finish = half::Finish::take(form);
    let sources = (form.source::<Pair<H>>(1)?, form.source::<Pair<H>>(2)?);
    Ok([0, 1].map(|element| {
        let of = move |pair: Pair<H>| {
            let [low, high] = pair.0;
            finish.before(if element == 0 { low } else { high }).wide()
        };
        comparison.floats(sources, of)
    }))
}

/// `setp`
pub(super) fn set_predicate(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    let [p, q] = form.predicate_pair(0)?;
    let Test { lanes: [first, second], combination } = Test::select(form, ty)?;
    let Some(first) = first else { return Err(form.unknown()) };
    Ok(Plan::clear(Arc::new(move |registers, lanes| {
        let holds = first(registers);
        let other = second.as_ref().map_or(!holds, |second| second(registers));
        let values = combine(combination, registers, holds);
        let others = combine(combination, registers, other);
        p.write(registers, lanes, values);
        q.write(registers, lanes, others);
        0
    })))
}

/// `set`: all ones, or 1.0.
pub(super) fn set(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let (ty, to) = (form.ty()?, form.ty()?);
    let Test { lanes: [first, second], combination } = Test::select(form, ty)?;
    let Some(first) = first else { return Err(form.unknown()) };
    let one = match to {
        Type::U32 | Type::S32 => u32::MAX,
        Type::U16 | Type::S16 => 0xffff,
        Type::F32 => 1.0_f32.to_bits(),
        Type::F16 | Type::F16x2 => u32::from(f16::ONE.to_bits()),
        Type::BF16 | Type::BF16x2 => u32::from(bf16::ONE.to_bits()),
        _ => return Err(form.unknown()),
    };
    if second.is_none() && matches!(to, Type::F16x2 | Type::BF16x2) {
        return Err(form.unknown());
    }
    let d: Destination<u32> = form.destination(0)?;
    Ok(Plan::clear(Arc::new(move |registers, lanes| {
        let holds = combine(combination, registers, first(registers));
        let values = match &second {
            None => spread(holds, one, 0),
            Some(second) => {
                let high = combine(combination, registers, second(registers));
                let (low, high) = (spread(holds, one & 0xffff, 0), spread(high, one << 16, 0));
                std::array::from_fn(|lane| low[lane] | high[lane])
            }
        };
        d.write(registers, lanes, &values);
        0
    })))
}

/// `selp`
pub(super) fn select(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let bits = form.ty()?.bits();
    let p = form.predicate(3)?;
    let run = match bits {
        16 => chosen::<u16>(form, p)?,
        32 => chosen::<u32>(form, p)?,
        64 => chosen::<u64>(form, p)?,
        _ => return Err(form.unknown()),
    };
    Ok(Plan { run, flow: Flow::Choose(p) })
}

fn chosen<T: Value>(form: &mut Form<'_>, p: PredicateSource) -> Result<Run, PtxError> {
    let sources = (form.source::<T>(1)?, form.source::<T>(2)?);
    Ok(choose(form.destination(0)?, sources, p))
}

/// `slct`: the first where the third is not negative.
pub(super) fn select_by_sign(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    fn run<T: Value>(form: &mut Form<'_>, by: Type) -> Result<Run, PtxError> {
        let flush = form.take("ftz");
        let (d, a, b) = (form.destination(0)?, form.source::<T>(1)?, form.source::<T>(2)?);
        Ok(match by {
            Type::S32 if !flush => {
                map3(d, (a, b, form.source(3)?), |a, b, c: i32| if c >= 0 { a } else { b })
            }
            Type::F32 => map3(d, (a, b, form.source(3)?), move |a, b, c: f32| {
                let c = if flush { c.flush() } else { c };
                if c >= 0.0 { a } else { b }
            }),
            _ => return Err(form.unknown()),
        })
    }
    let by = form.ty()?;
    let run = match form.ty()?.bits() {
        16 => run::<u16>(form, by)?,
        32 => run::<u32>(form, by)?,
        64 => run::<u64>(form, by)?,
        _ => return Err(form.unknown()),
    };
    Ok(Plan { run, flow: Flow::Keep })
}
