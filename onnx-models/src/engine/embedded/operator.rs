//! The operators that policies are written in (`trainer/src/export`), as ONNX's set 17 defines
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arithmetic::{combine, erf, gelu, layer_normalization, map, reduce, softmax};
use super::arrangement::{concat, expand, gather, reshape, slice, squeeze, transpose, unsqueeze};
use super::attention::{RowAttention, SplitAttention};
use super::product::{Packed, linear, matmul};
use super::tensor::{OperatorError, Tensor, Value};
use crate::onnx::{AttributeProto, AttributeType, DataType, NodeProto};

type Result<T> = std::result::Result<T, OperatorError>;

/// An operator with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operator {
    Add,
    Sub,
    Mul,
    /// With its right matrix as it is; or transposed, which stands for two operators of a file.
    MatMul {
        transposed: bool,
    },
    Erf,
    Softmax {
        axis: i64,
    },
    LayerNormalization {
        axis: i64,
        epsilon: f32,
    },
    ReduceMean {
        axes: Vec<i64>,
        keep: bool,
    },
    ReduceSum {
        keep: bool,
    },
    /// Of numbers in half precision.
    ToFloats,
    Identity,
    Shape,
    Reshape,
    Squeeze,
    Unsqueeze,
    Expand,
    Transpose {
        order: Vec<i64>,
    },
    Concat {
        axis: i64,
    },
    Gather {
        axis: i64,
    },
    Slice,
    Linear {
        weights: Arc<Packed>,
        bias: Option<Arc<[f32]>>,
    },
    Gelu,
    RowAttention(RowAttention),
    SplitAttention(SplitAttention),
}

/// Attributes of a node that nobody has asked for yet.
struct Attributes<'n>(BTreeMap<&'n str, &'n AttributeProto>);

impl<'n> Attributes<'n> {
    fn of(node: &'n NodeProto) -> Self {
        Self(node.attribute.iter().map(|of| (of.name.as_str(), of)).collect())
    }

    fn take(&mut self, name: &str, of: AttributeType) -> Result<Option<&'n AttributeProto>> {
        let Some(found) = self.0.remove(name) else { return Ok(None) };
        let is_of = found.r#type == i32::from(of);
        if is_of { Ok(Some(found)) } else { Err(OperatorError::Attribute(name.to_owned())) }
    }

    fn integer(&mut self, name: &str, default: i64) -> Result<i64> {
        Ok(self.take(name, AttributeType::Int)?.map_or(default, |found| found.i))
    }

    fn float(&mut self, name: &str, default: f32) -> Result<f32> {
        Ok(self.take(name, AttributeType::Float)?.map_or(default, |found| found.f))
    }

    fn integers(&mut self, name: &str) -> Result<Vec<i64>> {
        let found = self.take(name, AttributeType::Ints)?;
        found
            .map(|found| found.ints.clone())
            .ok_or_else(|| OperatorError::Attribute(name.to_owned()))
    }
}

impl Operator {
    /// The operator of a node of a file.
    pub(super) fn of(node: &NodeProto) -> Result<Self> {
        if !node.domain.is_empty() {
            return Err(OperatorError::Unknown);
        }
        let mut attributes = Attributes::of(node);
        let operator = match node.op_type.as_str() {
            "Add" => Self::Add,
            "Sub" => Self::Sub,
            "Mul" => Self::Mul,
            "MatMul" => Self::MatMul { transposed: false },
            "Erf" => Self::Erf,
            "Softmax" => Self::Softmax { axis: attributes.integer("axis", -1)? },
            "LayerNormalization" => Self::LayerNormalization {
                axis: attributes.integer("axis", -1)?,
                epsilon: attributes.float("epsilon", 1e-5)?,
            },
            "ReduceMean" => Self::ReduceMean {
                axes: attributes.integers("axes")?,
                keep: attributes.integer("keepdims", 1)? != 0,
            },
            "ReduceSum" => Self::ReduceSum { keep: attributes.integer("keepdims", 1)? != 0 },
            "Cast" if attributes.integer("to", 0)? == i64::from(i32::from(DataType::Float)) => {
                Self::ToFloats
            }
            "Identity" => Self::Identity,
            "Shape" => Self::Shape,
            "Reshape" => Self::Reshape,
            "Squeeze" => Self::Squeeze,
            "Unsqueeze" => Self::Unsqueeze,
            "Expand" => Self::Expand,
            "Transpose" => Self::Transpose { order: attributes.integers("perm")? },
            "Concat" => Self::Concat { axis: attributes.integer("axis", 0)? },
            "Gather" => Self::Gather { axis: attributes.integer("axis", 0)? },
            "Slice" => Self::Slice,
            _ => return Err(OperatorError::Unknown),
        };
        match attributes.0.into_keys().next() {
            None => Ok(operator),
            Some(name) => Err(OperatorError::Attribute(name.to_owned())),
        }
    }

    /// Whether it exchanges the last two dimensions.
    pub(super) fn exchanges_last_two(&self) -> bool {
        let Self::Transpose { order } = self else { return false };
        let rank = order.len() as i64;
        let place = |at: i64| match rank - at {
            1 => rank - 2,
            2 => rank - 1,
            _ => at,
        };
        rank >= 2 && (0..rank).map(place).eq(order.iter().copied())
    }

    /// What it makes of its inputs.
    pub(super) fn run(&self, inputs: Vec<Value>) -> Result<Value> {
        let number = inputs.len();
        let mut inputs = inputs.into_iter();
        let mut next = || inputs.next().ok_or(OperatorError::Inputs(number));
        let made = match self {
            Self::Add => {
                Value::Floats(combine(next()?.floats()?, &next()?.floats()?, |x, y| x + y)?)
            }
            Self::Sub => {
                Value::Floats(combine(next()?.floats()?, &next()?.floats()?, |x, y| x - y)?)
            }
            Self::Mul => {
                Value::Floats(combine(next()?.floats()?, &next()?.floats()?, |x, y| x * y)?)
            }
            Self::MatMul { transposed } => {
                Value::Floats(matmul(&next()?.floats()?, &next()?.floats()?, *transposed)?)
            }
            Self::Erf => Value::Floats(map(next()?.floats()?, erf)?),
            Self::Softmax { axis } => Value::Floats(softmax(next()?.floats()?, *axis)?),
            Self::LayerNormalization { axis, epsilon } => {
                let (x, gamma, beta) = (next()?.floats()?, next()?.floats()?, next()?.floats()?);
                Value::Floats(layer_normalization(x, [&gamma, &beta], *axis, *epsilon)?)
            }
            Self::ReduceMean { axes, keep } => {
                Value::Floats(reduce(next()?.floats()?, axes, *keep, true)?)
            }
            Self::ReduceSum { keep } => {
                let (x, axes) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(reduce(x, axes.numbers(), *keep, false)?)
            }
            Self::ToFloats => match next()? {
                Value::Halves(halves) => {
                    let numbers = halves.numbers().iter().map(|half| half.to_f32()).collect();
                    Value::Floats(Tensor::new(halves.shape().to_vec(), numbers)?)
                }
                _ => return Err(OperatorError::Type),
            },
            Self::Identity => next()?,
            Self::Shape => {
                let sizes: Vec<i64> = next()?.shape().iter().map(|&size| size as i64).collect();
                Value::Integers(Tensor::new(vec![sizes.len()], sizes)?)
            }
            Self::Reshape => {
                let (x, shape) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(reshape(x, shape.numbers())?)
            }
            Self::Squeeze => {
                let (x, axes) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(squeeze(x, axes.numbers())?)
            }
            Self::Unsqueeze => {
                let (x, axes) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(unsqueeze(x, axes.numbers())?)
            }
            Self::Expand => {
                let (x, shape) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(expand(&x, shape.numbers())?)
            }
            Self::Transpose { order } => Value::Floats(transpose(&next()?.floats()?, order)?),
            Self::Concat { axis } => {
                let all = inputs.by_ref().map(Value::floats).collect::<Result<Vec<_>>>()?;
                Value::Floats(concat(&all, *axis)?)
            }
            Self::Gather { axis } => {
                let (x, places) = (next()?.floats()?, next()?.integers()?);
                Value::Floats(gather(&x, &places, *axis)?)
            }
            Self::Slice => {
                let x = next()?.floats()?;
                let mut place = || match next()?.integers()?.numbers() {
                    &[place] => Ok(place),
                    places => Err(OperatorError::Places(places.to_vec())),
                };
                Value::Floats(slice(&x, [place()?, place()?, place()?])?)
            }
            Self::Linear { weights, bias } => {
                Value::Floats(linear(&next()?.floats()?, weights, bias.as_deref())?)
            }
            Self::Gelu => Value::Floats(gelu(next()?.floats()?)?),
            Self::RowAttention(attention) => {
                let queries = next()?.floats()?;
                let (keys, next_keys) = (next()?, next()?.floats()?);
                let (values, next_values) = (next()?, next()?.floats()?);
                let (before, following) = ([&keys, &values], [&next_keys, &next_values]);
                let bias = next()?.floats()?;
                Value::Floats(attention.run(&queries, before, following, &bias)?)
            }
            Self::SplitAttention(attention) => {
                let (queries, keys) = (next()?.floats()?, next()?.floats()?);
                let values = next()?.floats()?;
                let bias = inputs.next().map(Value::floats).transpose()?;
                Value::Floats(attention.run(&queries, [&keys, &values], bias.as_ref())?)
            }
        };
        if inputs.next().is_none() { Ok(made) } else { Err(OperatorError::Inputs(number)) }
    }
}
