//! Of compiling what was measured, with a compiler that counts.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::tests::of_registers;
use super::*;
use crate::stages::tests::measured;

/// Says that a kernel takes as many registers as its source has lines; refuses those of blocks of
/// 256 threads.
fn fake(
    source: &CudaSource,
    architecture: Architecture,
) -> Result<Result<Code, String>, Infallible> {
    if source.text.contains("BLOCK = 256;") {
        return Ok(Err("no room".to_owned()));
    }
    let lines = source.text.lines().count() as u32;
    let machine_code = MachineCode { architecture, ..of_registers("", lines).machine_code };
    Ok(Ok(Code { machine_code, cubin_bytes: source.text.len() as u64 }))
}

fn with_known(
    folders: &[Vec<MeasuredCase>],
    mut known: Vec<CompiledPrograms>,
) -> Vec<RecordedCases> {
    known.resize_with(folders.len(), CompiledPrograms::default);
    let folder = |(cases, compiled): (&Vec<MeasuredCase>, CompiledPrograms)| RecordedCases {
        cases: cases.clone(),
        compiled,
    };
    folders.iter().zip(known).map(folder).collect()
}

/// What is compiled, how far it came, and how many sources were.
fn run(
    folders: &[Vec<MeasuredCase>],
    known: Vec<CompiledPrograms>,
    most: usize,
    go_on: impl Fn() -> bool + Sync,
) -> (Vec<CompiledPrograms>, Compiling, usize) {
    let (asked, saved) = (AtomicUsize::new(0), Mutex::new(known.clone()));
    let all = with_known(folders, known);
    let counted = |source: &CudaSource, architecture| {
        asked.fetch_add(1, Ordering::Relaxed);
        fake(source, architecture)
    };
    let save = |known: &[CompiledPrograms]| {
        *saved.lock().unwrap() = known.to_vec();
        Ok::<(), Infallible>(())
    };
    let real = RealMatrices::none();
    let (known, compiling) = compile(all, most, &real, counted, go_on, |_| {}, save).unwrap();
    // All of it was handed over, interrupted or not.
    assert_eq!(saved.into_inner().unwrap(), known);
    (known, compiling, asked.into_inner())
}

/// Two folders of recordings with several cases each.
fn folders() -> Vec<Vec<MeasuredCase>> {
    let mut cases = measured();
    cases.truncate(12);
    let rest = cases.split_off(6);
    vec![cases, rest]
}

#[test]
fn programs_of_most_cases_are_compiled_first_each_once_beside_its_smallest_matrix() {
    let folders = folders();
    let most = 40;
    let (known, compiling, asked) = run(&folders, vec![], most, || true);
    assert_eq!((compiling.programs, asked), (most, most));
    assert_eq!(compiling.compiled + compiling.refused, most);
    assert_eq!(known.iter().map(CompiledPrograms::len).sum::<usize>(), compiling.compiled);
    assert!(compiling.refused > 0, "none is refused");
    assert!(known.iter().all(|known| !known.is_empty()), "{known:?}");
    let all: Vec<(usize, &MeasuredCase, String)> = folders
        .iter()
        .enumerate()
        .flat_map(|(folder, cases)| cases.iter().map(move |case| (folder, case)))
        .flat_map(|(folder, case)| {
            case.programs.iter().map(move |known| (folder, case, known.program.to_string()))
        })
        .collect();
    let cases_of = |text: &str| all.iter().filter(|(_, _, known)| known == text).count();
    let compiled: BTreeSet<&str> =
        known.iter().flat_map(|known| known.iter().map(|one| one.program.as_str())).collect();
    let least = compiled.iter().map(|text| cases_of(text)).min().unwrap();
    let more = all.iter().filter(|(_, _, text)| cases_of(text) > least);
    let more: BTreeSet<&String> = more.map(|(_, _, text)| text).collect();
    let missing = more.iter().filter(|text| !compiled.contains(text.as_str())).count();
    assert!(missing <= compiling.refused && more.len() > 1, "{missing} of {}", more.len());
    for (folder, known) in known.iter().enumerate() {
        for one in known.iter() {
            let with_it = all.iter().filter(|(_, _, text)| *text == one.program);
            let smallest = with_it.clone().map(|(_, case, _)| case.nnz).min().unwrap();
            let mut smallest = with_it.filter(|(_, case, _)| case.nnz == smallest);
            assert!(smallest.any(|(at, _, _)| *at == folder), "{}", one.program);
        }
    }
}

#[test]
fn what_is_known_is_not_compiled_again_and_an_interrupted_run_goes_on() {
    let folders = folders();
    let (whole, _, _) = run(&folders, vec![], 60, || true);
    let asked = AtomicUsize::new(0);
    let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 25;
    let (part, interrupted, _) = run(&folders, vec![], 60, go_on);
    assert!(interrupted.compiled + interrupted.refused < 60);
    assert!(!part.iter().all(CompiledPrograms::is_empty));
    let (rest, compiling, asked) = run(&folders, part, 60, || true);
    assert_eq!(rest, whole);
    assert_eq!(asked, 60 - interrupted.compiled);
    // Of what was refused nothing is kept: another compiler may have time for it.
    let (_, again, asked) = run(&folders, whole, 60, || true);
    assert_eq!((again, asked), (compiling, compiling.refused));
}

#[test]
fn a_broken_compiler_and_a_full_disk_are_reported() {
    let folders = folders();
    let real = RealMatrices::none();
    let broken = |_: &CudaSource, _: Architecture| Err::<Result<Code, String>, _>("broken");
    let save = |_: &[CompiledPrograms]| Ok::<(), Infallible>(());
    let all = with_known(&folders, vec![]);
    let failed = compile(all.clone(), 200, &real, broken, || true, |_| {}, save);
    assert!(matches!(failed, Err(CompileError::Compiler("broken"))));
    let full = |_: &[CompiledPrograms]| Err("full");
    let failed = compile(all, 20, &real, fake, || true, |_| {}, full);
    assert!(matches!(failed, Err(CompileError::Save("full"))));
}

#[test]
fn a_case_that_two_folders_have_counts_once() {
    let folders = folders();
    let twice = vec![folders[0].clone(), folders[0].clone()];
    let once = vec![folders[0].clone()];
    let counts = |folders: &[Vec<MeasuredCase>]| -> Vec<(String, usize)> {
        let all = most_frequent(folders, 30);
        all.into_iter().map(|(text, one)| (text, one.cases.len())).collect()
    };
    assert_eq!(counts(&twice), counts(&once));
}

#[test]
fn programs_of_as_many_cases_are_taken_from_all_tasks() {
    let mut folders = folders();
    // Each program once.
    let mut seen = BTreeSet::new();
    for case in folders.iter_mut().flatten() {
        case.programs.retain(|known| seen.insert(known.program.to_string()));
    }
    let tasks = |programs: &mut dyn Iterator<Item = String>| -> BTreeSet<String> {
        programs.map(|text| text.lines().nth(1).unwrap().to_owned()).collect()
    };
    let asked = most_frequent(&folders, 60);
    assert_eq!(asked.len(), 60);
    let all = tasks(&mut seen.into_iter());
    assert!(all.len() > 1);
    assert_eq!(tasks(&mut asked.into_iter().map(|(text, _)| text)), all);
}
