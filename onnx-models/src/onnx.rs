//! The messages of an ONNX file, as far as policies have them: `onnx.proto3` of IR version 8. What
//! a file has besides is passed over.

use half::f16;
use prost::{Enumeration, Message};

/// A file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// Who wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The writer's version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// What is computed.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The versions of the sets of operators.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Words of the writer's own.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A set of operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Version of the operators.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A key with a value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Operators, each after those whose results it takes.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The operators.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// What it is called.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Tensors that are in the file.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// What is given.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What is asked for.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// An operator in its place.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of what it takes.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of what it gives.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// What it is called.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// What else it is told.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The set that the operator is of.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// An attribute of an operator; its type says which field counts.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// Integers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// The type.
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
}

/// Types of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
pub enum AttributeType {
    /// None is said.
    Undefined = 0,
    /// A number.
    Float = 1,
    /// An integer.
    Int = 2,
    /// Integers.
    Ints = 7,
}

/// A tensor in the file.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// The shape.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The type of its numbers.
    #[prost(enumeration = "DataType", tag = "2")]
    pub data_type: i32,
    /// What it is called.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The numbers, the last dimension fastest, little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

impl TensorProto {
    /// Whether none of its numbers is infinite or NaN.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        fn all<const BYTES: usize>(bytes: &[u8], is_finite: impl Fn([u8; BYTES]) -> bool) -> bool {
            bytes.as_chunks::<BYTES>().0.iter().all(|&number| is_finite(number))
        }
        let bytes = &self.raw_data;
        match DataType::try_from(self.data_type) {
            Ok(DataType::Float) => all(bytes, |number| f32::from_le_bytes(number).is_finite()),
            Ok(DataType::Float16) => all(bytes, |number| f16::from_le_bytes(number).is_finite()),
            _ => true,
        }
    }
}

/// Types of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
pub enum DataType {
    /// None is said.
    Undefined = 0,
    /// f32.
    Float = 1,
    /// i64.
    Int64 = 7,
    /// f16.
    Float16 = 10,
}

/// An input or output of a graph.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// What it is called.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it is.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// The type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The type of a tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// The type of its numbers.
    #[prost(enumeration = "DataType", tag = "1")]
    pub elem_type: i32,
    /// The tensor's shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// The shape of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// Sizes of the dimensions.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// A dimension, by its size or by a name.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// The size.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// The name; dimensions of one name are equal.
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}
