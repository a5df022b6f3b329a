use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::dense::{dense_names, dense_type, result_name};
use super::ending::Ending;
use super::parameter::Size;
use super::part::PartCall;
use super::signature::RowsForm;
use crate::layout::{ArrayRole, DeviceCall, Mapping, Operand, PartSize, part_name};
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
        let each = self.operands.iter();
        each.map(|&operand| self.operand(part, parts, (task, ending), block, operand)).collect()
    }

    /// One of them.
    pub(super) fn operand(
        &self,
        part: &PartCall<'_>,
        parts: usize,
        (task, ending): (Task, Option<&Ending>),
        block: &str,
        operand: Operand,
    ) -> Option<String> {
        let context = Context { part, parts, task, ending, mapping: self.mapping, block };
        context.operand(operand)
    }
}

impl PartCall<'_> {
    /// How the part's function declares what the call gives it, behind what the part reads itself.
    pub(super) fn declarations(&self, task: Task) -> Vec<String> {
        let signature = self.signature;
        let is_spmv = task.operation == Operation::SpMV;
        let vector = self.call.mapping.vector;
        let declare = |operand: &Operand| match operand {
            Operand::Block => "u32 block".into(),
            Operand::ColumnTile => "u32 column_tile".into(),
            Operand::Size(size) => format!("u32 {}", size.name()),
            Operand::Array(name) => {
                let array = signature.arrays.iter().find(|array| array.name == *name);
                let ty = array.map_or("void", |array| array.element.cuda_type());
                match array.map(|array| array.role) {
                    Some(ArrayRole::Matrix) | None => format!("const {ty}* {name}"),
                    Some(ArrayRole::PartialSums | ArrayRole::Counters) => format!("{ty}* {name}"),
                }
            }
            Operand::Input if is_spmv => format!("const {}* x", dense_type(task)),
            Operand::Input => format!("Input<{vector}> input"),
            Operand::Output if is_spmv => "Output output".into(),
            Operand::Output => format!("Output<{vector}> output"),
            Operand::Scratch => "unsigned char* scratch".into(),
            // Functions of the library take these.
            Operand::MergeTiles | Operand::MergeItems | Operand::Carry => String::new(),
        };
        let own = self.read_arrays().map(|(array, element)| format!("const {element}* {array}"));
        let first_row = (signature.rows == RowsForm::Range)
            .then(|| format!("u32 {}", PartSize::FirstRow.name()));
        own.chain(first_row).chain(self.call.operands.iter().map(declare)).collect()
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
            Operand::Input if is_spmv => input.into(),
            Operand::Input if self.is_strided() => {
                format!("Input<{vector}>{{{input}, ldb, first_column}}")
            }
            Operand::Input => format!("Input<{vector}>{{{input}, first_column}}"),
            Operand::Output => {
                let ty = if is_spmv { "Output".into() } else { format!("Output<{vector}>") };
                let own = |output: &'static str| {
                    let streamed = Size::OutputStreamed(output).name(self.parts);
                    match (is_spmv, self.is_strided()) {
                        (true, _) => String::new(),
                        (false, false) => format!("first_column, {streamed}, "),
                        (false, true) => format!("ldc, ldd, first_column, {streamed}, "),
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
