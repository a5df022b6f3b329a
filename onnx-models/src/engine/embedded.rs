mod arithmetic;
mod arrangement;
mod attention;
mod fusion;
mod operator;
mod plan;
mod product;
mod tensor;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use half::f16;
use ndarray::ArrayD;
use prost::Message as _;

use self::operator::Operator;
use self::plan::Plan;
use self::tensor::{OperatorError, Tensor, Value};
use super::{EngineError, Graph, Input, Shared, one_line};
use crate::onnx::{DataType, GraphProto, ModelProto, TensorProto};

pub(super) const NAME: &str = "the built-in engine";

/// The version of ONNX's operators that [`Operator`] follows.
const OPSET: i64 = 17;

/// A graph that runs on the calling thread: what follows from constants alone is computed when it
/// is opened, the rest one operator after the other, in place where nobody else needs an input.
pub(super) struct EmbeddedGraph {
    constants: Vec<Value>,
    /// Of each input its name and, if it is needed, its place among the values.
    inputs: HashMap<String, usize>,
    steps: Vec<Step>,
    outputs: Vec<Source>,
}

/// Where an operator finds an input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Constant(usize),
    /// A place among the values of a run; the last step that needs it takes it away.
    Value {
        place: usize,
        last: bool,
    },
}

/// An operator in its place; its result is the value after those of the inputs and of the steps
/// before it.
struct Step {
    operator: Operator,
    inputs: Vec<Source>,
    /// What the file calls its result.
    name: String,
}

/// A node as it is in the file.
struct Node<'f> {
    operator: Operator,
    inputs: Vec<&'f str>,
    output: &'f str,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("it is no ONNX file: {0}")]
    Encoding(#[from] prost::DecodeError),
    #[error("it has no graph")]
    NoGraph,
    #[error("it is not written in version {OPSET} of ONNX's operators")]
    Opset,
    #[error("`{name}` ({operator}): {source}")]
    Operator { name: String, operator: String, source: OperatorError },
    #[error("nothing before it gives `{0}`")]
    Missing(String),
    #[error("two things are called `{0}`")]
    Twice(String),
}

impl EmbeddedGraph {
    /// Makes the graph of an ONNX file ready to give some of its outputs.
    pub(super) fn new(file: &[u8], outputs: &[&str]) -> Result<Self, EngineError> {
        prepare(file, outputs)
            .map_err(|error| EngineError::Refused { engine: NAME, reason: one_line(&error) })
    }

    fn compute(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, String> {
        let mut values: Vec<Option<Value>> = vec![None; self.inputs.len()];
        for input in inputs {
            let (name, value) = match input {
                Input::Floats(name, array) => (name, of_array(array).map(Value::Floats)),
                Input::Integers(name, array) => (name, of_array(array).map(Value::Integers)),
                Input::Shared(name, Shared { shape, numbers }) => {
                    (name, Tensor::shared(shape, numbers).map(Value::Floats))
                }
                Input::Cached(name, cache) => (name, Ok(Value::Cached(cache))),
            };
            if let Some(&place) = self.inputs.get(name) {
                values[place] = Some(value.map_err(|error| format!("input `{name}`: {error}"))?);
            }
        }
        if let Some((name, _)) = self.inputs.iter().find(|(_, place)| values[**place].is_none()) {
            return Err(format!("no input `{name}`"));
        }
        let find = |values: &mut [Option<Value>], source: &Source| match *source {
            Source::Constant(place) => self.constants.get(place).cloned(),
            Source::Value { place, last: true } => values.get_mut(place)?.take(),
            Source::Value { place, last: false } => values.get(place)?.clone(),
        };
        for step in &self.steps {
            let found: Option<Vec<Value>> =
                step.inputs.iter().map(|source| find(&mut values, source)).collect();
            let found = found.ok_or_else(|| format!("`{}` lacks an input", step.name))?;
            let made = step.operator.run(found);
            values.push(Some(made.map_err(|error| format!("`{}`: {error}", step.name))?));
        }
        let output = |source| {
            let value = find(&mut values, source).ok_or("an output is missing")?;
            let tensor = value.floats().map_err(|error| error.to_string())?;
            let shape = tensor.shape().to_vec();
            ArrayD::from_shape_vec(shape, tensor.into_numbers()).map_err(|error| error.to_string())
        };
        self.outputs.iter().map(output).collect()
    }
}

impl Graph for EmbeddedGraph {
    fn run(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, EngineError> {
        self.compute(inputs).map_err(|reason| EngineError::Failed { engine: NAME, reason })
    }
}

/// An array as a tensor, its numbers copied only where they lie in another order.
fn of_array<T: Copy>(array: ArrayD<T>) -> Result<Tensor<T>, OperatorError> {
    let shape = array.shape().to_vec();
    let ordered = array.is_standard_layout() && !array.is_empty();
    let numbers = if ordered {
        let count = array.len();
        let (mut numbers, first) = array.into_raw_vec_and_offset();
        numbers.drain(..first.unwrap_or(0));
        numbers.truncate(count);
        numbers
    } else {
        array.iter().copied().collect()
    };
    Tensor::new(shape, numbers)
}

fn prepare(file: &[u8], outputs: &[&str]) -> Result<EmbeddedGraph, FileError> {
    let model = ModelProto::decode(file)?;
    let is_known =
        |set: &crate::onnx::OperatorSetIdProto| set.domain.is_empty() && set.version == OPSET;
    if !matches!(&model.opset_import[..], [set] if is_known(set)) {
        return Err(FileError::Opset);
    }
    let graph = model.graph.ok_or(FileError::NoGraph)?;
    let mut nodes = nodes(&graph)?;
    keep_needed(&mut nodes, outputs);
    let mut plan = Plan::default();
    for initializer in &graph.initializer {
        let value = initial(initializer).map_err(|source| FileError::Operator {
            name: initializer.name.clone(),
            operator: "initializer".to_owned(),
            source,
        })?;
        plan.constant(&initializer.name, value)?;
    }
    for input in &graph.input {
        plan.value(&input.name)?;
    }
    for node in nodes {
        plan.add(node)?;
    }
    plan.graph(&graph, outputs)
}

/// The operators of a graph, each of which has one result.
fn nodes(graph: &GraphProto) -> Result<Vec<Node<'_>>, FileError> {
    let node = |node| {
        let proto: &crate::onnx::NodeProto = node;
        let [output] = &proto.output[..] else {
            return Err(FileError::Missing(proto.output.join(", ")));
        };
        let operator = Operator::of(proto).map_err(|source| FileError::Operator {
            name: output.clone(),
            operator: proto.op_type.clone(),
            source,
        })?;
        let inputs = proto.input.iter().map(String::as_str).collect();
        Ok(Node { operator, inputs, output })
    };
    graph.node.iter().map(node).collect()
}

/// Leaves what the outputs need, so that no constants are computed for others.
fn keep_needed(nodes: &mut Vec<Node<'_>>, outputs: &[&str]) {
    let mut needed: HashSet<&str> = outputs.iter().copied().collect();
    let mut kept: Vec<bool> = nodes
        .iter()
        .rev()
        .map(|node| {
            let is_needed = needed.contains(node.output);
            if is_needed {
                needed.extend(&node.inputs);
            }
            is_needed
        })
        .collect();
    nodes.retain(|_| kept.pop().unwrap_or(false));
}

/// A tensor that is in the file.
fn initial(tensor: &TensorProto) -> Result<Value, OperatorError> {
    let size =
        |&size| usize::try_from(size).map_err(|_| OperatorError::Places(tensor.dims.clone()));
    let shape: Vec<usize> = tensor.dims.iter().map(size).collect::<Result<_, _>>()?;
    fn numbers<T, const BYTES: usize>(
        bytes: &[u8],
        of: impl Fn([u8; BYTES]) -> T,
    ) -> Result<Vec<T>, OperatorError> {
        let (numbers, rest) = bytes.as_chunks::<BYTES>();
        if rest.is_empty() {
            Ok(numbers.iter().map(|&bytes| of(bytes)).collect())
        } else {
            Err(OperatorError::Bytes)
        }
    }
    let bytes = &tensor.raw_data;
    Ok(match DataType::try_from(tensor.data_type) {
        Ok(DataType::Float) => {
            Value::Floats(Tensor::new(shape, numbers(bytes, f32::from_le_bytes)?)?)
        }
        Ok(DataType::Int64) => {
            Value::Integers(Tensor::new(shape, numbers(bytes, i64::from_le_bytes)?)?)
        }
        Ok(DataType::Float16) => {
            Value::Halves(Tensor::new(shape, numbers(bytes, f16::from_le_bytes)?)?)
        }
        _ => return Err(OperatorError::Type),
    })
}
