use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::parameter::Size;
use super::signature::{PartSignature, RowsForm};
use crate::language::{Cache, Layout, ValueCoding};
use crate::layout::{DeviceCall, Mapping, Operand, PartSize};
use crate::task::{Dtype, Operation, Task};

impl DeviceCall {
    /// The sizes that the call needs, in order.
    pub(super) fn sizes(&self, rows: RowsForm) -> Vec<PartSize> {
        let mut sizes = Vec::new();
        for operand in &self.operands {
            let needed: &[PartSize] = match operand {
                Operand::Size(size) => &[*size],
                Operand::Rows if rows == RowsForm::Range => &[PartSize::FirstRow],
                Operand::MergeTiles => &[PartSize::Rows, PartSize::Entries],
                Operand::MergeItems => &[PartSize::MergeItems],
                Operand::Carry => &[PartSize::Tiles],
                _ => &[],
            };
            for &size in needed {
                if !sizes.contains(&size) {
                    sizes.push(size);
                }
            }
        }
        sizes
    }

    /// The run-time arguments as device code; `None` when the part lacks an array.
    pub(super) fn arguments(
        &self,
        index: usize,
        layout: &Layout,
        part: &PartSignature,
        task: Task,
    ) -> Option<Vec<String>> {
        let context = Context { index, layout, part, task, mapping: self.mapping };
        self.operands.iter().map(|&operand| context.operand(operand)).collect()
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
    layout: &'a Layout,
    part: &'a PartSignature,
    task: Task,
    mapping: Mapping,
}

impl Context<'_> {
    fn name(&self, array: &'static str) -> Option<String> {
        self.part.element(array).map(|_| format!("p{}_{array}", self.index))
    }

    fn cuda_type(&self, array: &str) -> Option<&'static str> {
        Some(self.part.element(array)?.cuda_type())
    }

    fn size(&self, what: PartSize) -> String {
        Size::Part { part: self.index, what }.name()
    }

    fn operand(&self, operand: Operand) -> Option<String> {
        let scalar = scalar_type(self.task.precision.dense());
        let (input, output) = dense_names(self.task.operation);
        let (columns, vector) = (self.task.operation.columns(), self.mapping.vector);
        let is_spmv = self.task.operation == Operation::SpMV;
        let access = self.layout.access();
        let cache = match access.cache {
            Cache::Cached => "Cached",
            Cache::Streamed => "Streamed",
        };
        Some(match operand {
            Operand::Block => "block".into(),
            Operand::ColumnTile if self.mapping.column_tiles == 1 => "0".into(),
            Operand::ColumnTile => "column_tile".into(),
            Operand::Size(size) => self.size(size),
            Operand::Rows => match self.part.rows {
                RowsForm::All => "AllRows{}".to_string(),
                RowsForm::Range => format!("RowRange{{{}}}", self.size(PartSize::FirstRow)),
                RowsForm::List => format!("RowList{{{}}}", self.name("rows")?),
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
            Operand::Values => match access.values {
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
            Operand::MergeTiles => format!(
                "MergeTiles<{}>{{{}, {}, {}, {}}}",
                self.cuda_type("offsets")?,
                self.size(PartSize::Rows),
                self.size(PartSize::Entries),
                self.name("tile_rows")?,
                self.name("offsets")?,
            ),
            Operand::MergeItems => format!(
                "MergeItems<{}>{{{}, {}, {}, {}}}",
                self.part.merge_item.cuda_type(),
                self.size(PartSize::MergeItems),
                self.name("row_ends")?,
                self.name("warp_rows")?,
                self.name("borders")?,
            ),
            Operand::Carry => format!(
                "Carry<{scalar}>{{{}, {}, {}}}",
                self.size(PartSize::Tiles),
                self.name("carry")?,
                self.name("tickets")?,
            ),
            Operand::Input if is_spmv => format!("Input<{scalar}>{{{input}}}"),
            Operand::Output if is_spmv => format!("Output<{scalar}>{{{output}, alpha, beta}}"),
            Operand::Input => format!("Input<{scalar}, {columns}, {vector}>{{{input}, column}}"),
            Operand::Output => {
                format!("Output<{scalar}, {columns}, {vector}>{{{output}, column, alpha, beta}}")
            }
            Operand::Scratch => "scratch".into(),
        })
    }
}
