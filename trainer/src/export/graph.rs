//! Builds an ONNX graph, operator by operator.

use std::collections::{BTreeMap, HashMap};

use half::f16;
use prost::Message as _;
use sparserl_onnx_models::Description;
use sparserl_onnx_models::onnx::{
    AttributeProto, AttributeType, DataType, DimensionProto, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

use super::ExportError;
use crate::network::Parameter;

/// The version of ONNX's operators that is written: the first with `LayerNormalization`.
const OPSET: i64 = 17;
/// The version of the file format that belongs to it.
const IR_VERSION: i64 = 8;

/// What follows a parameter's name in that of its tensor, which is in half precision.
pub(super) const HALF: &str = ".f16";

/// What an operator gives, by its name in the graph.
#[derive(Clone, Debug)]
pub(super) struct Value(String);

/// A dimension of an input or output.
pub(super) enum Size {
    Fixed(usize),
    /// Those of one name are equal.
    Any(&'static str),
}

/// An attribute of an operator.
pub(super) enum Attribute {
    Integer(i64),
    Float(f32),
    Integers(Vec<i64>),
}

/// An ONNX graph that is being written.
pub(super) struct Graph<'p> {
    parameters: HashMap<&'p str, &'p Parameter>,
    graph: GraphProto,
    /// Parameters and constants that are there already.
    known: BTreeMap<String, Value>,
}

impl<'p> Graph<'p> {
    pub(super) fn new(name: &str, parameters: &'p [Parameter]) -> Self {
        let by_name = parameters.iter().map(|parameter| (parameter.name.as_str(), parameter));
        Self {
            parameters: by_name.collect(),
            graph: GraphProto { name: name.to_owned(), ..GraphProto::default() },
            known: BTreeMap::new(),
        }
    }

    /// The file of the graph.
    pub(super) fn file(self, description: &Description) -> Result<Vec<u8>, ExportError> {
        let model = ModelProto {
            ir_version: IR_VERSION,
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
            producer_name: "sparserl-trainer".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(self.graph),
            metadata_props: vec![description.entry()?],
        };
        Ok(model.encode_to_vec())
    }

    /// An input of numbers.
    pub(super) fn floats(&mut self, name: &str, shape: &[Size]) -> Value {
        self.graph.input.push(info(name, DataType::Float, shape));
        Value(name.to_owned())
    }

    /// An input of indices.
    pub(super) fn integers(&mut self, name: &str, shape: &[Size]) -> Value {
        self.graph.input.push(info(name, DataType::Int64, shape));
        Value(name.to_owned())
    }

    /// Gives a value out under a name.
    pub(super) fn output(&mut self, name: &str, value: &Value, shape: &[Size]) {
        self.node("Identity", &[value], name.to_owned(), &[]);
        self.graph.output.push(info(name, DataType::Float, shape));
    }

    /// An operator with one output.
    pub(super) fn op(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        let name = format!("{}_{}", operator.to_lowercase(), self.graph.node.len());
        self.node(operator, inputs, name.clone(), attributes);
        Value(name)
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        output: String,
        attributes: &[(&str, Attribute)],
    ) {
        let attribute = |(name, attribute): &(&str, Attribute)| {
            let name = (*name).to_owned();
            let of = |r#type: AttributeType| AttributeProto {
                name: name.clone(),
                r#type: r#type.into(),
                ..AttributeProto::default()
            };
            match attribute {
                Attribute::Integer(i) => AttributeProto { i: *i, ..of(AttributeType::Int) },
                Attribute::Float(f) => AttributeProto { f: *f, ..of(AttributeType::Float) },
                Attribute::Integers(ints) => {
                    AttributeProto { ints: ints.clone(), ..of(AttributeType::Ints) }
                }
            }
        };
        self.graph.node.push(NodeProto {
            name: output.clone(),
            op_type: operator.to_owned(),
            input: inputs.iter().map(|input| input.0.clone()).collect(),
            output: vec![output],
            attribute: attributes.iter().map(attribute).collect(),
            ..NodeProto::default()
        });
    }

    /// A parameter of the network.
    pub(super) fn parameter(&mut self, name: &str) -> Result<Value, ExportError> {
        if let Some(value) = self.known.get(name) {
            return Ok(value.clone());
        }
        let parameter = self.parameters.get(name);
        let parameter = parameter.ok_or_else(|| ExportError::Missing(name.to_owned()))?;
        let halves = parameter.numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes());
        let initializer = TensorProto {
            name: format!("{name}{HALF}"),
            dims: parameter.shape.iter().map(|&size| size as i64).collect(),
            data_type: DataType::Float16.into(),
            raw_data: halves.collect(),
        };
        let half = Value(initializer.name.clone());
        self.graph.initializer.push(initializer);
        let to = Attribute::Integer(i32::from(DataType::Float).into());
        self.node("Cast", &[&half], name.to_owned(), &[("to", to)]);
        let value = Value(name.to_owned());
        self.known.insert(name.to_owned(), value.clone());
        Ok(value)
    }

    /// Integers that are known: a shape, axes or places.
    pub(super) fn places(&mut self, places: &[i64]) -> Value {
        let bytes = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        let name = places.iter().map(i64::to_string).collect::<Vec<_>>().join("_");
        self.constant(format!("places_{name}"), DataType::Int64, vec![places.len() as i64], bytes)
    }

    /// A number that is known.
    pub(super) fn number(&mut self, number: f32) -> Value {
        let bytes = number.to_le_bytes().to_vec();
        self.constant(format!("number_{number}"), DataType::Float, Vec::new(), bytes)
    }

    /// Numbers that are known, by a name of their own.
    pub(super) fn numbers(&mut self, name: &str, shape: &[i64], numbers: &[f32]) -> Value {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.constant(name.to_owned(), DataType::Float, shape.to_vec(), bytes)
    }

    fn constant(&mut self, name: String, of: DataType, dims: Vec<i64>, bytes: Vec<u8>) -> Value {
        let graph = &mut self.graph;
        let value = self.known.entry(name.clone()).or_insert_with(|| {
            graph.initializer.push(TensorProto {
                name: name.clone(),
                dims,
                data_type: of.into(),
                raw_data: bytes,
            });
            Value(name)
        });
        value.clone()
    }
}

fn info(name: &str, of: DataType, shape: &[Size]) -> ValueInfoProto {
    let dimension = |size: &Size| match size {
        Size::Fixed(size) => {
            DimensionProto { dim_value: Some(*size as i64), ..DimensionProto::default() }
        }
        Size::Any(name) => {
            DimensionProto { dim_param: Some((*name).to_owned()), ..DimensionProto::default() }
        }
    };
    let tensor = TensorTypeProto {
        elem_type: of.into(),
        shape: Some(TensorShapeProto { dim: shape.iter().map(dimension).collect() }),
    };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}
