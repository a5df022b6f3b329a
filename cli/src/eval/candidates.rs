//! Candidates in a folder, and which matrix each is for.
//!
//! ```text
//! FOLDER/graph/…    for graph.mtx, graph.smtx.gz, …
//! FOLDER/beam/…     for beam.mtx
//! FOLDER/…          for the one matrix that was given, where it has no folder of its own
//! ```
//!
//! Every program (`.skl`) and CUDA source (`.cu`) is one candidate, however deep it lies; what
//! `gen` wrote counts once, as its program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sparserl_core::task::{Dtype, Operation, Task};
use walkdir::WalkDir;

use crate::args::{AskedTaskArgs, MatrixArgs};
use crate::kernel_file::{Kernel, KernelFile, Kind, is_generated};

/// A matrix and the candidates for it, at least one.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) matrix: MatrixArgs,
    pub(crate) candidates: Vec<Candidate>,
}

/// What may be a kernel.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Path below the folder of all candidates.
    pub(crate) file: String,
    pub(crate) kind: Kind,
    pub(crate) blake3: String,
    /// Why it cannot be one, in a line.
    pub(crate) kernel: Result<Kernel, String>,
}

/// Reads the candidates for each matrix, in the order of their names. Also gives a note where some
/// are for none.
///
/// # Errors
/// When a file or folder cannot be read, or a matrix has no candidates. What a file holds is no
/// error.
pub(crate) fn read(
    folder: &Path,
    matrices: Vec<MatrixArgs>,
) -> anyhow::Result<(Vec<Problem>, Option<String>)> {
    let mut files = find(folder)?;
    if files.is_empty() {
        bail!("{}: holds no candidates, programs (.skl) or CUDA (.cu)", folder.display());
    }
    let is_alone = matrices.len() == 1;
    let mut problems: Vec<Problem> = Vec::new();
    for matrix in matrices {
        let stem = matrix.stem();
        if let Some(other) = problems.iter().find(|problem| problem.matrix.stem() == stem) {
            bail!(
                "{} and {} share the name of their candidates' folder; give them one at a time",
                other.matrix.matrix.display(),
                matrix.matrix.display()
            );
        }
        let own = folder.join(&stem);
        let theirs: Vec<PathBuf> = if is_alone && !own.is_dir() {
            std::mem::take(&mut files)
        } else {
            files.extract_if(.., |file| file.starts_with(&own) && *file != own).collect()
        };
        if theirs.is_empty() {
            bail!(
                "{}: holds no candidates for {}; with several matrices, each has a folder of its name",
                own.display(),
                matrix.file_name()
            );
        }
        let candidates: anyhow::Result<_> =
            theirs.into_iter().map(|path| Candidate::read(folder, path)).collect();
        problems.push(Problem { matrix, candidates: candidates? });
    }
    let note = files.first().map(|first| {
        let (count, first) = (files.len(), first.display());
        format!(
            "{count} candidates are for no given matrix and left out, the first of them {first}"
        )
    });
    Ok((problems, note))
}

/// The task that candidates are judged for: what is not asked for is as programs say, where they
/// agree; for CUDA, SpMV in f32.
///
/// # Errors
/// When programs are for several tasks, and none of these is asked for.
pub(crate) fn task(problems: &[Problem], asked: &AskedTaskArgs) -> anyhow::Result<Task> {
    let candidates = problems.iter().flat_map(|problem| &problem.candidates);
    let mut tasks: Vec<Task> = Vec::new();
    for task in candidates.filter_map(|candidate| candidate.kernel.as_ref().ok()?.task()) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let usual = Task::new(Operation::SpMV, Dtype::F32);
    let (task, others) = match tasks.as_slice() {
        [only] => (asked.task_or(*only), false),
        several => (asked.task_or(usual), !several.is_empty()),
    };
    if others && !tasks.contains(&task) {
        let names: Vec<String> = tasks.iter().map(Task::to_string).collect();
        bail!(
            "the programs are for {}, and none for {task}: say by --op, --cols, --dtype and --values which are judged",
            names.join(" and ")
        );
    }
    Ok(task)
}

/// Makes programs for other tasks candidates that are none for this one.
pub(crate) fn refuse_others(problems: &mut [Problem], task: Task) {
    for candidate in problems.iter_mut().flat_map(|problem| &mut problem.candidates) {
        if let Ok(kernel) = &candidate.kernel
            && let Some(own) = kernel.task().filter(|own| *own != task)
        {
            candidate.kernel = Err(format!("the program is for {own}, not for {task}"));
        }
    }
}

/// Candidates' files in a folder and the folders in it, by name.
fn find(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let at = || folder.display().to_string();
    if !std::fs::metadata(folder).with_context(at)?.is_dir() {
        bail!("{}: is not a folder", folder.display());
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let entry = entry.with_context(at)?;
        let path = entry.path();
        if entry.file_type().is_file() && Kind::of(path).is_some() && !is_generated(path) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

impl Candidate {
    fn read(folder: &Path, path: PathBuf) -> anyhow::Result<Self> {
        let below = path.strip_prefix(folder).unwrap_or(&path).as_os_str();
        let name = OsStr::to_string_lossy(below).into_owned();
        let at = path.display().to_string();
        let file = KernelFile::read(path).with_context(|| at)?;
        let kernel = file.parse().map_err(|error| error.to_string());
        Ok(Self { file: name, kind: file.kind, blake3: file.blake3(), kernel })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const TASK: Task = Task::new(Operation::SpMV, Dtype::F32);
    const PROGRAM: &str = "sparserl 3\nspmv f32\nblock 256\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4\n";

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// Names by matrix, and the note.
    fn names(folder: &TempDir, matrices: &str) -> (Vec<Vec<String>>, Option<String>) {
        let matrices = matrices.split(' ').map(MatrixArgs::of).collect();
        let (problems, note) = read(folder.path(), matrices).unwrap();
        let names = |problem: &Problem| problem.candidates.iter().map(|c| c.file.clone()).collect();
        (problems.iter().map(names).collect(), note)
    }

    fn error(folder: &TempDir, matrices: &str) -> String {
        let matrices = matrices.split(' ').map(MatrixArgs::of).collect();
        format!("{:#}", read(folder.path(), matrices).unwrap_err())
    }

    #[test]
    fn one_matrix_has_all_of_a_flat_folder() {
        let files = [("b.cu", ""), ("a.skl", PROGRAM), ("deep/er/c.skl", ""), ("notes.txt", "")];
        let folder = folder(&files);
        let (found, note) = names(&folder, "x/graph.mtx.gz");
        assert_eq!(found, [["a.skl", "b.cu", "deep/er/c.skl"]]);
        assert_eq!(note, None);
    }

    #[test]
    fn each_matrix_has_the_folder_of_its_name() {
        let files = [("a/1.skl", ""), ("b/x/2.cu", ""), ("ab/3.skl", ""), ("4.skl", "")];
        let folder = folder(&files);
        let (found, note) = names(&folder, "m/b.mtx a.smtx.gz");
        assert_eq!(found, [["b/x/2.cu"], ["a/1.skl"]]);
        assert!(note.unwrap().starts_with("2 candidates are for no given matrix"));
        // One alone does not take what is another's.
        assert_eq!(names(&folder, "a.mtx").0, [["a/1.skl"]]);
    }

    #[test]
    fn what_gen_wrote_counts_once() {
        let of_gen = |n: u32| ["kernel.cu", "program.skl", "plan.json"].map(|f| format!("{n}/{f}"));
        let files: Vec<String> = (1..=2).flat_map(of_gen).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|name| (name.as_str(), "")).collect();
        let found = names(&folder(&files), "a.mtx").0;
        assert_eq!(found, [["1/program.skl", "2/program.skl"]]);
    }

    #[test]
    fn what_cannot_be_told_apart_or_is_missing_is_an_error() {
        let folder = folder(&[("a/1.skl", ""), ("b/readme.md", "")]);
        assert!(error(&folder, "a.mtx x/a.mtx").contains("a.mtx and x/a.mtx share"));
        assert!(error(&folder, "a.mtx b.mtx").contains("holds no candidates for b.mtx"));
        assert!(error(&folder, "b.mtx").contains("holds no candidates for b.mtx"));
        assert!(error(&self::folder(&[]), "a.mtx").contains("holds no candidates, programs"));
    }

    #[test]
    fn what_is_no_kernel_for_the_task_is_a_candidate_all_the_same() {
        let files = [
            (
                "1.skl",
                "sparserl 3\nspmm 4 f32\nblock 256\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4\n",
            ),
            ("2.skl", "rubbish"),
            ("3.cu", ""),
            ("4.skl", PROGRAM),
        ];
        let folder = folder(&files);
        let (mut problems, _) = read(folder.path(), vec![MatrixArgs::of("a.mtx")]).unwrap();
        assert_eq!(task(&problems, &AskedTaskArgs::default()).unwrap(), TASK, "one of several");
        refuse_others(&mut problems, TASK);
        let kernels: Vec<_> = problems[0].candidates.iter().map(|c| c.kernel.as_ref()).collect();
        assert_eq!(kernels[0].unwrap_err(), "the program is for spmm 4 f32, not for spmv f32");
        assert!(kernels[1].unwrap_err().starts_with("line 1: "));
        assert!(kernels[2].is_err());
        assert!(matches!(kernels[3], Ok(Kernel::Program(_))), "{:?}", kernels[3]);
    }

    #[test]
    fn programs_that_agree_say_what_is_computed() {
        let program = PROGRAM.replace("spmv f32", "spmv f64 variable");
        let files = [("1.skl", program.as_str()), ("2.cu", ""), ("3.skl", "rubbish")];
        let folder = folder(&files);
        let (problems, _) = read(folder.path(), vec![MatrixArgs::of("a.mtx")]).unwrap();
        let task = task(&problems, &AskedTaskArgs::default()).unwrap();
        assert_eq!(task.to_string(), "spmv f64 variable");
    }

    #[test]
    fn programs_that_do_not_agree_are_asked_about() {
        let [a, b] =
            ["spmv f64", "spmv f32 variable"].map(|task| PROGRAM.replace("spmv f32", task));
        let folder = folder(&[("1.skl", a.as_str()), ("2.skl", b.as_str())]);
        let (problems, _) = read(folder.path(), vec![MatrixArgs::of("a.mtx")]).unwrap();
        let said = task(&problems, &AskedTaskArgs::default()).unwrap_err().to_string();
        assert!(
            said.contains("for spmv f64 and spmv f32 variable, and none for spmv f32: "),
            "{said}"
        );
    }
}
