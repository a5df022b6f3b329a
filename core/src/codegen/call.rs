use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::language::{Cache, IndexCoding, Rows, ValueCoding};
use crate::layout::{Mapping, PackedPart};
use crate::task::{Dtype, Operation, Task};

/// The call of a device block: which function, with which template and run-time arguments.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCall {
    /// File of `core/cuda` that defines the function.
    pub(super) block: &'static str,
    function: &'static str,
    pub(super) mapping: Mapping,
    constants: Vec<u32>,
    types: Types,
    arguments: Vec<Operand>,
}

/// The leading type parameters of a device function; the others are deduced.
#[derive(Clone, Copy, Debug)]
enum Types {
    Scalar,
    ScalarAndVector,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Block,
    ColumnTile,
    Count(usize),
    Rows,
    Array(&'static str),
    Columns(IndexCoding),
    Values,
    MergeTiles { items: u32 },
    MergeItems { most: u64 },
    Carry { tiles: usize },
    Input,
    Output,
    Scratch,
}

impl DeviceCall {
    pub(crate) fn new(block: &'static str, function: &'static str, mapping: Mapping) -> Self {
        let (constants, arguments) = (Vec::new(), Vec::new());
        Self { block, function, mapping, constants, types: Types::Scalar, arguments }
    }

    /// Leading integer template parameters.
    pub(crate) fn constants(mut self, constants: &[u32]) -> Self {
        self.constants.extend_from_slice(constants);
        self
    }

    /// The element type as a template parameter.
    pub(crate) fn scalar(mut self) -> Self {
        self.types = Types::Scalar;
        self
    }

    /// The element type and the columns per thread as template parameters.
    pub(crate) fn scalar_and_vector(mut self) -> Self {
        self.types = Types::ScalarAndVector;
        self
    }

    fn push(mut self, operand: Operand) -> Self {
        self.arguments.push(operand);
        self
    }

    /// Index of the thread block within the part.
    pub(crate) fn block(self) -> Self {
        self.push(Operand::Block)
    }

    /// Index of the column tile.
    pub(crate) fn column_tile(self) -> Self {
        self.push(Operand::ColumnTile)
    }

    /// A number known now.
    pub(crate) fn count(self, n: usize) -> Self {
        self.push(Operand::Count(n))
    }

    /// The matrix rows at the part's positions.
    pub(crate) fn rows(self) -> Self {
        self.push(Operand::Rows)
    }

    /// One of the part's arrays.
    pub(crate) fn array(self, name: &'static str) -> Self {
        self.push(Operand::Array(name))
    }

    /// The decoder of column indices.
    pub(crate) fn columns(self, coding: IndexCoding) -> Self {
        self.push(Operand::Columns(coding))
    }

    /// The decoder of values.
    pub(crate) fn values(self) -> Self {
        self.push(Operand::Values)
    }

    /// The tiles of a merge part.
    pub(crate) fn merge_tiles(self, items: u32) -> Self {
        self.push(Operand::MergeTiles { items })
    }

    /// The bits of a merge part; `most` is the largest item number that device code computes.
    pub(crate) fn merge_items(self, most: u64) -> Self {
        self.push(Operand::MergeItems { most })
    }

    /// The partial sums of a merge part.
    pub(crate) fn carry(self, tiles: usize) -> Self {
        self.push(Operand::Carry { tiles })
    }

    /// The dense operands.
    pub(crate) fn dense(self) -> Self {
        self.push(Operand::Input).push(Operand::Output)
    }

    /// The kernel's shared buffer.
    pub(crate) fn scratch(self) -> Self {
        self.push(Operand::Scratch)
    }

    /// `function<template arguments>`.
    pub(super) fn callee(&self, task: Task) -> String {
        let mut text = format!("{}<", self.function);
        for constant in &self.constants {
            text.push_str(&format!("{constant}, "));
        }
        text.push_str(scalar_type(task.precision.dense()));
        if let Types::ScalarAndVector = self.types {
            text.push_str(&format!(", {}", self.mapping.vector));
        }
        text.push('>');
        text
    }

    /// The run-time arguments as device code; `None` when the part lacks an array.
    pub(super) fn arguments(
        &self,
        index: usize,
        part: &PackedPart,
        task: Task,
    ) -> Option<Vec<String>> {
        let context = Context { index, part, task, mapping: self.mapping };
        self.arguments.iter().map(|&operand| context.operand(operand)).collect()
    }
}

/// CUDA's name of an element type.
pub(super) fn scalar_type(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "float",
        Dtype::F64 => "double",
    }
}

/// Names of the dense operands, input first.
pub(super) fn dense_names(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::SpMV => ("x", "y"),
        Operation::SpMM { .. } => ("B", "C"),
    }
}

struct Context<'a> {
    index: usize,
    part: &'a PackedPart,
    task: Task,
    mapping: Mapping,
}

impl Context<'_> {
    fn name(&self, array: &str) -> Option<String> {
        let array = self.part.arrays.iter().find(|a| a.name == array)?;
        Some(PackedPart::argument(self.index, array))
    }

    fn cuda_type(&self, array: &str) -> Option<&'static str> {
        Some(self.part.array(array)?.cuda_type())
    }

    fn operand(&self, operand: Operand) -> Option<String> {
        let scalar = scalar_type(self.task.precision.dense());
        let (input, output) = dense_names(self.task.operation);
        let dense = format!("{scalar}, {}, {}", self.task.operation.columns(), self.mapping.vector);
        let cache = match self.part.layout.access().cache {
            Cache::Cached => "Cache::Cached",
            Cache::Streamed => "Cache::Streamed",
        };
        Some(match operand {
            Operand::Block => "block".into(),
            Operand::ColumnTile if self.mapping.column_tiles == 1 => "0u".into(),
            Operand::ColumnTile => "column_tile".into(),
            Operand::Count(n) => format!("{n}u"),
            Operand::Rows => match &self.part.rows {
                Rows::Range { first, .. } => format!("RowRange{{{first}u}}"),
                Rows::List(_) => format!("RowList{{{}}}", self.name("rows")?),
            },
            Operand::Array(name) => self.name(name)?,
            Operand::Columns(coding) => {
                let (ty, columns) = (self.cuda_type("columns")?, self.name("columns")?);
                if coding.is_relative() {
                    let bases = self.name("bases")?;
                    format!("RelativeColumns<{ty}, {cache}>{{{columns}, {bases}}}")
                } else {
                    format!("AbsoluteColumns<{ty}, {cache}>{{{columns}}}")
                }
            }
            Operand::Values => match self.part.layout.access().values {
                ValueCoding::Plain => {
                    format!("PlainValues<{scalar}, {cache}>{{{}}}", self.name("values")?)
                }
                ValueCoding::Constant => {
                    format!("ConstantValue<{scalar}>{{{}}}", self.name("values")?)
                }
                ValueCoding::Dictionary => {
                    let (codes, table) = (self.name("codes")?, self.name("table")?);
                    format!("DictionaryValues<{scalar}, {cache}>{{{codes}, {table}}}")
                }
            },
            Operand::MergeTiles { items } => {
                let offset = self.cuda_type("offsets")?;
                format!(
                    "MergeTiles<{offset}>{{{}u, {}u, {items}u, {}, {}}}",
                    self.part.rows.len(),
                    self.part.nnz,
                    self.name("tile_rows")?,
                    self.name("offsets")?,
                )
            }
            Operand::MergeItems { most } => {
                let offset = if u32::try_from(most).is_ok() { "u32" } else { "u64" };
                format!(
                    "MergeItems<{offset}>{{{}u, {}, {}, {}}}",
                    self.part.rows.len() + self.part.nnz,
                    self.name("row_ends")?,
                    self.name("warp_rows")?,
                    self.name("borders")?,
                )
            }
            Operand::Carry { tiles } => {
                let (columns, vector) = (self.task.operation.columns(), self.mapping.vector);
                format!(
                    "Carry<{scalar}, {columns}, {vector}>{{{tiles}u, {}, {}}}",
                    self.name("carry")?,
                    self.name("tickets")?,
                )
            }
            Operand::Input => format!("Input<{dense}>{{{input}, column}}"),
            Operand::Output => format!("Output<{dense}>{{{output}, column, alpha, beta}}"),
            Operand::Scratch => "scratch".into(),
        })
    }
}
