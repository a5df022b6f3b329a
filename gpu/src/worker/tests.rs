//! What a worker makes of a process that is lost while an opponent runs, or a kernel is timed. The
//! process is this test program, which follows a script in the place of a device.

use std::path::PathBuf;

use sparserl_core::matrix::generate;
use sparserl_core::outcome::{Baseline, Verification};
use sparserl_core::target::{Architecture, Target};
use sparserl_core::task::Operation;

use super::*;
use crate::candidate::executable::LaunchTemplate;
use crate::compare::Source;
use crate::compile::nvrtc::{CubinParts, Resources, Version};
use crate::isolate::Connection;
use crate::run::device::Geometry;

const SERVER: &str = "worker::tests::scripted_server";

/// What a process does with the opponent once it is asked to judge, unless it is to leave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Dies while it loads it.
    DiesLoading,
    /// Dies while it times it.
    DiesTiming,
    /// Finds the device lost while it times it.
    LosesDevice,
    /// Dies while it times a kernel, after the opponent.
    DiesAfter,
    /// Runs it and dies, whether it is to leave it out or not.
    Insists,
    /// Leaves it alone, and dies while it times the second of three kernels.
    DiesInKernel,
    /// Leaves it alone, and times the second of three kernels without end.
    HangsInKernel,
    /// Leaves it alone, and has memory for one kernel.
    HoldsOne,
    /// Leaves it alone, and has memory for none.
    HoldsNone,
    /// Leaves it alone, and has memory for a task only before it has judged anything.
    HoldsOneTask,
    /// Leaves it alone, and has memory for no task.
    HoldsNoTask,
    /// Cannot verify anything of SpMM.
    CannotVerify,
}

const SCRIPTS: [Script; 12] = [
    Script::DiesLoading,
    Script::DiesTiming,
    Script::LosesDevice,
    Script::DiesAfter,
    Script::Insists,
    Script::DiesInKernel,
    Script::HangsInKernel,
    Script::HoldsOne,
    Script::HoldsNone,
    Script::HoldsOneTask,
    Script::HoldsNoTask,
    Script::CannotVerify,
];

#[test]
#[ignore = "is what the other tests start"]
fn scripted_server() {
    let words: Vec<String> = std::env::args().collect();
    let script = SCRIPTS.into_iter().find(|script| words.contains(&format!("{script:?}")));
    // Absent when somebody runs all that is ignored.
    if let Some(script) = script {
        follow(script, &mut Connection::inherited().unwrap());
    }
}

fn opponent() -> Opponent {
    Opponent {
        source: Source::Library(PathBuf::from("libfaulty.so")),
        library: "Faulty 1.0".to_owned(),
        algorithm: "Faulty".to_owned(),
        is_default: false,
    }
}

fn follow(script: Script, client: &mut Connection<Request, Answer>) {
    let driver = (13, 0);
    let (name, target) = ("scripted".to_owned(), Target::H200);
    let facts = DeviceFacts { name, driver, memory_bytes: 1 << 37, target };
    client.send(&Answer::Ready(Box::new(facts)), &[]).unwrap();
    let mut judged = 0;
    while let Some((request, _)) = client.receive().unwrap() {
        let Request::Judge { kernels, excluded, .. } = request else {
            let answer = match (request, script) {
                (Request::Task(_), Script::HoldsOneTask) if judged > 0 => no_memory(),
                (Request::Task(_), Script::HoldsNoTask) => no_memory(),
                (Request::Task(task), Script::CannotVerify) if task.operation.columns() > 1 => {
                    Answer::Unverifiable { reason: "row 3 may be too large".to_owned() }
                }
                _ => Answer::Done,
            };
            client.send(&answer, &[]).unwrap();
            continue;
        };
        let mut say = |answer| client.send(&answer, &[]).unwrap();
        let runs = match script {
            Script::Insists => true,
            Script::DiesAfter => !kernels.is_empty(),
            Script::DiesInKernel
            | Script::HangsInKernel
            | Script::HoldsOne
            | Script::HoldsNone
            | Script::HoldsOneTask
            | Script::HoldsNoTask
            | Script::CannotVerify => false,
            _ => excluded.is_empty(),
        };
        if runs && script == Script::DiesLoading {
            say(Answer::Running(Running::Opponent(Box::new(opponent()))));
            std::process::abort();
        }
        say(Answer::Running(Running::Judge));
        let held = match script {
            Script::HoldsOne => 1,
            Script::HoldsNone => 0,
            _ => usize::MAX,
        };
        // It keeps the arrays of those that it has judged.
        judged += kernels.len();
        if judged > held {
            say(no_memory());
            continue;
        }
        say(Answer::Done);
        for _ in &kernels {
            say(Answer::Judged { ended: None });
        }
        if kernels.len() == 3 {
            say(Answer::Running(Running::Kernel(0)));
            say(Answer::Running(Running::Kernel(1)));
            match script {
                Script::DiesInKernel => std::process::abort(),
                Script::HangsInKernel => std::thread::sleep(Duration::from_secs(60)),
                _ => {}
            }
        }
        if runs {
            say(Answer::Running(Running::Opponent(Box::new(opponent()))));
            match script {
                Script::LosesDevice => {
                    let outcome = Outcome::Faulted { reason: "illegal address".to_owned() };
                    say(Answer::Judged { ended: Some(outcome) });
                    return;
                }
                Script::DiesAfter => say(Answer::Running(Running::Judge)),
                _ => {}
            }
            std::process::abort();
        }
        let right = Outcome::Verified(Verification { checks: 1, worst_ratio: 0.5 });
        let left_out = excluded.into_iter().map(|Excluded { opponent, reason }| Baseline {
            library: opponent.library,
            algorithm: opponent.algorithm,
            is_default: opponent.is_default,
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: Err(reason),
        });
        let outcomes = vec![right; kernels.len()];
        let evaluation =
            Box::new(Evaluation { outcomes, baselines: left_out.collect(), copy_bandwidth: None });
        say(Answer::Evaluated { evaluation, clocks: None });
    }
}

fn no_memory() -> Answer {
    Answer::failed(&DeviceError::OutOfMemory { bytes: 1 << 40 })
}

fn cubin() -> Cubin {
    Cubin::new(CubinParts {
        bytes: vec![0; 8],
        kernel: "k".to_owned(),
        architecture: Architecture::Sm90,
        version: Version { major: 13, minor: 0 },
        arguments: Vec::new(),
        resources: Resources::default(),
        log: String::new(),
    })
}

fn worker(script: Script) -> Worker {
    let script = format!("{script:?}");
    let arguments = ["--exact", SERVER, "--ignored", "--nocapture", script.as_str()];
    let command = ServerCommand::this_program(arguments).unwrap();
    Worker::start(command, 0, |_| Ok::<_, WorkerError>(cubin())).unwrap()
}

fn judge(worker: &mut Worker, kernels: usize) -> Result<Evaluation, WorkerError> {
    judge_for(worker, Operation::SpMV, kernels)
}

fn judge_for(
    worker: &mut Worker,
    operation: Operation,
    kernels: usize,
) -> Result<Evaluation, WorkerError> {
    let launch = LaunchTemplate {
        geometry: Geometry::linear(1, 32),
        parameters: Vec::new(),
        waits_itself: false,
        compulsory_bytes: 0,
    };
    let executable = Executable { cubin: cubin(), launch, arrays: Vec::new() };
    let matrix = generate::stencil5(4, 4);
    let executables = vec![executable; kernels];
    let task = Task::new(operation, Dtype::F64);
    let protocol = Protocol { deadline: Duration::from_secs(1), ..Protocol::full() };
    worker.judge(matrix.view(), task, &executables, &protocol)
}

#[test]
fn an_opponent_that_takes_the_process_down_is_named_and_left_out() {
    for (script, how) in [
        (Script::DiesLoading, "signal: 6"),
        (Script::DiesTiming, "signal: 6"),
        (Script::LosesDevice, "illegal address"),
    ] {
        let mut worker = worker(script);
        // The second time it is known.
        for kernels in [3, 1] {
            let evaluation = judge(&mut worker, kernels).unwrap();
            assert_eq!(evaluation.outcomes.len(), kernels);
            assert!(
                evaluation.outcomes.iter().all(Outcome::is_right),
                "{script:?}: {evaluation:?}"
            );
            let [baseline] = evaluation.baselines.as_slice() else { panic!("{evaluation:?}") };
            let names = (baseline.library.as_str(), baseline.algorithm.as_str());
            assert_eq!(names, ("Faulty 1.0", "Faulty"));
            let reason = baseline.timing.as_ref().unwrap_err();
            assert!(reason.starts_with("left out: faults: ") && reason.contains(how), "{reason}");
            assert_eq!(reason.lines().count(), 1);
        }
    }
}

#[test]
fn what_dies_after_an_opponent_is_not_the_opponents_fault() {
    let evaluation = judge(&mut worker(Script::DiesAfter), 2).unwrap();
    let faulted = |outcome: &Outcome| matches!(outcome, Outcome::Faulted { .. });
    assert!(evaluation.outcomes.iter().all(faulted), "{evaluation:?}");
}

#[test]
fn a_kernel_that_takes_the_process_down_while_it_is_timed_is_named_at_once() {
    for (script, how) in
        [(Script::DiesInKernel, "signal: 6"), (Script::HangsInKernel, "did not end within")]
    {
        let start = Instant::now();
        let evaluation = judge(&mut worker(script), 3).unwrap();
        let [first, second, third] = evaluation.outcomes.as_slice() else {
            panic!("{evaluation:?}")
        };
        assert!(first.is_right() && third.is_right(), "{script:?}: {evaluation:?}");
        assert!(second.to_string().contains(how), "{script:?}: {second}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn kernels_that_do_not_fit_together_are_judged_in_parts_and_those_that_do_not_alone_are_told() {
    let evaluation = judge(&mut worker(Script::HoldsOne), 5).unwrap();
    assert_eq!(evaluation.outcomes.len(), 5);
    assert!(evaluation.outcomes.iter().all(Outcome::is_right), "{evaluation:?}");
    let evaluation = judge(&mut worker(Script::HoldsNone), 3).unwrap();
    assert_eq!(evaluation.outcomes.len(), 3);
    for outcome in evaluation.outcomes {
        let text = outcome.to_string();
        assert!(text.contains("no 1099511627776 bytes of memory left"), "{text}");
    }
}

#[test]
fn a_task_that_does_not_fit_beside_what_was_judged_before_has_a_new_process() {
    let spmm = Operation::SpMM { columns: 128.try_into().unwrap() };
    let mut roomy = worker(Script::HoldsOneTask);
    for operation in [Operation::SpMV, spmm, Operation::SpMV] {
        let evaluation = judge_for(&mut roomy, operation, 2).unwrap();
        assert!(evaluation.outcomes.iter().all(Outcome::is_right), "{evaluation:?}");
    }
    let error = judge(&mut worker(Script::HoldsNoTask), 2).unwrap_err();
    assert!(matches!(error, WorkerError::Unverifiable { .. }), "{error:?}");
    assert!(error.to_string().contains("no 1099511627776 bytes of memory left"), "{error}");
}

#[test]
fn a_process_that_cannot_verify_anything_of_a_task_goes_on_with_others() {
    let mut worker = worker(Script::CannotVerify);
    let spmm = Operation::SpMM { columns: 8.try_into().unwrap() };
    for operation in [Operation::SpMV, spmm, Operation::SpMV] {
        match judge_for(&mut worker, operation, 2) {
            Ok(evaluation) => assert!(evaluation.outcomes.iter().all(Outcome::is_right)),
            Err(error) => {
                assert_eq!(operation, spmm);
                assert!(matches!(error, WorkerError::Unverifiable { .. }), "{error:?}");
                assert_eq!(error.to_string(), "row 3 may be too large");
            }
        }
        assert!(worker.child.is_some());
    }
}

#[test]
fn an_opponent_that_cannot_be_left_out_is_an_error_that_names_it() {
    let error = judge(&mut worker(Script::Insists), 2).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Faulty 1.0 Faulty ran although") && text.lines().count() == 1, "{text}");
}
