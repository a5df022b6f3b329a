//! Operators that stand for several of a file: what lies between them is neither written nor read
//! again.

mod attention;

use std::sync::Arc;

use super::operator::Operator;
use super::product::Packed;
use super::tensor::Value;
use super::{Source, Step};

/// A graph whose steps are looked at.
pub(super) struct Fusion<'p> {
    pub(super) constants: &'p [Value],
    /// How many values are inputs: those of the steps follow.
    pub(super) inputs: usize,
    pub(super) steps: &'p mut [Step],
}

/// An operator and its inputs.
type Fused = Option<(Operator, Vec<Source>)>;

impl Fusion<'_> {
    /// Replaces the last of the steps that one operator stands for; the others remain.
    pub(super) fn run(self) {
        for at in 0..self.steps.len() {
            let step = &self.steps[at];
            let fused = match step.operator {
                Operator::MatMul { transposed: false } => {
                    self.product(step).or_else(|| self.transposed_product(step))
                }
                Operator::Add => self.linear(step),
                Operator::Mul => self.gelu(step),
                Operator::ReduceSum { keep: false } => self.row_attention(step),
                Operator::Reshape => self.split_attention(step),
                _ => None,
            };
            if let Some((operator, inputs)) = fused {
                let step = &mut self.steps[at];
                (step.operator, step.inputs) = (operator, inputs);
            }
        }
    }

    /// The step that makes a value.
    fn step(&self, source: Source) -> Option<&Step> {
        match source {
            Source::Value { place, .. } => self.steps.get(place.checked_sub(self.inputs)?),
            Source::Constant(_) => None,
        }
    }

    /// The inputs of the operator that makes a value, if it is this one and has so many.
    fn before<const N: usize>(&self, source: Source, operator: &Operator) -> Option<[Source; N]> {
        let step = self.step(source).filter(|step| step.operator == *operator)?;
        step.inputs[..].try_into().ok()
    }

    fn constant(&self, source: Source) -> Option<&Value> {
        let Source::Constant(place) = source else { return None };
        self.constants.get(place)
    }

    fn integers(&self, source: Source) -> Option<&[i64]> {
        let Value::Integers(tensor) = self.constant(source)? else { return None };
        Some(tensor.numbers())
    }

    fn floats(&self, source: Source) -> Option<(&[usize], &[f32])> {
        let Value::Floats(tensor) = self.constant(source)? else { return None };
        Some((tensor.shape(), tensor.numbers()))
    }

    /// A constant that is one number.
    fn number(&self, source: Source) -> Option<f32> {
        let ([], &[number]) = self.floats(source)? else { return None };
        Some(number)
    }

    /// A product with a constant matrix.
    fn product(&self, step: &Step) -> Fused {
        let &[x, right] = &step.inputs[..] else { return None };
        let (&[depth, columns], numbers) = self.floats(right)? else { return None };
        let weights = Arc::new(Packed::new(numbers, [depth, columns], false).ok()?);
        Some((Operator::Linear { weights, bias: None }, vec![x]))
    }

    /// A product with a transposed matrix takes it as it was before: products read either order.
    fn transposed_product(&self, step: &Step) -> Fused {
        let &[left, right] = &step.inputs[..] else { return None };
        let before = self.step(right).filter(|step| step.operator.exchanges_last_two())?;
        let &[right] = &before.inputs[..] else { return None };
        Some((Operator::MatMul { transposed: true }, vec![left, right]))
    }

    /// A product with a constant matrix to which a constant row is added.
    fn linear(&self, step: &Step) -> Fused {
        let &[product, bias] = &step.inputs[..] else { return None };
        let product = self.step(product)?;
        let Operator::Linear { weights, bias: None } = &product.operator else { return None };
        let bias = match self.floats(bias)? {
            (&[columns], bias) if columns == weights.columns() => Some(bias.into()),
            _ => return None,
        };
        Some((Operator::Linear { weights: Arc::clone(weights), bias }, product.inputs.clone()))
    }

    /// x / 2 · (1 + erf(x · √½)).
    fn gelu(&self, step: &Step) -> Fused {
        let &[halved, sum] = &step.inputs[..] else { return None };
        let [x, half] = self.before(halved, &Operator::Mul)?;
        let [erf, one] = self.before(sum, &Operator::Add)?;
        let [scaled] = self.before(erf, &Operator::Erf)?;
        let [same, root] = self.before(scaled, &Operator::Mul)?;
        let numbers = [self.number(half)?, self.number(one)?, self.number(root)?];
        let is_gelu = same == x && numbers == [0.5, 1.0, 0.5_f32.sqrt()];
        is_gelu.then(|| (Operator::Gelu, vec![x]))
    }
}
