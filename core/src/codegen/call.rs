use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::dense::{dense_names, result_name};
use super::ending::Ending;
use super::parameter::Size;
use super::part::PartCall;
use super::signature::RowsForm;
use crate::layout::{DeviceCall, Mapping, Operand, PartSize, part_name};
use crate::task::{Operation, Task};

impl DeviceCall {
    /// The sizes that the call needs, in order.
    pub(super) fn sizes(&self, rows: RowsForm) -> Vec<PartSize> {
        let mut sizes = Vec::new();
        for operand in &self.operands {
            let needed: &[PartSize] = match operand {
                Operand::Size(size) => &[*size],
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
        if rows == RowsForm::Range {
            sizes.push(PartSize::FirstRow);
        }
        if self.mapping.panels > 1 {
            sizes.push(PartSize::PanelBlocks);
        }
        sizes
    }

    /// The run-time arguments as device code; `None` when the part lacks an array.
    pub(super) fn arguments(
        &self,
        part: &PartCall<'_>,
        parts: usize,
        (task, ending): (Task, Option<&Ending>),
        block: &str,
    ) -> Option<Vec<String>> {
        let context = Context { part, parts, task, ending, mapping: self.mapping, block };
        self.operands.iter().map(|&operand| context.operand(operand)).collect()
    }
}

struct Context<'a> {
    part: &'a PartCall<'a>,
    parts: usize,
    task: Task,
    ending: Option<&'a Ending>,
    mapping: Mapping,
    /// Index of the thread block within the part.
    block: &'a str,
}

impl Context<'_> {
    fn name(&self, array: &'static str) -> Option<String> {
        let has_it = self.part.signature.element(array).is_some();
        has_it.then(|| part_name(self.parts, self.part.index, array))
    }

    fn is_strided(&self) -> bool {
        self.ending.is_some_and(|ending| ending.strided(self.task.operation).is_some())
    }

    fn size(&self, what: PartSize) -> String {
        part_name(self.parts, self.part.index, what.name())
    }

    fn operand(&self, operand: Operand) -> Option<String> {
        let (input, output) = dense_names(self.task.operation);
        let vector = self.mapping.vector;
        let is_spmv = self.task.operation == Operation::SpMV;
        let signature = self.part.signature;
        Some(match operand {
            Operand::Block => self.block.into(),
            Operand::ColumnTile if self.mapping.column_tiles == 1 => "0".into(),
            Operand::ColumnTile => "column_tile".into(),
            Operand::Size(size) => self.size(size),
            Operand::Array(name) => self.name(name)?,
            Operand::MergeTiles => format!(
                "MergeTiles<{}>{{{}, {}, {}, {}}}",
                signature.element("row_offsets")?.cuda_type(),
                self.size(PartSize::Rows),
                self.size(PartSize::Entries),
                self.name("tile_rows")?,
                self.name("row_offsets")?,
            ),
            Operand::MergeItems => format!(
                "MergeItems<{}>{{{}, {}, {}, {}}}",
                signature.merge_item.cuda_type(),
                self.size(PartSize::MergeItems),
                self.name("row_ends")?,
                self.name("warp_rows")?,
                self.name("borders")?,
            ),
            Operand::Carry => format!(
                "Carry{{{}, {}, {}}}",
                self.size(PartSize::Tiles),
                self.name("carry")?,
                self.name("tickets")?,
            ),
            Operand::CutRows => format!(
                "CutRows{{{}, {}, {}}}",
                self.name("cuts")?,
                self.name("shares")?,
                self.name("tickets")?,
            ),
            Operand::Input if is_spmv => input.into(),
            Operand::Input if self.is_strided() => {
                format!("Input<{vector}>{{{input}, ldb, column}}")
            }
            Operand::Input => format!("Input<{vector}>{{{input}, column}}"),
            Operand::Output => {
                let ty = if is_spmv { "Output".into() } else { format!("Output<{vector}>") };
                let own = |output: &'static str| {
                    let streamed = Size::OutputStreamed(output).name(self.parts);
                    match (is_spmv, self.is_strided()) {
                        (true, _) => String::new(),
                        (false, false) => format!("column, {streamed}, "),
                        (false, true) => format!("ldc, ldd, column, {streamed}, "),
                    }
                };
                match self.ending {
                    None => format!("{ty}{{{output}, {}alpha, beta}}", own(output)),
                    Some(ending) => {
                        let (result, user) = (result_name(self.task.operation), ending.user());
                        format!("{ty}{{{result}, {output}, {}alpha, beta{user}}}", own(result))
                    }
                }
            }
            Operand::Scratch => "scratch".into(),
        })
    }
}
