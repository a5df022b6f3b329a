//! `plan.json`: all that a caller needs to launch a kernel, and what the kernel was made for.
//!
//! Two runs on the same input write the same bytes, so nothing in here depends on time.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codegen::{Argument, ArgumentKind, Launch, WIDEST_LOAD, loads_vectors};
use crate::kernel::Kernel;
use crate::language::{LANGUAGE_VERSION, Program, Rows, Token, grammar_hash, vocabulary_hash};
use crate::layout::{Packed, PackedPart, part_name};
use crate::matrix::MatrixIdentity;
use crate::pipeline::{Artefact, Prediction};
use crate::target::Architecture;
use crate::task::{Operation, Task, Values};

/// What `plan.json` is; the number changes with the meaning of its fields.
const PLAN_FORMAT: &str = "sparserl plan 2";
const CANDIDATES_FORMAT: &str = "sparserl candidates 1";

/// Where kernels come from: what their plans say that is not in them.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The matrix that they are for, as it was read.
    pub matrix: &'a MatrixIdentity,
    /// Name of the policy that wrote their programs.
    pub policy: &'a str,
    /// Changes with what the policy writes.
    pub policy_version: &'a str,
}

/// A kernel and the launch for its matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    format: &'static str,
    language: LanguagePlan,
    policy: PolicyPlan,
    task: TaskPlan,
    matrix: MatrixIdentity,
    /// The kernel's function, and its file.
    pub kernel: KernelPlan,
    /// Blocks, threads and shared memory.
    pub launch: LaunchPlan,
    /// The kernel's arguments, in the order of its parameters.
    pub arguments: Vec<ArgumentPlan>,
    /// How the elements of an argument with several dimensions lie.
    order: &'static str,
    /// What launches must observe; null where the kernel needs no workspace.
    workspace: Option<WorkspacePlan>,
    /// Parts of the program, in the order of its text.
    pub parts: Vec<PartPlan>,
    /// What the product is expected to cost.
    pub predicted: Prediction,
    /// Resources of the machine code; absent where nothing was compiled.
    pub machine_code: Option<MachineCode>,
    /// Names of the files in this folder, this one included.
    pub files: Vec<&'static str>,
}

/// The language that the program is written in.
#[derive(Clone, Debug, Serialize)]
struct LanguagePlan {
    version: u32,
    vocabulary_hash: String,
    /// FNV-1a, hexadecimal.
    grammar_hash: String,
}

/// Who wrote the program.
#[derive(Clone, Debug, Serialize)]
struct PolicyPlan {
    /// Name of the policy.
    name: String,
    /// Changes with what it writes.
    version: String,
    /// How good it finds the program, higher being better, before anything is measured.
    score: f64,
}

/// What is computed.
#[derive(Clone, Debug, Serialize)]
pub struct TaskPlan {
    operation: &'static str,
    /// Columns of the dense operands; absent for SpMV.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    /// Element types: one for all, or `matrix/dense/sums`.
    dtype: String,
    /// Whether the values of the matrix may change.
    values: Values,
}

impl From<Task> for TaskPlan {
    fn from(task: Task) -> Self {
        let (operation, columns) = match task.operation {
            Operation::SpMV => ("spmv", None),
            Operation::SpMM { columns } => ("spmm", Some(columns.get())),
        };
        Self { operation, columns, dtype: task.precision.to_string(), values: task.values }
    }
}

/// The kernel, as it is written in CUDA.
#[derive(Clone, Debug, Serialize)]
pub struct KernelPlan {
    /// Name of the function.
    pub name: String,
    /// Hash of the file that it is written to, hexadecimal: a file with another was edited.
    pub blake3: String,
    /// The sizes that it has as constants, by their names: it is for matrices of these alone.
    /// Absent where they are among the arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub only_for_sizes: BTreeMap<String, u64>,
}

/// A launch of one dimension.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchPlan {
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub static_shared: usize,
    /// Bytes of shared memory that the launch gives: 0, or more than 48 KiB, which the kernel is to
    /// be allowed before by `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    pub dynamic_shared: u32,
    /// Whether the machine code may be launched with
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`, which lets it begin before the
    /// kernels before it in the stream have ended: it waits for them itself. As measured, it is.
    pub programmatic_stream_serialization: bool,
}

/// An argument of the kernel, in order.
#[derive(Clone, Debug, Serialize)]
pub struct ArgumentPlan {
    /// Name in the source, and of its array in the packed file.
    pub name: String,
    /// What it is.
    pub kind: KindPlan,
    /// Element type, by its Rust name.
    pub dtype: &'static str,
    /// What its elements are, after their number in brackets where it is an array.
    meaning: String,
    /// The number that is passed, where it is a size; absent for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    /// `value`, or `pointer` to device memory.
    passed: &'static str,
    /// Rows and columns of a dense matrix, the length of any other array, nothing for a scalar.
    shape: Vec<usize>,
    /// Elements; 1 where it is passed by value.
    pub length: usize,
    /// Bytes of all elements.
    pub bytes: usize,
    /// Bytes to which the pointer, or the value, must be aligned.
    alignment: usize,
    /// `zero` where the memory must be zero before the first launch; absent where the caller fills
    /// it or it does not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    initial: Option<&'static str>,
}

/// What an argument is: `input`, `output`, `alpha`, `beta`, `matrix`, `workspace` or `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KindPlan {
    /// The dense input.
    Input,
    /// The dense output.
    Output,
    /// The factor of the product.
    Alpha,
    /// The factor of the old output.
    Beta,
    /// A packed array.
    Matrix,
    /// Memory that is zero before the first launch.
    Workspace,
    /// A number.
    Size,
}

impl From<ArgumentKind> for KindPlan {
    fn from(kind: ArgumentKind) -> Self {
        match kind {
            ArgumentKind::Input => Self::Input,
            ArgumentKind::Output => Self::Output,
            ArgumentKind::Alpha => Self::Alpha,
            ArgumentKind::Beta => Self::Beta,
            ArgumentKind::Matrix => Self::Matrix,
            ArgumentKind::Workspace => Self::Workspace,
            ArgumentKind::Size(_) => Self::Size,
        }
    }
}

/// What all the workspace arguments need together.
#[derive(Clone, Debug, Serialize)]
struct WorkspacePlan {
    bytes: usize,
    /// It is zero before the first launch; no launch needs it cleared again.
    zeroed: bool,
    /// Launches that share it must not overlap.
    exclusive: bool,
}

/// A part of the program.
#[derive(Clone, Debug, Serialize)]
pub struct PartPlan {
    /// Word of its layout.
    pub layout: &'static str,
    /// The layout's fields, by their names in program text.
    fields: BTreeMap<&'static str, FieldPlan>,
    /// Rows of the part.
    pub rows: usize,
    /// The first of them, where they are neighbours in the matrix's order; absent where the part
    /// has an array of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_row: Option<u32>,
    /// Entries of the part.
    pub nnz: usize,
    /// First of its blocks in the grid.
    first_block: u32,
    blocks: u32,
    /// Names of the arguments that are its arrays, by what the layout calls them.
    arrays: BTreeMap<&'static str, String>,
}

/// What stands in a field of program text.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum FieldPlan {
    Number(u32),
    Word(&'static str),
}

impl From<Token> for FieldPlan {
    fn from(token: Token) -> Self {
        match token {
            Token::Number(number) => Self::Number(number),
            Token::Word(word) => Self::Word(word.text()),
        }
    }
}

/// What was compiled, and the resources that it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCode {
    /// What it runs on: `sm_90`.
    pub architecture: Architecture,
    /// Version of the compiler.
    pub nvrtc: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of registers that a thread spills.
    pub spill_store_bytes: u32,
    /// Bytes that it loads again.
    pub spill_load_bytes: u32,
    /// Bytes of a thread's stack.
    pub stack_bytes: u32,
    /// Bytes of a block's static shared memory.
    pub shared_bytes: u32,
}

impl Plan {
    /// The plan of a kernel, which is written to these files; `source_hash` is the BLAKE3 hash of
    /// its [source file](Kernel::source_file), hexadecimal.
    #[must_use]
    pub fn new<C, V>(
        origin: Origin<'_>,
        artefact: &Artefact<C, V>,
        source_hash: String,
        files: Vec<&'static str>,
    ) -> Self
    where
        for<'c> MachineCode: From<&'c C>,
    {
        let Origin { matrix, policy, policy_version } = origin;
        let Kernel { packed, source, launch, code, .. } = &artefact.kernel;
        let machine_code = code.as_ref().map(MachineCode::from);
        let geometry = launch.geometry;
        let may_begin_early = |code: &MachineCode| source.begins_early(code.architecture);
        let arguments = arguments(packed, launch);
        let workspace = arguments.iter().filter(|a| a.kind == KindPlan::Workspace);
        let workspace: usize = workspace.map(|a| a.bytes).sum();
        let constants = source.constants.iter();
        Self {
            format: PLAN_FORMAT,
            language: LanguagePlan {
                version: LANGUAGE_VERSION,
                vocabulary_hash: format!("{:016x}", vocabulary_hash()),
                grammar_hash: format!("{:016x}", grammar_hash()),
            },
            policy: PolicyPlan {
                name: policy.to_owned(),
                version: policy_version.to_owned(),
                score: artefact.score,
            },
            task: packed.program.task.into(),
            matrix: matrix.clone(),
            kernel: KernelPlan {
                name: source.kernel.clone(),
                blake3: source_hash,
                only_for_sizes: constants.map(|size| (size.name.clone(), size.value)).collect(),
            },
            launch: LaunchPlan {
                grid: geometry.grid,
                block: geometry.block,
                static_shared: geometry.static_shared(),
                dynamic_shared: geometry.dynamic_shared(),
                programmatic_stream_serialization: machine_code
                    .as_ref()
                    .is_some_and(may_begin_early),
            },
            arguments,
            order: "row-major",
            workspace: (workspace > 0).then_some(WorkspacePlan {
                bytes: workspace,
                zeroed: true,
                exclusive: true,
            }),
            parts: parts(packed),
            predicted: artefact.predicted.clone(),
            machine_code,
            files,
        }
    }

    /// Bytes of the packed arrays that are passed for arguments of a kind.
    pub fn packed_bytes(&self, kind: KindPlan) -> usize {
        self.arguments.iter().filter(|a| a.kind == kind).map(|a| a.bytes).sum()
    }
}

fn arguments(packed: &Packed, launch: &Launch) -> Vec<ArgumentPlan> {
    let task = packed.program.task;
    let plan = |argument: &Argument| {
        let &Argument { ref name, kind, element, len, ref meaning } = argument;
        let size = element.size();
        let dense = |rows| match task.operation {
            Operation::SpMV => alloc::vec![rows],
            Operation::SpMM { columns } => alloc::vec![rows, columns.get() as usize],
        };
        let shape = match kind {
            ArgumentKind::Input => dense(packed.cols),
            ArgumentKind::Output => dense(packed.rows),
            ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_) => Vec::new(),
            ArgumentKind::Matrix | ArgumentKind::Workspace => alloc::vec![len],
        };
        let alignment = match (kind, task.operation) {
            (
                ArgumentKind::Input | ArgumentKind::Output | ArgumentKind::Workspace,
                Operation::SpMM { .. },
            ) => WIDEST_LOAD,
            (ArgumentKind::Matrix, _) if loads_vectors(&packed.program) => WIDEST_LOAD,
            _ => size,
        };
        ArgumentPlan {
            name: name.clone(),
            meaning: meaning.clone(),
            value: match kind {
                ArgumentKind::Size(size) => Some(size),
                _ => None,
            },
            kind: kind.into(),
            dtype: element.name(),
            passed: match kind {
                ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_) => "value",
                _ => "pointer",
            },
            shape,
            length: len,
            bytes: len * size,
            alignment,
            initial: (kind == ArgumentKind::Workspace).then_some("zero"),
        }
    };
    launch.arguments.iter().map(plan).collect()
}

fn parts(packed: &Packed) -> Vec<PartPlan> {
    let count = packed.parts.len();
    let plan = |(index, part): (usize, &PackedPart)| {
        let fields = part.layout.fields().into_iter();
        PartPlan {
            layout: part.layout.word().text(),
            fields: fields.map(|(name, token)| (name, FieldPlan::from(token))).collect(),
            rows: part.rows.len(),
            first_row: match part.rows {
                Rows::Range { first, .. } => Some(first),
                Rows::List(_) => None,
            },
            nnz: part.nnz,
            first_block: part.first_block,
            blocks: part.blocks,
            arrays: part
                .arrays
                .iter()
                .map(|array| (array.name, part_name(count, index, array.name)))
                .collect(),
        }
    };
    packed.parts.iter().enumerate().map(plan).collect()
}

/// `candidates.json`: the kernels of a folder with several, best first.
#[derive(Debug, Serialize)]
pub struct CandidateList<'a> {
    format: &'static str,
    matrix: &'a MatrixIdentity,
    task: TaskPlan,
    candidates: Vec<CandidateEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct CandidateEntry<'a> {
    /// Subfolder with the kernel.
    folder: String,
    score: f64,
    program: String,
    predicted: &'a Prediction,
}

impl<'a> CandidateList<'a> {
    /// Lists kernels, each by its folder, program and plan.
    pub fn new(
        matrix: &'a MatrixIdentity,
        task: Task,
        candidates: impl Iterator<Item = (String, &'a Program, &'a Plan)>,
    ) -> Self {
        let entry = |(folder, program, plan): (_, &Program, &'a Plan)| CandidateEntry {
            folder,
            score: plan.policy.score,
            program: program.to_string(),
            predicted: &plan.predicted,
        };
        Self {
            format: CANDIDATES_FORMAT,
            matrix,
            task: task.into(),
            candidates: candidates.map(entry).collect(),
        }
    }
}
