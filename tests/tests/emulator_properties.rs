//! What the emulator says of random programs. Needs no GPU.
//!
//! Legal programs for random matrices are right, within the error bound and without a finding, in
//! several orders of execution, and so are the golden programs for theirs. Programs that need not
//! fit are judged, whatever becomes of them. `PROPTEST_CASES` says how many of each.

use std::sync::{Arc, OnceLock};

use half::{bf16, f16};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use sparserl_core::arbitrary::{Case, case, case_in, csr, free_case, mutated_tokens, task};
use sparserl_core::language::Program;
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::Outcome;
use sparserl_core::task::{Dtype, Precision};
use sparserl_core::with_scalar;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError, EmulatorEvaluator, Judgement};
use sparserl_tests::golden::{self, Golden};

/// Cases of each property, unless the environment says otherwise.
const CASES: u32 = 48;
const ROWS: usize = 250;
const ENTRIES: usize = 1200;

fn evaluator() -> Result<&'static EmulatorEvaluator, TestCaseError> {
    static EVALUATOR: OnceLock<Result<EmulatorEvaluator, String>> = OnceLock::new();
    let evaluator = EVALUATOR.get_or_init(|| open(2, 2));
    evaluator.as_ref().map_err(|error| TestCaseError::fail(error.clone()))
}

fn open(seeds: u32, checks: u32) -> Result<EmulatorEvaluator, String> {
    let compilers = Compilers::discover().map_err(|error| error.to_string())?;
    // A hang takes more than a hundred times what any of these needs.
    let options =
        EmulationOptions { seeds, checks, budget: Some(2_000_000), ..EmulationOptions::default() };
    // Blocks of panels and bins have room on this one.
    EmulatorEvaluator::in_process(Arc::new(compilers), Architecture::Sm90, options)
        .map_err(|error| error.to_string())
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(CASES),
        max_shrink_iters: 16,
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    }
}

/// Judges a program; rejects the case when the matrix's values are too large to tell anything.
fn judge<T: Scalar>(
    case: &Case<T>,
    evaluator: &EmulatorEvaluator,
) -> Result<Judgement, TestCaseError> {
    match evaluator.judge_program(case.matrix.view(), &case.program) {
        Ok(judgement) => Ok(judgement),
        Err(EmulatorError::Range { .. }) => Err(TestCaseError::reject("values too large")),
        Err(error) => Err(TestCaseError::fail(format!("{error}\n{}", case.program))),
    }
}

fn is_right<T: Scalar>(case: &Case<T>) -> TestCaseResult {
    is_right_for(case, evaluator()?)
}

fn is_right_for<T: Scalar>(case: &Case<T>, evaluator: &EmulatorEvaluator) -> TestCaseResult {
    let Judgement { outcome, findings, .. } = judge(case, evaluator)?;
    let program = &case.program;
    if let Some(finding) = findings.first() {
        return Err(TestCaseError::fail(format!("{finding}\n{program}")));
    }
    prop_assert!(matches!(outcome, Outcome::Verified(_)), "{outcome}\n{program}");
    Ok(())
}

/// Whatever the outcome: a right result goes with no finding, a fault with one.
fn is_judged<T: Scalar>(case: &Case<T>) -> TestCaseResult {
    let Judgement { outcome, findings, .. } = judge(case, evaluator()?)?;
    match outcome {
        Outcome::Verified(_) => prop_assert!(findings.is_empty(), "{findings:?}"),
        Outcome::Faulted { reason } => prop_assert!(!findings.is_empty(), "{reason}"),
        _ => {}
    }
    Ok(())
}

/// Every field and form of the language, whatever random programs meet, under every check: also
/// that empty slots touch nothing, whatever they load.
#[test]
fn golden_programs_are_right() -> TestCaseResult {
    fn check<T: Scalar>(golden: Golden, evaluator: &EmulatorEvaluator) -> TestCaseResult {
        let matrix = golden.build::<T>().map_err(|error| TestCaseError::fail(error.to_string()))?;
        let named = |error| TestCaseError::fail(format!("{}: {error}", golden.name));
        is_right_for(&Case { matrix, program: golden.program }, evaluator).map_err(named)
    }
    let evaluator = open(1, 5).map_err(TestCaseError::fail)?;
    for golden in golden::load().map_err(|error| TestCaseError::fail(error.to_string()))? {
        let dtype = golden.program.task.precision.matrix();
        with_scalar!(dtype, T => check::<T>(golden, &evaluator)?);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn legal_programs_are_right_in_f32(case in case::<f32>(ROWS, ROWS, ENTRIES)) {
        is_right(&case)?;
    }

    #[test]
    fn legal_programs_are_right_in_f64(case in case::<f64>(ROWS, ROWS, ENTRIES)) {
        is_right(&case)?;
    }

    #[test]
    fn legal_programs_are_right_for_a_matrix_in_f32_and_products_in_f64(
        case in case_in::<f32>(Precision::F32_IN_F64, ROWS, ROWS, ENTRIES),
    ) {
        is_right(&case)?;
    }

    #[test]
    fn legal_programs_are_right_in_f16(case in case::<f16>(ROWS, ROWS, ENTRIES)) {
        is_right(&case)?;
    }

    #[test]
    fn legal_programs_are_right_in_bf16(case in case::<bf16>(ROWS, ROWS, ENTRIES)) {
        is_right(&case)?;
    }

    #[test]
    fn free_programs_are_judged(case in free_case::<f32>(ROWS, ROWS, ENTRIES)) {
        is_judged(&case)?;
    }

    #[test]
    fn mutated_tokens_are_judged(
        matrix in csr::<f64>(ROWS, ROWS, ENTRIES),
        (task, tokens) in task(Dtype::F64).prop_flat_map(|task| (Just(task), mutated_tokens(task))),
    ) {
        // Most do not parse, which is a judgement as well.
        if let Ok(program) = Program::from_tokens(task, &tokens) {
            is_judged(&Case { matrix, program })?;
        }
    }
}
