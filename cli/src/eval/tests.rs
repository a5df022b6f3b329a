use std::fs;

use clap::Parser;
use serde_json::Value;
use sparserl_core::results::{Counts, Mean, ValueSource};
use sparserl_gpu::store::recording::Recordings;
use tempfile::TempDir;

use super::summary::Summary;
use super::table::MOST_FAULTS;
use super::*;
use crate::args::{Cli, Command};
use crate::verify::fake::{FakeJudge, cuda, right};

const PROGRAM: &str = "sparserl 3\nspmv f32\nblock 256\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4\n";

/// Matrices `a` and `b`; `a` has ten candidates, three of them right, and `b` four, none right.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for (i, name) in ["a", "b"].into_iter().enumerate() {
        let head = "%%MatrixMarket matrix coordinate real general";
        write(&format!("{name}.mtx"), &format!("{head}\n2 2 1\n1 {} 1\n", i + 1));
        fs::create_dir_all(folder.path().join("c").join(name)).unwrap();
    }
    let said = ["200", "compile", "launch", "fault", "wrong", "hang", "90", "wrong"];
    for (i, said) in said.into_iter().enumerate() {
        write(&format!("c/a/{i}.cu"), &cuda(said));
    }
    write("c/a/8.skl", "rubbish");
    write("c/a/9.skl", PROGRAM);
    for i in 0..4 {
        write(&format!("c/b/{i}.cu"), &cuda("wrong"));
    }
    folder
}

fn eval_with(
    folder: &TempDir,
    arguments: &str,
    open: impl FnOnce() -> anyhow::Result<FakeJudge>,
) -> anyhow::Result<(EvalResults, Summary)> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut words = vec!["x".into(), "eval".into(), "--candidates".into(), at("c")];
    words.extend(["--matrix".into(), at("a.mtx"), at("b.mtx")]);
    words.extend(arguments.split_whitespace().map(|word| match word {
        "OUT" => at("out.json"),
        "KEPT" => at("kept"),
        word => word.to_owned(),
    }));
    match Cli::try_parse_from(words).unwrap().command {
        Command::Eval(args) => {
            let Evaluated { results, .. } =
                evaluate(&args, |task| measuring(&args, task, open()?))?;
            let summary = Summary::new(&results, &args.sizes());
            Ok((results, summary))
        }
        _ => unreachable!("asked for eval"),
    }
}

fn fake() -> anyhow::Result<FakeJudge> {
    Ok(FakeJudge::new())
}

fn never() -> anyhow::Result<FakeJudge> {
    panic!("nothing is left to judge")
}

#[test]
fn every_end_is_counted() {
    let (_, summary) = eval_with(&folder(), "", fake).unwrap();
    let a = &summary.matrices[0];
    let expected = Counts {
        candidates: 10,
        right: 3,
        compile_failed: 2,
        launch_failed: 1,
        faulted: 1,
        wrong: 2,
        timed_out: 1,
    };
    assert_eq!((a.matrix.as_str(), a.counts), ("a.mtx", expected));
    assert_eq!((a.compiled, a.right), (0.8, 0.3));
    assert_eq!(summary.all.counts.candidates, 14);
    // The mean of the matrices, not of the candidates.
    assert_eq!(summary.all.right.value, Some(0.15));
}

#[test]
fn pass_at_k_is_left_out_where_candidates_are_too_few() {
    let (results, summary) = eval_with(&folder(), "-k 5,1,5", fake).unwrap();
    let of = |i: usize| -> Vec<_> {
        summary.matrices[i].pass_at.iter().map(|pass| (pass.k, pass.value)).collect()
    };
    let [(1, Some(one)), (5, Some(five))] = of(0)[..] else { panic!("{:?}", of(0)) };
    assert!((one - 0.3).abs() < 1e-12 && (five - 11.0 / 12.0).abs() < 1e-12);
    assert_eq!(of(1), [(1, Some(0.0)), (5, None)]);
    let means: Vec<_> = summary.all.pass_at.iter().map(|pass| pass.value.matrices).collect();
    assert_eq!(means, [2, 1]);
    let text = table::text(&results, &[1, 5]);
    assert!(
        text.contains("pass@5 not reported where") && text.contains("91.7 % (1 of 2)"),
        "{text}"
    );
}

#[test]
fn the_best_of_a_matrix_is_compared_and_its_losses_are_named() {
    let (results, summary) = eval_with(&folder(), "", fake).unwrap();
    let best = summary.matrices[0].best.as_ref().unwrap();
    assert_eq!(best.file, "a/6.cu");
    let default = summary.all.speedups.cold.default.as_ref().unwrap();
    assert_eq!((default.matrices, default.geomean, default.least), (1, 100.0 / 90.0, 100.0 / 90.0));
    // One in ten is faster than DEFAULT; none of b is right.
    assert_eq!(summary.matrices[0].fast_1.cold, Some(0.1));
    assert_eq!(summary.all.fast_1.warm.value, Some(0.05));
    assert_eq!(summary.all.losses, ["a.mtx"]);
    assert_eq!(summary.all.failures, ["b.mtx"]);
    let text = table::text(&results, &[1]);
    assert!(
        text.contains("loss: a.mtx: 0.89× best cold, 0.89× best warm, 0.89× best back to back\n"),
        "{text}"
    );
    assert!(text.contains("no right candidate: b.mtx\n"), "{text}");
    let faults: Vec<&str> = text.lines().filter(|line| line.starts_with("not right: ")).collect();
    assert!(faults[0].starts_with("not right: a/4.cu and 5 more: "), "{text}");
    assert_eq!(faults.len(), MOST_FAULTS + 1, "{text}");
    assert_eq!(faults[MOST_FAULTS], "not right: 1 more for other reasons; --json has all");
}

#[test]
fn without_baselines_no_ratio_is_claimed() {
    let judge = || Ok(FakeJudge { baselines: false, ..FakeJudge::new() });
    let (results, summary) = eval_with(&folder(), "--no-baselines", judge).unwrap();
    assert_eq!(summary.matrices[0].fast_1.cold, None);
    assert_eq!(summary.all.fast_1.cold, Mean { value: None, interval: None, matrices: 0 });
    assert_eq!(summary.all.speedups.warm.best, None);
    assert!(summary.all.losses.is_empty());
    assert!(!table::text(&results, &[1]).contains('×'));
}

#[test]
fn what_does_not_parse_keeps_its_reason_and_its_place() {
    let (results, _) = eval_with(&folder(), "", fake).unwrap();
    let rubbish = &results.matrices[0].candidates[8];
    assert_eq!((rubbish.candidate.file.as_str(), rubbish.candidate.round), ("a/8.skl", None));
    assert!(rubbish.outcome.to_string().starts_with("does not compile: line 1: "));
    let files: Vec<_> =
        results.matrices[0].candidates.iter().map(|c| c.candidate.file.as_str()).collect();
    assert!(files.is_sorted() && files.len() == 10);
}

#[test]
fn programs_are_recorded_with_what_became_of_them() {
    let folder = folder();
    let (results, _) = eval_with(&folder, "--record KEPT", fake).unwrap();
    let recordings = Recordings::read(folder.path().join("kept")).unwrap();
    let [recording] = recordings.as_slice() else { panic!("{recordings:?}") };
    assert_eq!(recording.matrix.name, "a.mtx");
    assert_eq!(recording.programs.len(), 1);
    assert!(recording.programs[0].contains("keep csr index=u16"), "{:?}", recording.programs);
    let a = &results.matrices[0];
    assert_eq!(recording.evaluation.outcomes[0], a.candidates[9].outcome);
    assert_eq!(recording.evaluation.baselines, a.rounds[0].baselines);
    assert_eq!(recording.context, FakeJudge::new().context(ValueSource::File).unwrap());
}

#[test]
fn results_are_read_back_and_continued() {
    let folder = folder();
    let (first, _) = eval_with(&folder, "-o OUT", fake).unwrap();
    let error = eval_with(&folder, "-o OUT", never).unwrap_err().to_string();
    assert!(error.contains("--resume"), "{error}");
    // All is there: nothing is opened.
    let (again, _) = eval_with(&folder, "-o OUT --resume -k 3", never).unwrap();
    assert_eq!(again, first);
    let text = fs::read_to_string(folder.path().join("out.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["format"], "sparserl eval 2");
    assert_eq!(json["summary"]["all"]["pass_at"][0]["k"], 3);
    assert_eq!(json["matrices"][1]["candidates"][0]["kind"], "cuda");

    // Only the matrix with another candidate is judged again.
    fs::write(folder.path().join("c/b/3.cu"), cuda("50")).unwrap();
    let judge = FakeJudge::new();
    let judged = judge.judged.clone();
    let (changed, summary) = eval_with(&folder, "-o OUT --resume", || Ok(judge)).unwrap();
    assert_eq!(judged.get(), 4);
    assert_eq!(changed.matrices[0], first.matrices[0]);
    assert_eq!((summary.matrices.len(), summary.matrices[1].counts.right), (2, 1));
}

#[test]
fn results_of_something_else_are_not_continued() {
    let folder = folder();
    eval_with(&folder, "-o OUT", fake).unwrap();
    let error = |arguments: &str| eval_with(&folder, arguments, never).unwrap_err().to_string();
    assert!(error("-o OUT --resume --dtype f64").contains("another task"));
    assert!(error("-o OUT --resume --deadline 3").contains("another protocol"));
    fs::write(folder.path().join("out.json"), "{}").unwrap();
    assert!(error("-o OUT --resume").contains("is not a results file of eval"));
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let folder = folder();
    fs::write(folder.path().join("c/b/0.cu"), cuda("broken")).unwrap();
    let error = eval_with(&folder, "-o OUT", fake).unwrap_err().to_string();
    assert_eq!(error, "the GPU is gone");
    fs::write(folder.path().join("c/b/0.cu"), cuda("wrong")).unwrap();
    let judge = FakeJudge::new();
    let judged = judge.judged.clone();
    let (results, _) = eval_with(&folder, "-o OUT --resume", || Ok(judge)).unwrap();
    assert_eq!((judged.get(), results.matrices.len()), (4, 2));
}

#[test]
fn many_kernels_are_judged_in_batches_with_rounds_of_their_own() {
    let folder = folder();
    for i in 10..80 {
        fs::write(folder.path().join(format!("c/b/{i}.cu")), cuda("120")).unwrap();
    }
    // In the second batch and in the last.
    for (name, threads) in [("40a.skl", 64), ("99.skl", 512)] {
        let program = PROGRAM.replace("256", &threads.to_string());
        fs::write(folder.path().join("c/b").join(name), program).unwrap();
    }
    let (results, _) = eval_with(&folder, "--record KEPT", fake).unwrap();
    let b = &results.matrices[1];
    assert_eq!((b.candidates.len(), b.rounds.len()), (76, 3));
    let rounds: Vec<_> = b.candidates.iter().filter_map(|c| c.candidate.round).collect();
    assert!(rounds.is_sorted() && rounds.len() == 76);

    let recordings = Recordings::read(folder.path().join("kept")).unwrap();
    let recorded = recordings.as_slice().iter().filter(|one| one.matrix.name == "b.mtx");
    let recorded = recorded.flat_map(|one| one.programs.iter().zip(&one.evaluation.outcomes));
    let recorded: Vec<_> = recorded.collect();
    assert_eq!(recorded.len(), 2);
    for ((program, outcome), threads) in recorded.into_iter().zip([64.0, 512.0]) {
        assert!(program.contains(&format!("block {threads}")), "{program}");
        assert_eq!(*outcome, right(threads));
    }
}

#[test]
fn programs_and_cuda_are_timed_in_turn() {
    let (results, _) = eval_with(&folder(), "", fake).unwrap();
    let a = &results.matrices[0];
    assert_eq!((a.candidates.len(), a.rounds.len()), (10, 1));
    let tried: Vec<_> = a.candidates.iter().map(|tried| tried.candidate.round).collect();
    assert_eq!(tried.iter().flatten().count(), 9, "all but what is no program: {tried:?}");
}
