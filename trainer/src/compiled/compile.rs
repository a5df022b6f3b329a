//! Compiles the programs of recordings that were measured most often.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::{Program, grammar_hash};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::outcome::Tier;
use sparserl_core::plan::MachineCode;
use sparserl_core::target::{Architecture, Target};
use sparserl_core::task::Dtype;
use sparserl_core::with_scalar;

use super::{CompiledProgram, CompiledPrograms};
use crate::corpus::{Findings, RealMatrices, Recipe, RemakeError, remake_each};
use crate::measured::MeasuredCase;

/// Programs that one thread compiles for a matrix; others take the next ones of it.
const AT_ONCE: usize = 32;

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

/// What a source was compiled to.
#[derive(Clone, Debug)]
pub struct Code {
    /// What the compiler reports of it.
    pub machine_code: MachineCode,
    /// Bytes of the cubin.
    pub cubin_bytes: u64,
}

/// How far compiling has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compiling {
    /// Programs that were asked for.
    pub programs: usize,
    /// Programs of these that are compiled.
    pub compiled: usize,
    /// Programs of these that no kernel could be made of today: they do not fit the matrix, or the
    /// compiler refuses them, or has not time or memory for them. Nothing is kept of them.
    pub refused: usize,
}

/// What a folder of recordings has.
#[derive(Clone, Debug)]
pub struct RecordedCases {
    /// What was measured.
    pub cases: Vec<MeasuredCase>,
    /// What is compiled of it.
    pub compiled: CompiledPrograms,
}

/// A program on the smallest matrix that it was measured on.
struct Smallest<'c> {
    program: &'c Program,
    architecture: Architecture,
    case: &'c MeasuredCase,
    /// Place of its recordings among all.
    folder: usize,
    /// Recipes and GPUs of the cases in which it was measured, in whatever folders.
    cases: BTreeSet<(String, Target)>,
}

/// Programs for one matrix in one type.
struct Group<'c> {
    recipe: &'c Recipe,
    dtype: Dtype,
    programs: Vec<Smallest<'c>>,
}

/// Compiles the `most` programs that were measured in most cases of some folders of recordings,
/// each for the smallest matrix that it was measured on, and returns what is compiled of each
/// folder. A case that several folders have counts once. Programs that any folder has are not
/// compiled again, and a new one is added to the folder of its smallest matrix. `compile`, which
/// several threads call at once, says why a source is refused, if it is. `save` is given what is
/// compiled of each folder when a minute has gone since, and at the end, also when `go_on` has said
/// no, as far as there is anything new.
///
/// # Errors
/// When a matrix cannot be made again, or `compile` or `save` fails.
pub fn compile<E: Send, S: Send>(
    folders: Vec<RecordedCases>,
    most: usize,
    real: &RealMatrices,
    compile: impl Fn(&CudaSource, Architecture) -> Result<Result<Code, String>, E> + Sync,
    go_on: impl Fn() -> bool + Sync,
    observe: impl Fn(Compiling) + Sync,
    save: impl Fn(&[CompiledPrograms]) -> Result<(), S> + Sync,
) -> Result<(Vec<CompiledPrograms>, Compiling), CompileError<E, S>> {
    let with_known = folders.into_iter().map(|folder| (folder.cases, folder.compiled));
    let (folders, known): (Vec<Vec<MeasuredCase>>, Vec<CompiledPrograms>) = with_known.unzip();
    let asked = most_frequent(&folders, most);
    let programs = asked.len();
    let is_missing = |(text, one): &(String, Smallest<'_>)| {
        !known.iter().any(|known| known.has(text, one.architecture))
    };
    let missing: Vec<_> = asked.into_iter().filter(is_missing).map(|(_, one)| one).collect();
    let before = Compiling { programs, compiled: programs - missing.len(), refused: 0 };
    observe(before);
    let groups = groups(missing);
    let findings = Findings::new((known, before));
    let save_news = |(known, compiling): &(Vec<CompiledPrograms>, Compiling)| -> Result<(), S> {
        if compiling.compiled > before.compiled { save(known) } else { Ok(()) }
    };
    let add = |folder: usize, found: Option<CompiledProgram>| -> Result<(), S> {
        let add = |(known, compiling): &mut (Vec<CompiledPrograms>, Compiling)| {
            match (found, known.get_mut(folder)) {
                (Some(found), Some(known)) => {
                    compiling.compiled += 1;
                    known.insert(found);
                }
                _ => compiling.refused += 1,
            }
            observe(*compiling);
        };
        findings.add(add, save_news)
    };
    let recipes: Vec<&Recipe> = groups.iter().map(|group| group.recipe).collect();
    let look = |place: usize, matrix: &Csr<f64>| -> Result<(), CompileError<E, S>> {
        let Group { recipe, dtype, programs } = &groups[place];
        with_scalar!(*dtype, T => {
            let matrix = recipe.in_type::<T>(matrix)?;
            for one in programs.iter().take_while(|_| go_on()) {
                let found = compiled(one, &matrix, &compile).map_err(CompileError::Compiler)?;
                add(one.folder, found).map_err(CompileError::Save)?;
            }
        });
        Ok(())
    };
    let made = remake_each(&recipes, real, &go_on, look);
    let found = findings.into_inner();
    save_news(&found).map_err(CompileError::Save)?;
    made?;
    Ok(found)
}

/// What a program is compiled to for a matrix; `None` where there is no kernel of it.
fn compiled<T: Scalar, E>(
    one: &Smallest<'_>,
    matrix: &Csr<T>,
    compile: impl Fn(&CudaSource, Architecture) -> Result<Result<Code, String>, E>,
) -> Result<Option<CompiledProgram>, E> {
    let Ok(kernel) = Kernel::<()>::for_matrix(matrix.view(), one.program) else { return Ok(None) };
    let found = compile(&kernel.source, one.architecture)?;
    Ok(found.ok().map(|Code { machine_code, cubin_bytes }| CompiledProgram {
        program: one.program.to_string(),
        grammar_hash: grammar_hash(),
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
            let measured_on = (case.recipe.to_string(), case.target);
            let compiled = case.programs.iter().filter(|known| known.tier > Tier::NotCompiled);
            for program in compiled.map(|known| &known.program) {
                let new =
                    || Smallest { program, architecture, case, folder, cases: BTreeSet::new() };
                let known = all.entry((program.to_string(), architecture)).or_insert_with(new);
                if case.nnz < known.case.nnz {
                    *known = Smallest { cases: std::mem::take(&mut known.cases), ..new() };
                }
                known.cases.insert(measured_on.clone());
            }
        }
    }
    let mut all: Vec<(String, Smallest<'_>)> =
        all.into_iter().map(|((text, _), one)| (text, one)).collect();
    // Of programs of as many cases no task, block or layout comes first.
    let any_order = |text: &str| *blake3::hash(text.as_bytes()).as_bytes();
    all.sort_by_cached_key(|(text, one)| (Reverse(one.cases.len()), any_order(text)));
    all.truncate(most);
    all
}

/// The same by matrices and types.
fn groups(programs: Vec<Smallest<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // The last group of each matrix and type.
    let mut last: BTreeMap<(String, Dtype), usize> = BTreeMap::new();
    for one in programs {
        let (recipe, dtype) = (&one.case.recipe, one.case.task.precision.matrix());
        let key = (recipe.to_string(), dtype);
        let has_room = |&place: &usize| groups[place].programs.len() < AT_ONCE;
        let place = last.get(&key).copied().filter(has_room).unwrap_or_else(|| {
            groups.push(Group { recipe, dtype, programs: Vec::new() });
            last.insert(key, groups.len() - 1);
            groups.len() - 1
        });
        groups[place].programs.push(one);
    }
    groups
}

#[cfg(test)]
mod tests;
