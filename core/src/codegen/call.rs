use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::dense::{dense_names, dense_type, result_name};
use super::ending::Ending;
use super::parameter::Size;
use super::part::PartCall;
use super::signature::RowsForm;
use crate::layout::{
    ArrayRole, DeviceCall, DeviceStruct, Mapping, Member, Operand, PartSize, part_name,
};
use crate::task::{Operation, Task};

impl DeviceCall {
    /// The sizes that the call needs, in order.
    pub(super) fn sizes(&self, rows: RowsForm) -> Vec<PartSize> {
        let mut sizes = Vec::new();
        for operand in &self.operands {
            let members = match operand {
                Operand::Member(member) => core::slice::from_ref(member),
                Operand::Struct(made) => made.members,
                _ => &[],
            };
            for member in members {
                if let Member::Size(size) = *member
                    && !sizes.contains(&size)
                {
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
}

/// A value of a struct as device code makes it, of its members.
pub(super) struct Aggregate {
    ty: String,
    members: Vec<String>,
}

impl Aggregate {
    /// Defines a constant that holds it.
    pub(super) fn definition(&self, name: &str) -> String {
        format!("const {} {name}{{{}}};", self.ty, self.members.join(", "))
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{{}}}", self.ty, self.members.join(", "))
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
            Operand::Member(Member::Size(size)) => format!("u32 {}", size.name()),
            Operand::Member(Member::Array(name)) => {
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
            Operand::Struct(_) => String::new(),
        };
        let own = self.read_arrays().map(|(array, element)| format!("const {element}* {array}"));
        let first_row = (signature.rows == RowsForm::Range)
            .then(|| format!("u32 {}", PartSize::FirstRow.name()));
        own.chain(first_row).chain(self.call.operands.iter().map(declare)).collect()
    }
}

/// What operands are made in: a place in the kernel.
pub(super) struct Context<'a> {
    pub(super) part: &'a PartCall<'a>,
    pub(super) parts: usize,
    pub(super) task: Task,
    pub(super) ending: Option<&'a Ending>,
    /// Index of the thread block within the part.
    pub(super) block: &'a str,
}

impl Context<'_> {
    /// The call's run-time arguments as device code; `None` when the part lacks an array.
    pub(super) fn arguments(&self) -> Option<Vec<String>> {
        self.part.call.operands.iter().map(|&operand| self.operand(operand)).collect()
    }

    /// The input of SpMM from the thread's first column on.
    pub(super) fn input_columns(&self) -> Aggregate {
        let (input, _) = dense_names(self.task.operation);
        let stride = self.is_strided().then_some("ldb");
        let members = [input].into_iter().chain(stride).chain(["first_column"]);
        let members = members.map(str::to_owned).collect();
        Aggregate { ty: format!("Input<{}>", self.mapping().vector), members }
    }

    /// Where results go, and what becomes of them before.
    pub(super) fn output(&self) -> Aggregate {
        let operation = self.task.operation;
        let is_spmv = operation == Operation::SpMV;
        let (_, old) = dense_names(operation);
        let output = if self.ending.is_some() { result_name(operation) } else { old };
        let mut members = alloc::vec![output.to_owned()];
        if self.ending.is_some() {
            members.push(old.to_owned());
        }
        if !is_spmv {
            let strides = if self.is_strided() { &["ldc", "ldd"][..] } else { &[] };
            members.extend(strides.iter().map(|&stride| stride.to_owned()));
            members.push("first_column".to_owned());
            members.push(Size::OutputStreamed(output).name(self.parts));
        }
        members.extend(["alpha", "beta"].map(str::to_owned));
        members.extend(self.ending.and_then(Ending::user).map(str::to_owned));
        let ty = if is_spmv {
            "Output".to_owned()
        } else {
            format!("Output<{}>", self.mapping().vector)
        };
        Aggregate { ty, members }
    }

    fn mapping(&self) -> Mapping {
        self.part.call.mapping
    }

    fn is_strided(&self) -> bool {
        self.ending.is_some_and(|ending| ending.strided(self.task.operation).is_some())
    }

    fn member(&self, member: Member) -> Option<String> {
        let name = match member {
            Member::Size(size) => size.name(),
            Member::Array(array) => {
                self.part.signature.element(array)?;
                array
            }
        };
        Some(part_name(self.parts, self.part.index, name))
    }

    fn of_library(&self, made: DeviceStruct) -> Option<Aggregate> {
        let ty = match made.counts {
            Some(size) => {
                format!("{}<{}>", made.name, self.part.signature.size_type(size).cuda_type())
            }
            None => made.name.to_owned(),
        };
        let members = made.members.iter().map(|&member| self.member(member)).collect::<Option<_>>();
        Some(Aggregate { ty, members: members? })
    }

    fn operand(&self, operand: Operand) -> Option<String> {
        Some(match operand {
            Operand::Block => self.block.into(),
            Operand::ColumnTile if self.mapping().column_tiles == 1 => "0".into(),
            Operand::ColumnTile => "column_tile".into(),
            Operand::Member(member) => self.member(member)?,
            Operand::Struct(made) => self.of_library(made)?.to_string(),
            Operand::Input => match self.task.operation {
                Operation::SpMV => dense_names(self.task.operation).0.into(),
                Operation::SpMM { .. } => self.input_columns().to_string(),
            },
            Operand::Output => self.output().to_string(),
            Operand::Scratch => "scratch".into(),
        })
    }
}
