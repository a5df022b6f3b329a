//! `plan.json`: all that a caller needs to launch a kernel, and what the kernel was made for.
//!
//! Two runs on the same input write the same bytes, so nothing in here depends on time.

use serde::{Deserialize, Serialize};
use sparserl_core::codegen::{Argument, ArgumentKind, CudaSource};
use sparserl_core::language::{LANGUAGE_VERSION, Program, grammar_hash, vocabulary_hash};
use sparserl_core::layout::{CostModel, Launch, Packed};
use sparserl_core::matrix::CsrView;
use sparserl_core::task::{Operation, Task};
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::store::fingerprint::{MatrixIdentity, fingerprint};

/// The files of a kernel's folder.
pub(crate) const SOURCE: &str = "kernel.cu";
pub(crate) const PROGRAM: &str = "program.skl";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const CUBIN: &str = "kernel.cubin";
pub(crate) const PACKED: &str = "packed.safetensors";
/// Lists the kernels where there are several.
pub(crate) const CANDIDATES: &str = "candidates.json";

/// What `plan.json` is; the number changes with the meaning of its fields.
const PLAN_FORMAT: &str = "sparserl plan 2";
const CANDIDATES_FORMAT: &str = "sparserl candidates 1";

#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    format: &'static str,
    language: LanguagePlan,
    policy: PolicyPlan,
    task: TaskPlan,
    matrix: MatrixPlan,
    kernel: KernelPlan,
    pub(crate) launch: LaunchPlan,
    pub(crate) arguments: Vec<ArgumentPlan>,
    /// How the elements of an argument with several dimensions lie.
    order: &'static str,
    /// What launches must observe; null where the kernel needs no workspace.
    workspace: Option<WorkspacePlan>,
    pub(crate) parts: Vec<PartPlan>,
    pub(crate) predicted: Prediction,
    /// Of what was compiled; absent where nothing was.
    pub(crate) machine_code: Option<MachineCode>,
    /// Names of the files in this folder, this one included.
    pub(crate) files: Vec<&'static str>,
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
pub(crate) struct PolicyPlan {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    /// Of the program under the policy, among the legal ones.
    pub(crate) log_probability: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TaskPlan {
    operation: &'static str,
    /// Columns of the dense operands; absent for SpMV.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    dtype: String,
}

impl From<Task> for TaskPlan {
    fn from(task: Task) -> Self {
        let (operation, columns) = match task.operation {
            Operation::SpMV => ("spmv", None),
            Operation::SpMM { columns } => ("spmm", Some(columns.get())),
        };
        Self { operation, columns, dtype: task.precision.matrix().to_string() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatrixPlan {
    /// Name without its folder.
    pub(crate) file: String,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    /// Of the matrix as it was read, in double precision.
    pub(crate) blake3: String,
}

impl MatrixPlan {
    pub(crate) fn new(file: String, matrix: CsrView<'_, f64>) -> Self {
        let blake3 = fingerprint(matrix).to_hex().to_string();
        Self { file, rows: matrix.rows(), cols: matrix.cols(), nnz: matrix.nnz(), blake3 }
    }

    /// By which recordings know it.
    pub(crate) fn identity(&self) -> anyhow::Result<MatrixIdentity> {
        Ok(MatrixIdentity { fingerprint: self.blake3.parse()?, name: self.file.clone() })
    }
}

#[derive(Clone, Debug, Serialize)]
struct KernelPlan {
    name: String,
}

/// A launch of one dimension.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LaunchPlan {
    /// Blocks.
    pub(crate) grid: u32,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub(crate) static_shared: usize,
    /// Bytes of shared memory that the launch asks for.
    dynamic_shared: usize,
}

/// An argument of the kernel, in order.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ArgumentPlan {
    pub(crate) name: String,
    /// `input`, `output`, `alpha`, `beta`, `matrix`, `workspace` or `size`.
    pub(crate) kind: &'static str,
    pub(crate) dtype: &'static str,
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
    pub(crate) length: usize,
    pub(crate) bytes: usize,
    /// Bytes to which the pointer, or the value, must be aligned.
    alignment: usize,
    /// `zero` where the memory must be zero before the first launch; absent where the caller fills
    /// it or it does not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    initial: Option<&'static str>,
}

/// Of all the workspace arguments together.
#[derive(Clone, Debug, Serialize)]
struct WorkspacePlan {
    bytes: usize,
    /// It is zero before the first launch; no launch needs it cleared again.
    zeroed: bool,
    /// Launches that share it must not overlap.
    exclusive: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartPlan {
    pub(crate) layout: &'static str,
    pub(crate) rows: usize,
    pub(crate) nnz: usize,
    /// First of its blocks in the grid.
    first_block: u32,
    blocks: u32,
}

/// What the cost model expects of one product.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Prediction {
    /// Of the matrix arrays that are read; traffic of the workspace is not among them.
    pub(crate) matrix_bytes: u64,
    /// Of the dense operands, each element moved once.
    pub(crate) dense_bytes: u64,
    /// Of the matrix in plain CSR, for comparison.
    pub(crate) csr_bytes: u64,
    pub(crate) flops: u64,
    /// On a nominal GPU, to rank programs; no claim.
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct MachineCode {
    pub(crate) architecture: String,
    pub(crate) nvrtc: String,
    pub(crate) registers: u32,
    pub(crate) spill_store_bytes: u32,
    pub(crate) spill_load_bytes: u32,
    pub(crate) stack_bytes: u32,
    pub(crate) shared_bytes: u32,
}

impl From<&Cubin> for MachineCode {
    fn from(cubin: &Cubin) -> Self {
        let used = cubin.resources();
        Self {
            architecture: cubin.architecture().to_string(),
            nvrtc: cubin.nvrtc_version().to_string(),
            registers: used.registers,
            spill_store_bytes: used.spill_stores,
            spill_load_bytes: used.spill_loads,
            stack_bytes: used.stack,
            shared_bytes: used.shared,
        }
    }
}

impl Plan {
    pub(crate) fn new(
        matrix: MatrixPlan,
        costs: &CostModel<'_>,
        policy: PolicyPlan,
        packed: &Packed,
        source: &CudaSource,
        machine_code: Option<MachineCode>,
    ) -> Self {
        let launch = packed.launch;
        let arguments = arguments(packed, source);
        let workspace = arguments.iter().filter(|a| a.kind == kind_name(ArgumentKind::Workspace));
        let workspace: usize = workspace.map(|a| a.bytes).sum();
        Self {
            format: PLAN_FORMAT,
            language: LanguagePlan {
                version: LANGUAGE_VERSION,
                vocabulary_hash: format!("{:016x}", vocabulary_hash()),
                grammar_hash: format!("{:016x}", grammar_hash()),
            },
            policy,
            task: packed.program.task.into(),
            matrix,
            kernel: KernelPlan { name: source.kernel.clone() },
            launch: LaunchPlan {
                grid: launch.grid,
                block: launch.block,
                static_shared: launch.shared,
                dynamic_shared: 0,
            },
            arguments,
            order: "row-major",
            workspace: (workspace > 0).then_some(WorkspacePlan {
                bytes: workspace,
                zeroed: true,
                exclusive: true,
            }),
            parts: parts(packed),
            predicted: Prediction::new(costs, packed),
            machine_code,
            files: vec![SOURCE, PROGRAM, PLAN],
        }
    }

    /// Bytes of the packed arrays that are passed for arguments of a kind.
    pub(crate) fn packed_bytes(&self, kind: ArgumentKind) -> usize {
        let kind = kind_name(kind);
        self.arguments.iter().filter(|a| a.kind == kind).map(|a| a.bytes).sum()
    }
}

impl Prediction {
    fn new(costs: &CostModel<'_>, packed: &Packed) -> Self {
        let cost = costs.cost(&packed.program);
        Self {
            matrix_bytes: cost.matrix_bytes,
            dense_bytes: cost.dense_bytes,
            csr_bytes: costs.csr_bytes(),
            flops: cost.flops,
            seconds: cost.seconds,
        }
    }
}

fn kind_name(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Input => "input",
        ArgumentKind::Output => "output",
        ArgumentKind::Alpha => "alpha",
        ArgumentKind::Beta => "beta",
        ArgumentKind::Matrix => "matrix",
        ArgumentKind::Workspace => "workspace",
        ArgumentKind::Size(_) => "size",
    }
}

/// Bytes of an element, whose type's Rust name ends in its bits.
fn element_bytes(dtype: &str) -> usize {
    dtype.trim_start_matches(char::is_alphabetic).parse().unwrap_or(8) / 8
}

/// Bytes of the widest accesses to dense operands and workspace.
const VECTOR_BYTES: usize = 16;

fn arguments(packed: &Packed, source: &CudaSource) -> Vec<ArgumentPlan> {
    let task = packed.program.task;
    let plan = |argument: &Argument| {
        let &Argument { ref name, kind, dtype, len, ref meaning } = argument;
        let size = element_bytes(dtype);
        let dense = |rows| match task.operation {
            Operation::SpMV => vec![rows],
            Operation::SpMM { columns } => vec![rows, columns.get() as usize],
        };
        let shape = match kind {
            ArgumentKind::Input => dense(packed.cols),
            ArgumentKind::Output => dense(packed.rows),
            ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_) => Vec::new(),
            ArgumentKind::Matrix | ArgumentKind::Workspace => vec![len],
        };
        let alignment = match (kind, task.operation) {
            (
                ArgumentKind::Input | ArgumentKind::Output | ArgumentKind::Workspace,
                Operation::SpMM { .. },
            ) => VECTOR_BYTES,
            _ => size,
        };
        ArgumentPlan {
            name: name.clone(),
            meaning: meaning.clone(),
            value: match kind {
                ArgumentKind::Size(size) => Some(size),
                _ => None,
            },
            kind: kind_name(kind),
            dtype,
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
    source.arguments(packed).iter().map(plan).collect()
}

/// The launch for this matrix, to stand after the last line of its source: neither that nor what it
/// compiles to depends on the matrix.
pub(crate) fn launch_comment(source: &CudaSource, packed: &Packed) -> String {
    let Launch { grid, block, .. } = packed.launch;
    let mut text =
        format!("\n// For the matrix of plan.json: {grid} blocks of {block} threads, with\n//\n");
    for argument in source.arguments(packed) {
        if let ArgumentKind::Size(size) = argument.kind {
            text.push_str(&format!("//   {} = {size}\n", argument.name));
        }
    }
    text
}

fn parts(packed: &Packed) -> Vec<PartPlan> {
    let plan = |part: &sparserl_core::layout::PackedPart| PartPlan {
        layout: part.layout.word().text(),
        rows: part.rows.len(),
        nnz: part.nnz,
        first_block: part.first_block,
        blocks: part.blocks,
    };
    packed.parts.iter().map(plan).collect()
}

/// `candidates.json`: the kernels of a folder with several, best first.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateList<'a> {
    format: &'static str,
    matrix: &'a MatrixPlan,
    task: TaskPlan,
    candidates: Vec<CandidateEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct CandidateEntry<'a> {
    /// Subfolder with the kernel.
    folder: String,
    log_probability: f64,
    program: String,
    predicted: &'a Prediction,
}

impl<'a> CandidateList<'a> {
    pub(crate) fn new(
        matrix: &'a MatrixPlan,
        task: Task,
        candidates: impl Iterator<Item = (String, &'a Program, f64, &'a Plan)>,
    ) -> Self {
        let entry = |(folder, program, log_probability, plan): (_, &Program, _, &'a Plan)| {
            let program = program.to_string();
            CandidateEntry { folder, log_probability, program, predicted: &plan.predicted }
        };
        Self {
            format: CANDIDATES_FORMAT,
            matrix,
            task: task.into(),
            candidates: candidates.map(entry).collect(),
        }
    }
}
