//! Kernels judged without a GPU: right ones pass, and each way of being wrong is told for what it
//! is. Their sources are compiled by processes that run this very program.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::num::{NonZeroU32, NonZeroUsize};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use half::{bf16, f16};
use libtest_mimic::{Arguments, Trial};

use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, Offsets, generate};
use sparserl_core::outcome::{Evaluator, Outcome, Violation};
use sparserl_core::pipeline::{Check, Ranked, Taken};
use sparserl_core::task::{Dtype, Operation, Precision, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::pool::{CompilePool, PoolCompileError};
use sparserl_gpu::emulated::checker::{Checker, Unjudged};
use sparserl_gpu::emulated::{
    EmulationOptions, EmulatorError, EmulatorEvaluator, FindingKind, Judgement,
};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::serve::serve;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, role)) = words.split_first().filter(|(first, _)| *first == "serve") {
        return if serve(role).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let trial = |(name, check): (&str, fn())| {
        Trial::test(name, move || {
            check();
            Ok(())
        })
    };
    let trials = CHECKS.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

const CHECKS: [(&str, fn()); 16] = [
    ("right_programs_are_verified", right_programs_are_verified),
    ("blocks_by_tensor_cores_are_right", blocks_by_tensor_cores_are_right),
    (
        "programs_for_another_matrix_or_element_type_do_not_compile",
        programs_for_another_matrix_or_element_type_do_not_compile,
    ),
    (
        "a_right_kernel_from_anywhere_is_verified_and_counted",
        a_right_kernel_from_anywhere_is_verified_and_counted,
    ),
    (
        "a_kernel_from_anywhere_is_judged_in_the_precision_of_its_task",
        a_kernel_from_anywhere_is_judged_in_the_precision_of_its_task,
    ),
    (
        "sums_in_half_precision_and_results_that_are_cut_are_wrong",
        sums_in_half_precision_and_results_that_are_cut_are_wrong,
    ),
    ("each_fault_is_told_for_what_it_is", each_fault_is_told_for_what_it_is),
    (
        "what_is_wrong_without_a_fault_is_a_wrong_result",
        what_is_wrong_without_a_fault_is_a_wrong_result,
    ),
    ("what_does_not_compile_is_its_own_fault", what_does_not_compile_is_its_own_fault),
    ("what_cannot_be_told_is_an_error", what_cannot_be_told_is_an_error),
    ("a_hostile_source_is_compiled_elsewhere", a_hostile_source_is_compiled_elsewhere),
    (
        "a_check_judges_the_kernel_that_will_be_written",
        a_check_judges_the_kernel_that_will_be_written,
    ),
    (
        "who_needs_more_than_a_budget_is_not_called_faulty",
        who_needs_more_than_a_budget_is_not_called_faulty,
    ),
    ("what_takes_too_long_is_not_called_wrong", what_takes_too_long_is_not_called_wrong),
    (
        "nan_that_spreads_is_a_remark_and_what_it_hides_is_wrong",
        nan_that_spreads_is_a_remark_and_what_it_hides_is_wrong,
    ),
    (
        "blocks_have_the_memory_and_registers_of_the_architecture",
        blocks_have_the_memory_and_registers_of_the_architecture,
    ),
];

fn pool() -> Arc<CompilePool> {
    static COMPILERS: OnceLock<Arc<CompilePool>> = OnceLock::new();
    let start = || {
        let command = ServerCommand::this_program(["serve"]).unwrap();
        let pool = CompilePool::start(command, NonZeroUsize::new(2).unwrap(), None);
        Arc::new(pool.unwrap_or_else(|error| panic!("these tests need NVRTC: {error}")))
    };
    Arc::clone(COMPILERS.get_or_init(start))
}

fn emulator() -> EmulatorEvaluator {
    emulator_for(Architecture::Sm90, EmulationOptions::default())
}

fn emulator_for(architecture: Architecture, options: EmulationOptions) -> EmulatorEvaluator {
    EmulatorEvaluator::open(pool(), architecture, options).unwrap()
}

/// A source of `tests/emulator/foreign`.
fn foreign(name: &str) -> RawKernel {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/emulator/foreign");
    let source = std::fs::read_to_string(format!("{folder}/{name}.cu")).unwrap();
    RawKernel::parse(&source, None).unwrap()
}

fn program(text: &str) -> Program {
    Program::parse(&format!("sparserl 3\n{text}\n")).unwrap()
}

/// 300 rows of up to 12 entries, some of them empty.
fn matrix() -> Csr<f32> {
    generate::hyper_sparse(300, 280, 1500, 7).cast().unwrap()
}

/// SpMV with one thread a row, where `sum` computes a row's sum and `store` stores it.
fn cuda(sum: &str, store: &str) -> RawKernel {
    let source = format!(
        "// launch: spmv<<<ceil(num_rows / 128), 128>>>
__global__ void spmv(const int* row_ptr, const int* col_idx, const float* values, const float* x,
                     float* y, int num_rows) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {{
        float sum = 0;
        {sum}
        {store}
    }}
}}
"
    );
    RawKernel::parse(&source, None).unwrap()
}

const SPMV: Task = Task::new(Operation::SpMV, Dtype::F32);

const SUM: &str =
    "for (int i = row_ptr[row]; i < row_ptr[row + 1]; i++) sum += values[i] * x[col_idx[i]];";

fn judge(kernel: &RawKernel) -> Judgement {
    let candidate = Candidate::uncompiled(kernel, SPMV);
    emulator().judge(matrix().view(), candidate).unwrap()
}

fn right_programs_are_verified() {
    let matrix = matrix();
    let programs = [
        program(
            "spmv f32\nblock 128\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
        ),
        program(
            "spmv f32\nblock 128\nkeep sell height=32 index=u16 values=plain cache=cached vector=1 lanes=4 unroll=4",
        ),
    ];
    let kernels = programs.map(|program| Kernel::for_matrix(matrix.view(), &program).unwrap());
    let candidates = kernels.each_ref().map(Candidate::Kernel);
    let evaluation = emulator().judge_all(matrix.view(), &candidates).unwrap();
    for outcome in &evaluation.outcomes {
        let Outcome::Verified(verification) = outcome else { panic!("{outcome}") };
        assert_eq!(verification.checks, 6);
        assert!((0.0..=1.0).contains(&verification.worst_ratio));
    }
    assert_eq!((evaluation.outcomes.len(), evaluation.baselines.len()), (2, 0));
}

fn blocks_by_tensor_cores_are_right() {
    // With infinity in B, too, which empty slots must not meet.
    let thorough = EmulationOptions { checks: 5, ..EmulationOptions::default() };
    let emulator = emulator_for(Architecture::Sm90, thorough);
    for (side, columns, vector, coding) in [
        (2, 16, 2, "plain"),
        (2, 64, 8, "dictionary"),
        (4, 32, 4, "plain"),
        (4, 128, 8, "dictionary"),
        (6, 40, 4, "plain"),
        (8, 32, 2, "plain"),
        (8, 128, 8, "plain"),
    ] {
        // The last rows and columns fill no block, and some blocks have empty slots.
        let blocks = generate::block_pruned(51, 77, side, 30, 3);
        let few = coding == "dictionary";
        let (mut offsets, mut indices, mut values) = (vec![0_u32], Vec::new(), Vec::new());
        for row in 0..blocks.rows() {
            let (row_columns, row_values) = blocks.view().row(row);
            let entries = row_columns.iter().zip(row_values);
            for (&column, &value) in
                entries.filter(|(column, _)| !(row + **column as usize).is_multiple_of(7))
            {
                indices.push(column);
                values.push(if few { f64::from((value * 8.0) as i32) } else { value });
            }
            offsets.push(indices.len() as u32);
        }
        let matrix = Csr::new(51, 77, Offsets::U32(offsets), indices, values).unwrap();
        for dtype in [Dtype::F16, Dtype::BF16] {
            let text = format!(
                "spmm {columns} {dtype}\nblock 64\nkeep bcsr side={side} index=u16 values={coding} \
                 cache=cached vector={vector} lanes=4"
            );
            let program = program(&text);
            let judgement = match dtype {
                Dtype::F16 => {
                    let matrix = matrix.cast::<f16>().unwrap();
                    let kernel = Kernel::for_matrix(matrix.view(), &program).unwrap();
                    assert!(kernel.source.text.contains("mma.sync"), "{text}");
                    emulator.judge(matrix.view(), Candidate::Kernel(&kernel))
                }
                _ => emulator.judge_program(matrix.cast::<bf16>().unwrap().view(), &program),
            };
            let outcome = judgement.unwrap().outcome;
            assert!(matches!(outcome, Outcome::Verified(_)), "{text}: {outcome}");
        }
    }
}

fn programs_for_another_matrix_or_element_type_do_not_compile() {
    let single = program(
        "spmv f32\nblock 128\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
    );
    let double = program(
        "spmv f64\nblock 128\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
    );
    let wide: Csr<f32> = generate::uniform(10, 100_000, 4, 1).cast().unwrap();
    for (matrix, program) in [(matrix(), double), (wide, single)] {
        let outcome = emulator().judge_program(matrix.view(), &program).unwrap().outcome;
        let Outcome::CompileFailed { reason } = &outcome else { panic!("{outcome}") };
        assert!(reason.starts_with("it does not fit the matrix: "), "{reason}");
    }
    // One that was made already.
    let (single, double): (Csr<f32>, Csr<f64>) = (matrix(), matrix().cast().unwrap());
    let text = "spmv f64\nblock 128\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4";
    let kernel = Kernel::for_matrix(double.view(), &program(text)).unwrap();
    let error = emulator().judge(single.view(), Candidate::Kernel(&kernel)).unwrap_err();
    assert_eq!(error.to_string(), "the kernel is for spmv f64, and the matrix holds f32");
}

fn a_right_kernel_from_anywhere_is_verified_and_counted() {
    let judgement = judge(&cuda(SUM, "y[row] = sum;"));
    assert!(judgement.outcome.is_right(), "{}", judgement.outcome);
    assert_eq!(judgement.findings, []);
    let counters = judgement.counters.unwrap();
    assert!(counters.instructions > counters.warp_instructions);
    // Ten warps store, the last of them for 12 rows.
    assert_eq!(counters.global_stores, 10);
    assert!(counters.longest_warp <= counters.warp_instructions);
    assert!(counters.longest_warp * counters.warps >= counters.warp_instructions);
    assert!((1..counters.longest_warp).contains(&counters.longest_warp_loads));
    assert_eq!(counters.global_store_sectors, 300_u64.div_ceil(8));
    assert!(judgement.ptx_instructions.unwrap() > 10);
}

fn a_kernel_from_anywhere_is_judged_in_the_precision_of_its_task() {
    let kernel = |values: &str, sum: &str| {
        let source = format!(
            "// launch: spmv<<<ceil(num_rows / 128), 128>>>
__global__ void spmv(const int* row_ptr, const int* col_idx, const {values}* values,
                     const double* x, double* y, int num_rows) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {{
        {sum} sum = 0;
        {SUM}
        y[row] = sum;
    }}
}}
"
        );
        RawKernel::parse(&source, None).unwrap()
    };
    let mixed = SPMV.with_precision(Precision::F32_IN_F64);
    let outcome = |kernel: &RawKernel, task| {
        let candidate = Candidate::uncompiled(kernel, task);
        emulator().judge(matrix().view(), candidate).unwrap().outcome.to_string()
    };
    let right = kernel("float", "double");
    assert!(outcome(&right, mixed).starts_with("right in 11 checks"), "{}", outcome(&right, mixed));
    // Sums have to be in double precision.
    let short = outcome(&kernel("float", "float"), mixed);
    assert!(short.contains("inexact"), "{short}");
    for (kernel, task, refusal) in [
        (&kernel("double", "double"), mixed, "`values` is of f64, but the task is f32/f64/f64"),
        (&right, SPMV, "`x` is of f64, but the task is f32"),
        (
            &right,
            SPMV.with_precision(Dtype::F64.into()),
            "the matrix is of f32, but the task is f64",
        ),
    ] {
        let refused = outcome(kernel, task);
        assert!(refused.contains(refusal), "{refused}");
    }
}

fn sums_in_half_precision_and_results_that_are_cut_are_wrong() {
    const NEAREST: &str = "(bits + 0x7fffu + (bits >> 16 & 1u)) >> 16";
    let kernel = |ty: &str, half: &str, each: &str| {
        let source = format!(
            "// launch: spmv<<<ceil(num_rows / 128), 128>>>
{half}
__global__ void spmv(const int* row_ptr, const int* col_idx, const {ty}* values, const {ty}* x,
                     {ty}* y, float alpha, float beta, int num_rows) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {{
        float sum = 0;
        for (int i = row_ptr[row]; i < row_ptr[row + 1]; i++) {{
            sum += wide(values[i]) * wide(x[col_idx[i]]);
            {each}
        }}
        y[row] = narrow(alpha * sum + (beta == 0 ? 0 : beta * wide(y[row])));
    }}
}}
"
        );
        RawKernel::parse(&source, None).unwrap()
    };
    let bf16 = |rounded: &str| {
        format!(
            "struct bf16 {{ unsigned short bits; }};
__device__ float wide(bf16 half) {{ return __uint_as_float((unsigned)half.bits << 16); }}
__device__ bf16 narrow(float value) {{
    const unsigned bits = __float_as_uint(value);
    return bf16{{(unsigned short)({rounded})}};
}}"
        )
    };
    let f16 = "struct f16 { unsigned short bits; };
__device__ float wide(f16 half) {
    float value;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(half.bits));
    return value;
}
__device__ f16 narrow(float value) {
    f16 half;
    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(half.bits) : \"f\"(value));
    return half;
}";
    let matrix = generate::uniform(200, 300, 60, 4);
    let judged = |dtype: Dtype, half: &str, each: &str| {
        let kernel = kernel(dtype.name(), half, each);
        let candidate = Candidate::uncompiled(&kernel, SPMV.with_precision(dtype.into()));
        let judgement = match dtype {
            Dtype::F16 => emulator().judge(matrix.cast::<f16>().unwrap().view(), candidate),
            _ => emulator().judge(matrix.cast::<bf16>().unwrap().view(), candidate),
        };
        judgement.unwrap().outcome.to_string()
    };
    let each = "sum = wide(narrow(sum));";
    let (nearest, cut) = (bf16(NEAREST), bf16("bits >> 16"));
    for (dtype, half) in [(Dtype::F16, f16), (Dtype::BF16, nearest.as_str())] {
        let right = judged(dtype, half, "");
        assert!(right.starts_with("right in 15 checks"), "{dtype}: {right}");
        let rounded = judged(dtype, half, each);
        assert!(rounded.contains("inexact"), "{dtype}: {rounded}");
    }
    let cut = judged(Dtype::BF16, &cut, "");
    assert!(cut.contains("inexact"), "{cut}");
}

fn each_fault_is_told_for_what_it_is() {
    for (sum, store, kind) in [
        ("sum = x[num_rows + row];", "y[row] = sum;", FindingKind::OutOfBounds),
        (SUM, "y[row] += sum;", FindingKind::Uninitialised),
        (SUM, "y[row] = sum; y[0] = sum;", FindingKind::Race),
        (SUM, "y[row] = sum; if (row == 3) __trap();", FindingKind::Trap),
    ] {
        let judgement = judge(&cuda(sum, store));
        let Outcome::Faulted { reason } = &judgement.outcome else {
            panic!("{kind}: {}", judgement.outcome)
        };
        assert!(judgement.findings.iter().any(|finding| finding.kind == kind), "{kind}: {reason}");
        assert_eq!(reason.lines().count(), 1, "{reason}");
        assert!(reason.contains("spmv.cu:"), "{reason}");
    }
}

fn what_is_wrong_without_a_fault_is_a_wrong_result() {
    let write = "y[row] = sum; if (row == 3) const_cast<float*>(x)[5] = 2;";
    let short = "if (row > 0) y[row] = sum;";
    for (sum, store, expected) in [
        (SUM, write, Violation::InputChanged),
        (SUM, short, Violation::Inexact),
        (SUM, "y[row] = 1.001f * sum;", Violation::Inexact),
    ] {
        let judgement = judge(&cuda(sum, store));
        let Outcome::WrongResult { violation, reason } = &judgement.outcome else {
            panic!("{store}: {}", judgement.outcome)
        };
        assert_eq!(*violation, expected, "{reason}");
        assert_eq!(reason.lines().count(), 1, "{reason}");
    }
    let unwritten = judge(&cuda(SUM, short)).outcome.to_string();
    assert!(unwritten.contains("row 0, column 0: NaN (not written)"), "{unwritten}");
}

fn what_does_not_compile_is_its_own_fault() {
    let judgement = judge(&cuda("sum = undefined;", "y[row] = sum;"));
    assert!(matches!(judgement.outcome, Outcome::CompileFailed { .. }), "{}", judgement.outcome);
    assert_eq!((judgement.counters, judgement.ptx_instructions), (None, None));
}

fn what_cannot_be_told_is_an_error() {
    let huge = || Csr::new(1, 2, Offsets::U32(vec![0, 2]), vec![0, 1], vec![2e38_f32, 2e38]);
    let kernel = cuda(SUM, "y[row] = sum;");
    let judge = |matrix: &Csr<f32>, operation| {
        let task = Task { operation, ..SPMV };
        emulator().judge(matrix.view(), Candidate::uncompiled(&kernel, task)).unwrap_err()
    };
    let range = judge(&huge().unwrap(), Operation::SpMV);
    assert!(matches!(range, EmulatorError::Range { elements: 1, .. }), "{range}");
    let wide: Csr<f32> = generate::hyper_sparse(2, 1 << 29, 4, 1).cast().unwrap();
    let columns = NonZeroU32::new(64).unwrap();
    let large = judge(&wide, Operation::SpMM { columns });
    assert!(matches!(large, EmulatorError::TooLarge { columns: 64, .. }), "{large}");
}

/// Templates without end overflow the compiler's stack, and with it end its process.
fn a_hostile_source_is_compiled_elsewhere() {
    let deep = "
template <int N> struct Deep { static constexpr int value = Deep<N + 1>::value; };
";
    let kernel = cuda("sum = Deep<0>::value;", "y[row] = sum;");
    let source = kernel.source().replacen("// launch", &format!("{deep}// launch"), 1);
    let source = source.replace("extern \"C\" ", "");
    let judgement = judge(&RawKernel::parse(&source, None).unwrap());
    assert!(matches!(judgement.outcome, Outcome::CompileFailed { .. }), "{}", judgement.outcome);
    // The evaluator is whole.
    assert!(judge(&cuda(SUM, "y[row] = sum;")).outcome.is_right());

    let compilers = sparserl_gpu::compile::nvrtc::Compilers::discover().unwrap();
    let options = EmulationOptions::default();
    let here = EmulatorEvaluator::in_process(Arc::new(compilers), Architecture::Sm90, options);
    let candidate = Candidate::uncompiled(&kernel, SPMV);
    let refused = here.unwrap().judge(matrix().view(), candidate).unwrap_err();
    assert!(matches!(refused, EmulatorError::Foreign), "{refused}");
}

fn a_check_judges_the_kernel_that_will_be_written() {
    let matrix = matrix();
    let program = program(
        "spmv f32\nblock 128\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
    );
    let compiler = CubinCompiler::new(pool(), Architecture::Sm90, None);
    let unjudged = Unjudged::Never;
    let open = || Checker::open(&compiler, matrix.view(), Operation::SpMV, unjudged).unwrap();
    let take = |mut checker: Checker<'_, f32>, edit: &str| {
        let mut kernel = Kernel::for_matrix(matrix.view(), &program).unwrap();
        kernel.source.text.push_str(edit);
        let ranked = Ranked { index: 0, score: 0.0, kernel };
        checker.take(&mut std::iter::once(Ok(ranked)), 1)
    };
    let later = Instant::now() + Duration::from_secs(100);
    for checker in [open(), open().until(Some(later))] {
        let taken = take(checker, "").unwrap();
        assert!(matches!(taken.as_slice(), [Taken { verdict: Some(_), .. }]), "{taken:?}");
    }
    let error = take(open(), "#error edited\n").unwrap_err();
    assert!(error.is_wrong, "{error}");
    // Nothing is said of what there is no time for.
    let error = take(open().until(Some(Instant::now())), "").unwrap_err();
    assert!(!error.is_wrong, "{error}");
}

fn who_needs_more_than_a_budget_is_not_called_faulty() {
    let judge = |kernel: &RawKernel, budget| {
        let options = EmulationOptions { budget: Some(budget), ..EmulationOptions::default() };
        let candidate = Candidate::uncompiled(kernel, SPMV);
        emulator_for(Architecture::Sm90, options).judge(matrix().view(), candidate)
    };
    // What the matrix implies if one warp does all of the work.
    let all = 60 * (matrix().nnz() as u64 + 300 + 280);
    let one_thread = foreign("right/one_thread");
    let error = judge(&one_thread, 2_000).unwrap_err();
    assert!(
        matches!(error, EmulatorError::Budget { budget: 2_000, implied } if implied == all),
        "{error}"
    );
    assert!(judge(&one_thread, all).unwrap().outcome.is_right());
    // Who goes round and round, or waits for what nobody does, never ends by any budget.
    let round = cuda("for (int i = 0; i < 2; i = row_ptr[row] & 0) sum += i;", "y[row] = sum;");
    let waits = foreign("wrong/waits_for_a_later_block");
    for (endless, budget) in [(waits, 2_000), (round, 2_000)] {
        let judgement = judge(&endless, budget).unwrap();
        assert!(matches!(judgement.outcome, Outcome::Faulted { .. }), "{}", judgement.outcome);
        let kinds: Vec<_> = judgement.findings.iter().map(|finding| finding.kind).collect();
        assert!(kinds.contains(&FindingKind::Endless), "{kinds:?}");
    }
    // One that counts may end somewhen, unless the matrix implies less.
    let counts =
        cuda("for (unsigned i = 1; i < 4000000000u; i += 2) sum += i & row;", "y[row] = sum;");
    assert!(matches!(judge(&counts, 2_000), Err(EmulatorError::Budget { .. })));
    let judgement = judge(&counts, all).unwrap();
    assert!(matches!(judgement.outcome, Outcome::Faulted { .. }), "{}", judgement.outcome);
}

fn what_takes_too_long_is_not_called_wrong() {
    let judge = |seconds: f64| {
        let deadline = Some(std::time::Duration::from_secs_f64(seconds));
        let options = EmulationOptions { budget: Some(1 << 40), deadline, ..Default::default() };
        let counts = cuda("for (unsigned i = 1; i != 0; i += 2) sum += i & row;", "y[row] = sum;");
        let candidate = Candidate::uncompiled(&counts, SPMV);
        emulator_for(Architecture::Sm90, options).judge(matrix().view(), candidate)
    };
    for seconds in [1e-9, 1.0] {
        let error = judge(seconds).unwrap_err();
        // The time is for compiling, too, which is not begun where there is none.
        let is_of_time = match &error {
            EmulatorError::OutOfTime { deadline }
            | EmulatorError::Pool(PoolCompileError::TimedOut { deadline }) => {
                deadline.as_secs_f64() == seconds
            }
            _ => false,
        };
        assert!(is_of_time, "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

fn nan_that_spreads_is_a_remark_and_what_it_hides_is_wrong() {
    // The next entry may be another row's, and counts as nothing if it is.
    let padded = "const int end = row_ptr[row + 1], last = row_ptr[num_rows] - 1;
        for (int i = row_ptr[row]; i < end; i += 2) {
            sum += values[i] * x[col_idx[i]];
            const int next = min(i + 1, last);
            sum += (i + 1 < end ? values[next] : 0.0f) * x[i + 1 < end ? col_idx[next] : 0];
        }";
    let judgement = judge(&cuda(padded, "y[row] = sum;"));
    assert!(judgement.outcome.is_right(), "{}", judgement.outcome);
    let remark = judgement.remark.unwrap();
    let begins =
        "results are right for finite operands; NaN or infinity in x spreads to rows without it, ";
    assert!(remark.starts_with(begins), "{remark}");
    assert_eq!(judge(&cuda(SUM, "y[row] = sum;")).remark, None);
    // Operands are as aligned as this says.
    let aligned = "if ((unsigned long long)y % 16 == 0) y[row] = sum;";
    assert!(judge(&cuda(SUM, aligned)).outcome.is_right());
    let outcome = judge(&foreign("wrong/aligned_to_32_bytes")).outcome;
    let Outcome::Faulted { reason } = outcome else { panic!("{outcome}") };
    assert!(reason.ends_with("; here dense operands are aligned to 16 bytes only"), "{reason}");
    // What is finite where there is NaN elsewhere, or is not written then, is wrong.
    for store in ["y[row] = x[0] == x[0] ? sum : 1.0f;", "if (x[0] == x[0]) y[row] = sum;"] {
        let outcome = judge(&cuda(SUM, store)).outcome;
        let Outcome::WrongResult { reason, .. } = outcome else { panic!("{outcome}") };
        assert!(reason.contains("with NaN in rows of the input"), "{reason}");
    }
    // The same of infinity, which equals itself.
    let outcome =
        judge(&cuda(SUM, "y[row] = fabsf(x[0]) < 2.0f || x[0] != x[0] ? sum : 1.0f;")).outcome;
    let Outcome::WrongResult { reason, .. } = outcome else { panic!("{outcome}") };
    assert!(reason.contains("with infinity in rows of the input"), "{reason}");
}

fn blocks_have_the_memory_and_registers_of_the_architecture() {
    let of_bytes = |bytes: u32| {
        let source = format!(
            "// launch: spmv<<<ceil(num_rows / 128), 128, {bytes}>>>
__global__ void spmv(const int* row_ptr, const int* col_idx, const float* values, const float* x,
                     float* y, int num_rows) {{
    extern __shared__ float sums[];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < num_rows) {{
        sums[threadIdx.x] = 0;
        for (int i = row_ptr[row]; i < row_ptr[row + 1]; i++)
            sums[threadIdx.x] += values[i] * x[col_idx[i]];
        y[row] = sums[threadIdx.x];
    }}
}}
"
        );
        RawKernel::parse(&source, None).unwrap()
    };
    let judge = |bytes, architecture| {
        let kernel = of_bytes(bytes);
        let evaluator = emulator_for(architecture, EmulationOptions::default());
        evaluator.judge(matrix().view(), Candidate::uncompiled(&kernel, SPMV)).unwrap().outcome
    };
    let all = 99 << 10;
    assert!(judge(all, Architecture::Sm86).is_right());
    assert!(judge(all + 1, Architecture::Sm90).is_right());
    let outcome = judge(all + 1, Architecture::Sm86);
    let Outcome::LaunchFailed { reason } = outcome else { panic!("{outcome}") };
    assert!(reason.contains("sm_86 has 101376 for a block"), "{reason}");

    let outcome = self::judge(&foreign("wrong/registers_of_a_block")).outcome;
    let Outcome::LaunchFailed { reason } = outcome else { panic!("{outcome}") };
    let begins = "blocks of 1024 threads of ";
    let ends = "__launch_bounds__(1024) makes the compiler keep to that";
    assert!(reason.starts_with(begins) && reason.ends_with(ends), "{reason}");
}
