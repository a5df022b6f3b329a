//! Compiles the programs of recordings, those that were measured on most matrices first.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::plan::MachineCode;
use sparserl_core::target::Architecture;
use sparserl_core::with_scalar;

use super::{CompiledProgram, CompiledPrograms};
use crate::corpus::{RealMatrices, Recipe, RemakeError};
use crate::measured::MeasuredCase;

/// What is done is handed over to be written after so long.
const HAND_OVER_AFTER: Duration = Duration::from_secs(60);

/// Programs could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError<E, S> {
    /// A matrix cannot be made again.
    #[error(transparent)]
    Matrix(#[from] RemakeError),
    /// The compiler is broken, or there is none.
    #[error(transparent)]
    Compiler(E),
    /// What is done could not be handed over.
    #[error(transparent)]
    Save(S),
}

/// How far compiling has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compiling {
    /// Programs that were asked for.
    pub programs: usize,
    /// Programs of these that are compiled.
    pub compiled: usize,
    /// Programs of these that no kernel could be made of: of an older language, or refused by the
    /// compiler.
    pub refused: usize,
}

/// A program on the smallest matrix that it was measured on.
struct Smallest<'c> {
    program: &'c Program,
    architecture: Architecture,
    case: &'c MeasuredCase,
    /// Place of its recordings among all.
    folder: usize,
    /// Cases in which it was measured.
    cases: usize,
}

/// Compiles the `most` programs that were measured in most cases of some folders of recordings, but
/// for what `known` has of them: what of each folder is compiled lies in the same place there.
/// `compile` is called from several threads at once, and says what a source was compiled to and how
/// many bytes that has, or why it is refused. `save` is given what is known, by folder, about every
/// minute and at the end, also when `go_on` has said no.
///
/// # Errors
/// When a matrix cannot be made again, or `compile` or `save` fails.
pub fn compile<E: Send, S: Send>(
    folders: &[Vec<MeasuredCase>],
    known: Vec<CompiledPrograms>,
    most: usize,
    real: &RealMatrices,
    compile: impl Fn(&CudaSource, Architecture) -> Result<Result<(MachineCode, u64), String>, E> + Sync,
    go_on: impl Fn() -> bool + Sync,
    observe: impl Fn(Compiling) + Sync,
    save: impl Fn(&[CompiledPrograms]) -> Result<(), S> + Sync,
) -> Result<(Vec<CompiledPrograms>, Compiling), CompileError<E, S>> {
    let asked = most_frequent(folders, most);
    let programs = asked.len();
    let missing: Vec<Smallest<'_>> = asked
        .into_iter()
        .filter(|(text, one)| !known.iter().any(|known| known.has(text, one.architecture)))
        .map(|(_, one)| one)
        .collect();
    let compiling = Compiling { programs, compiled: programs - missing.len(), refused: 0 };
    observe(compiling);
    let groups = by_matrix(missing);
    let next = AtomicUsize::new(0);
    let mut known = known;
    known.resize_with(folders.len(), CompiledPrograms::default);
    let done = Mutex::new((known, compiling, Instant::now()));
    let add = |one: &Smallest<'_>, found: Option<CompiledProgram>| -> Result<(), S> {
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, compiling, saved) = &mut *done;
        match found {
            Some(found) => {
                compiling.compiled += 1;
                known.get_mut(one.folder).into_iter().for_each(|known| known.insert(found.clone()));
            }
            None => compiling.refused += 1,
        }
        observe(*compiling);
        if saved.elapsed() > HAND_OVER_AFTER {
            save(known)?;
            *saved = Instant::now();
        }
        Ok(())
    };
    let work = || -> Result<(), CompileError<E, S>> {
        while go_on()
            && let Some((recipe, group)) = groups.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let matrix = recipe.remake(real)?;
            for one in group {
                if !go_on() {
                    break;
                }
                let dtype = one.case.task.precision.matrix();
                let found = with_scalar!(dtype, T => {
                    compiled::<T, _>(one, &recipe.in_type(&matrix)?, &compile)
                });
                add(one, found.map_err(CompileError::Compiler)?).map_err(CompileError::Save)?;
            }
        }
        Ok(())
    };
    let stopping = || work().inspect_err(|_| next.store(usize::MAX / 2, Ordering::Relaxed));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(groups.len());
    let results: Vec<Result<(), CompileError<E, S>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(stopping)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    let (known, compiling, _) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !groups.is_empty() {
        save(&known).map_err(CompileError::Save)?;
    }
    results.into_iter().collect::<Result<(), _>>()?;
    Ok((known, compiling))
}

/// What a program is compiled to for a matrix; `None` where there is no kernel of it.
fn compiled<T: Scalar, E>(
    one: &Smallest<'_>,
    matrix: &Csr<T>,
    compile: impl Fn(&CudaSource, Architecture) -> Result<Result<(MachineCode, u64), String>, E>,
) -> Result<Option<CompiledProgram>, E> {
    let Ok(kernel) = Kernel::<()>::for_matrix(matrix.view(), one.program) else { return Ok(None) };
    let found = compile(&kernel.source, one.architecture)?;
    Ok(found.ok().map(|(machine_code, cubin_bytes)| CompiledProgram {
        program: one.program.to_string(),
        machine_code,
        cubin_bytes,
    }))
}

/// The programs that were measured in most cases, by their texts.
fn most_frequent(folders: &[Vec<MeasuredCase>], most: usize) -> Vec<(String, Smallest<'_>)> {
    let mut all: BTreeMap<(String, Architecture), Smallest<'_>> = BTreeMap::new();
    for (folder, cases) in folders.iter().enumerate() {
        for case in cases {
            let architecture = case.target.architecture;
            for measured in &case.programs {
                let program = &measured.program;
                let this = Smallest { program, architecture, case, folder, cases: 1 };
                match all.entry((program.to_string(), architecture)) {
                    Entry::Vacant(place) => drop(place.insert(this)),
                    Entry::Occupied(mut known) => {
                        let known = known.get_mut();
                        let cases = known.cases + 1;
                        if case.nnz < known.case.nnz {
                            *known = this;
                        }
                        known.cases = cases;
                    }
                }
            }
        }
    }
    let mut all: Vec<(String, Smallest<'_>)> =
        all.into_iter().map(|((text, _), one)| (text, one)).collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.cases));
    all.truncate(most);
    all
}

/// The same by matrices, those with most programs first: they take longest.
fn by_matrix(programs: Vec<Smallest<'_>>) -> Vec<(&Recipe, Vec<Smallest<'_>>)> {
    let mut groups: BTreeMap<String, (&Recipe, Vec<Smallest<'_>>)> = BTreeMap::new();
    for one in programs {
        let recipe = &one.case.recipe;
        groups.entry(recipe.to_string()).or_insert_with(|| (recipe, Vec::new())).1.push(one);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(_, programs)| std::cmp::Reverse(programs.len()));
    groups
}

#[cfg(test)]
mod tests;
