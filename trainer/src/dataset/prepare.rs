//! Makes a dataset of recorded cases: each matrix is made once again, looked at for all that a
//! network is given of it, and dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sparserl_core::decode::{is_offered, random_walk};
use sparserl_core::language::{Mask, Program, TextError};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::{EmbeddingConfig, MatrixStats};
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_onnx_models::programs::token_ids;
use sparserl_onnx_models::speeds::REGIMES;
use sparserl_onnx_models::terms::ProgramTerms;

use super::{Dataset, DatasetCase, DatasetMatrix, DatasetProgram, DrawnPrograms};
use crate::compiled::CompiledPrograms;
use crate::corpus::{Findings, RealMatrices, Recipe, RemakeError, remake_each};
use crate::measured::{MeasuredCase, MeasuredProgram};

/// Programs of either kind that are drawn for a case.
const DRAWN: usize = 16;
/// Attempts at each of them.
const ATTEMPTS: usize = 4;

/// A dataset could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError<E> {
    /// A matrix cannot be made again.
    #[error(transparent)]
    Matrix(#[from] RemakeError),
    /// The language lacks the reference program.
    #[error("no reference program: {0}")]
    Reference(#[from] TextError),
    /// What is done could not be handed over.
    #[error(transparent)]
    Save(E),
}

/// How far preparing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Matrices of the measured cases.
    pub matrices: usize,
    /// Matrices of the measured cases that are in the dataset already.
    pub done: usize,
}

/// The cases of one matrix.
struct Group<'c> {
    recipe: &'c Recipe,
    cases: Vec<&'c MeasuredCase>,
}

/// What is prepared of one matrix.
type Block = (DatasetMatrix, Vec<DatasetCase>);

/// The dataset of some measured cases, in their order. What `known` has of a matrix stays when all
/// its cases are as they were measured; other matrices are made, several at a time, and dropped as
/// soon as they are looked at. All programs have the resource usage that is `compiled` of them.
/// `save` is given what is done about every minute and at the end, also when `go_on` has said no.
///
/// # Errors
/// When a matrix cannot be made again, or `save` fails.
pub fn prepare<E: Send>(
    cases: &[MeasuredCase],
    known: Dataset,
    compiled: &CompiledPrograms,
    real: &RealMatrices,
    go_on: impl Fn() -> bool + Sync,
    observe: impl Fn(Prepared) + Sync,
    save: impl Fn(&Dataset) -> Result<(), E> + Sync,
) -> Result<(Dataset, Prepared), PrepareError<E>> {
    let groups = groups(cases);
    let before = known.fingerprint();
    let mut known = blocks(known.with_resources(compiled));
    let mut blocks: Vec<Option<Block>> = Vec::new();
    for group in &groups {
        let block = known.remove(&group.recipe.to_string());
        blocks.push(block.filter(|(_, cases)| group.is_as_measured(cases)));
    }
    let missing: Vec<usize> =
        blocks.iter().enumerate().filter(|(_, block)| block.is_none()).map(|(i, _)| i).collect();
    let prepared = |blocks: &[Option<Block>]| Prepared {
        matrices: groups.len(),
        done: blocks.iter().flatten().count(),
    };
    observe(prepared(&blocks));
    let recipes: Vec<&Recipe> = missing.iter().map(|&number| groups[number].recipe).collect();
    let findings = Findings::new(blocks);
    let look = |place: usize, matrix: &Csr<f64>| -> Result<(), PrepareError<E>> {
        let number = missing[place];
        let mut block = groups[number].prepare(matrix)?;
        block.1.iter_mut().for_each(|case| case.tell(compiled));
        let add = |blocks: &mut Vec<Option<Block>>| {
            blocks[number] = Some(block);
            observe(prepared(blocks));
        };
        findings.add(add, |blocks| save(&joined(blocks))).map_err(PrepareError::Save)
    };
    let made = remake_each(&recipes, real, go_on, look);
    let blocks = findings.into_inner();
    let (dataset, prepared) = (joined(&blocks), prepared(&blocks));
    // What is no longer asked for goes, too.
    if !missing.is_empty() || dataset.fingerprint() != before {
        save(&dataset).map_err(PrepareError::Save)?;
    }
    made?;
    Ok((dataset, prepared))
}

/// The cases by their matrices, in the order in which those come first.
fn groups(cases: &[MeasuredCase]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut numbers = BTreeMap::new();
    for case in cases {
        let number = *numbers.entry(case.recipe.to_string()).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { recipe: &case.recipe, cases: vec![case] }),
        }
    }
    groups
}

/// A dataset by the recipes of its matrices.
fn blocks(dataset: Dataset) -> BTreeMap<String, Block> {
    let mut cases: BTreeMap<u32, Vec<DatasetCase>> = BTreeMap::new();
    for case in dataset.cases {
        cases.entry(case.matrix).or_default().push(case);
    }
    let block = |(matrix, number): (DatasetMatrix, u32)| {
        (matrix.recipe.clone(), (matrix, cases.remove(&number).unwrap_or_default()))
    };
    dataset.matrices.into_iter().zip(0..).map(block).collect()
}

/// One dataset of what is done, in order.
fn joined(blocks: &[Option<Block>]) -> Dataset {
    let mut dataset = Dataset::empty();
    for (matrix, cases) in blocks.iter().flatten() {
        let number = dataset.matrices.len() as u32;
        dataset.matrices.push(matrix.clone());
        dataset
            .cases
            .extend(cases.iter().cloned().map(|case| DatasetCase { matrix: number, ..case }));
    }
    dataset
}

impl Group<'_> {
    /// Whether prepared cases have exactly what was measured.
    fn is_as_measured(&self, prepared: &[DatasetCase]) -> bool {
        let same_program = |(measured, prepared): (&MeasuredProgram, &DatasetProgram)| {
            token_ids(&measured.program) == prepared.tokens
                && measured.is_right() == prepared.right
                && speeds(measured) == prepared.speeds
        };
        let same = |(measured, prepared): (&&MeasuredCase, &DatasetCase)| {
            measured.task == prepared.task
                && measured.target == prepared.target
                && measured.programs.len() == prepared.programs.len()
                && measured.programs.iter().zip(&prepared.programs).all(same_program)
        };
        self.cases.len() == prepared.len() && self.cases.iter().zip(prepared).all(same)
    }

    /// Looks at the matrix.
    fn prepare<E>(&self, matrix: &Csr<f64>) -> Result<Block, PrepareError<E>> {
        let double = stats(matrix);
        let positions = EmbeddingConfig::default().max_tokens;
        let described = DatasetMatrix {
            recipe: self.recipe.to_string(),
            nnz: double.nnz() as u64,
            features: double.features(),
            grids: double.density_grids(),
            sampled: double.sampled_positions(positions),
        };
        // Each in the type that it was measured in: values that differ in one may be equal in
        // another.
        let mut cases: Vec<Option<DatasetCase>> = vec![None; self.cases.len()];
        for dtype in Dtype::ALL {
            let of_type = |case: &MeasuredCase| case.task.precision.matrix() == dtype;
            if !self.cases.iter().any(|case| of_type(case)) {
                continue;
            }
            let mut prepare_all = |stats: &Arc<MatrixStats<'_>>| -> Result<(), TextError> {
                for (place, case) in cases.iter_mut().zip(&self.cases) {
                    if of_type(case) {
                        *place = Some(prepare_case(case, stats)?);
                    }
                }
                Ok(())
            };
            match dtype {
                Dtype::F64 => prepare_all(&double)?,
                _ => with_scalar!(dtype, T => {
                    prepare_all(&stats(&self.recipe.in_type::<T>(matrix)?))?;
                }),
            }
        }
        Ok((described, cases.into_iter().flatten().collect()))
    }
}

fn stats<T: Scalar>(matrix: &Csr<T>) -> Arc<MatrixStats<'_>> {
    Arc::new(MatrixStats::new(matrix.view()))
}

fn prepare_case(
    case: &MeasuredCase,
    stats: &Arc<MatrixStats<'_>>,
) -> Result<DatasetCase, TextError> {
    let terms = ProgramTerms::new(Arc::clone(stats), case.task, case.target)?;
    let mut random = SplitMix64::new(stats.nnz() as u64);
    let program = |measured: &MeasuredProgram| DatasetProgram {
        tokens: token_ids(&measured.program),
        right: measured.is_right(),
        speeds: speeds(measured),
        terms: terms.of(&measured.program),
        resources: None,
    };
    Ok(DatasetCase {
        matrix: 0,
        task: case.task,
        target: case.target,
        programs: case.programs.iter().map(program).collect(),
        drawn: draw(stats, case.task, &mut random),
    })
}

/// Draws programs, those that are not legal from the whole language.
fn draw(stats: &MatrixStats<'_>, task: Task, random: &mut SplitMix64) -> DrawnPrograms {
    let (legal, free) = (Mask::legal(stats, task), Mask::free(task));
    let drawn = |mask, random: &mut SplitMix64, wanted: &dyn Fn(&Program) -> bool| {
        let mut found = BTreeSet::new();
        for _ in 0..ATTEMPTS * DRAWN {
            if found.len() < DRAWN
                && let Some(program) = random_walk(mask, random)
                && wanted(&program)
            {
                found.insert(token_ids(&program));
            }
        }
        found.into_iter().collect()
    };
    DrawnPrograms {
        legal: drawn(legal, random, &|_| true),
        illegal: drawn(free, random, &|program| !is_offered(legal, program)),
    }
}

fn speeds(measured: &MeasuredProgram) -> [Option<f32>; REGIMES.len()] {
    REGIMES.map(|regime| measured.speed(regime).map(|speed| speed.relative as f32))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sparserl_core::decode::PolicyInput;
    use sparserl_core::matrix::f16;
    use sparserl_core::structure::IndexScaling;
    use sparserl_gpu::store::recording::Recordings;
    use sparserl_onnx_models::inputs::Inputs;

    use super::super::DatasetError;
    use crate::compiled::tests::of_registers;
    use sparserl_core::language::Token;

    use super::*;

    /// Cases of three small matrices, each with so many tasks, from a folder of recordings.
    fn measured_in(folder: &str, tasks: usize) -> Vec<MeasuredCase> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(folder);
        let mut recordings = Recordings::read(folder).unwrap();
        recordings.retain(|recording| recording.matrix.nnz < 4000);
        let mut cases = MeasuredCase::all(&recordings).unwrap();
        cases.sort_by_key(|case| case.recipe.to_string());
        assert!(cases.len() >= 3 * tasks, "{}", cases.len());
        cases.truncate(3 * tasks);
        cases
    }

    fn measured() -> Vec<MeasuredCase> {
        measured_in("h200-2026-11-22", 3)
    }

    fn prepare_all(cases: &[MeasuredCase], known: Dataset) -> (Dataset, usize) {
        prepare_compiled(cases, known, &CompiledPrograms::default())
    }

    fn prepare_compiled(
        cases: &[MeasuredCase],
        known: Dataset,
        compiled: &CompiledPrograms,
    ) -> (Dataset, usize) {
        let saved = AtomicUsize::new(0);
        let save = |_: &Dataset| {
            saved.fetch_add(1, Ordering::Relaxed);
            Ok::<(), Infallible>(())
        };
        let real = RealMatrices::none();
        let (dataset, prepared) =
            prepare(cases, known, compiled, &real, || true, |_| {}, save).unwrap();
        assert_eq!(prepared.done, prepared.matrices);
        (dataset, saved.into_inner())
    }

    #[test]
    fn a_dataset_has_what_a_policy_is_given() {
        let cases = measured();
        let (dataset, _) = prepare_all(&cases, Dataset::empty());
        assert_eq!((dataset.matrices.len(), dataset.cases.len()), (3, 9));
        let mut other = dataset.clone();
        assert_eq!(other.fingerprint(), dataset.fingerprint());
        other.matrices[0].nnz += 1;
        assert_ne!(other.fingerprint(), dataset.fingerprint());
        has_what_a_policy_is_given::<f32>(&dataset, &cases);
    }

    #[test]
    fn cases_in_half_precision_are_of_the_rounded_values() {
        let cases = measured_in("h100-2026-11-26-half", 4);
        let (dataset, _) = prepare_all(&cases, Dataset::empty());
        assert_eq!((dataset.matrices.len(), dataset.cases.len()), (3, 12));
        has_what_a_policy_is_given::<f16>(&dataset, &cases);
    }

    fn has_what_a_policy_is_given<T: Scalar>(dataset: &Dataset, cases: &[MeasuredCase]) {
        for (case, measured) in dataset.cases.iter().zip(cases) {
            assert_eq!(case.task.precision.matrix(), T::DTYPE);
            let recipe = dataset.matrix(case).unwrap().recipe().unwrap();
            assert_eq!(recipe, measured.recipe);
            let matrix = recipe.build(&RealMatrices::none()).unwrap().cast::<T>().unwrap();
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            let terms = ProgramTerms::new(Arc::clone(&stats), case.task, case.target).unwrap();
            let input = PolicyInput::new(stats, case.task, case.target);
            for scaling in [IndexScaling::Scaled, IndexScaling::Raw, IndexScaling::MaxMin] {
                let config = EmbeddingConfig { scaling, ..EmbeddingConfig::default() };
                let inputs = dataset.inputs(case, scaling).unwrap();
                assert_eq!(inputs, Inputs::new(&input, &config));
            }
            let mask = Mask::legal(&input.stats, case.task);
            let parse = |ids: &Vec<u8>| {
                let tokens: Vec<Token> =
                    ids.iter().map(|&id| Token::from_id(id.into()).unwrap()).collect();
                Program::from_tokens(case.task, &tokens).unwrap()
            };
            assert!(case.drawn.legal.len() == DRAWN && !case.drawn.illegal.is_empty());
            assert!(case.drawn.legal.iter().all(|ids| is_offered(mask, &parse(ids))));
            assert!(!case.drawn.illegal.iter().any(|ids| is_offered(mask, &parse(ids))));
            for (program, measured) in case.programs.iter().zip(&measured.programs) {
                assert_eq!(program.terms, terms.of(&measured.program));
                assert_eq!(program.tokens.len(), measured.program.tokens().len());
                assert!(program.right && program.speeds.iter().all(Option::is_some));
            }
            assert!(case.best(0).unwrap() >= 0.0);
        }
    }

    #[test]
    fn a_dataset_is_told_what_programs_were_compiled_to() {
        let cases = measured();
        let (dataset, _) = prepare_all(&cases, Dataset::empty());
        assert!(
            dataset.cases.iter().flat_map(|case| &case.programs).all(|p| p.resources.is_none())
        );
        let chosen = &cases[4].programs[1].program;
        let compiled = of_registers(&chosen.to_string(), 40);
        let expected = compiled.resources(chosen.block.threads());
        let mut all = CompiledPrograms::default();
        all.insert(compiled);
        let told = dataset.clone().with_resources(&all);
        let mut times = 0;
        for (case, measured) in told.cases.iter().zip(&cases) {
            for (program, measured) in case.programs.iter().zip(&measured.programs) {
                let is_chosen = measured.program == *chosen;
                times += u32::from(is_chosen);
                assert_eq!(program.resources, is_chosen.then_some(expected));
            }
        }
        assert!(times > 0);
        assert_ne!(told.fingerprint(), dataset.fingerprint());
        assert_eq!(told.clone().with_resources(&CompiledPrograms::default()), dataset);
        // So it is prepared at once, and written once.
        assert_eq!(prepare_compiled(&cases, Dataset::empty(), &all), (told.clone(), 1));
        // What was compiled since is added, and what is no longer known of a program goes.
        assert_eq!(prepare_compiled(&cases, dataset.clone(), &all), (told.clone(), 1));
        assert_eq!(prepare_compiled(&cases, told.clone(), &all), (told.clone(), 0));
        assert_eq!(prepare_all(&cases, told), (dataset, 1));
    }

    #[test]
    fn only_what_is_missing_is_prepared_and_an_interrupted_run_goes_on() {
        let cases = measured();
        let (whole, saved) = prepare_all(&cases, Dataset::empty());
        assert_eq!(saved, 1);
        assert_eq!(prepare_all(&cases, whole.clone()), (whole.clone(), 0));
        // Of fewer cases, and with a program less, the rest is added.
        let (part, _) = prepare_all(&cases[..6], Dataset::empty());
        assert_eq!(prepare_all(&cases, part.clone()), (whole.clone(), 1));
        let mut older = part;
        older.cases[1].programs.pop();
        assert_eq!(prepare_all(&cases, older), (whole.clone(), 1));
        // What is no longer asked for goes, and the order is that of the cases.
        let (part, _) = prepare_all(&cases[3..], Dataset::empty());
        assert_eq!(prepare_all(&cases[3..], whole.clone()), (part, 1));
        // Interrupted after two matrices, the second run has the same in the end.
        let asked = AtomicUsize::new(0);
        let none = CompiledPrograms::default();
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 2;
        let save = |_: &Dataset| Ok::<(), Infallible>(());
        let real = RealMatrices::none();
        let (part, prepared) =
            prepare(&cases, Dataset::empty(), &none, &real, go_on, |_| {}, save).unwrap();
        assert_eq!((prepared.done, part.matrices.len()), (2, 2));
        assert_eq!(prepare_all(&cases, part).0, whole);
    }

    #[test]
    fn files_are_read_back_and_damage_is_noticed() {
        let (dataset, _) = prepare_all(&measured()[..3], Dataset::empty());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.dataset");
        dataset.write(&path).unwrap();
        assert_eq!(Dataset::read(&path).unwrap(), dataset);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let bytes = std::fs::read(&path).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let error = Dataset::read(&path).unwrap_err();
            assert_eq!(error.to_string().lines().count(), 1);
            error
        };
        assert!(matches!(read(&bytes[..bytes.len() / 2]), DatasetError::Damaged { .. }));
        assert!(matches!(read(&bytes[..10]), DatasetError::Foreign { .. }));
        assert!(matches!(
            read(b"PK\x03\x04 something else entirely"),
            DatasetError::Foreign { .. }
        ));
        for at in [bytes.len() / 3, bytes.len() - 6] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 16;
            assert!(matches!(read(&flipped), DatasetError::Damaged { .. }), "byte {at}");
        }
        let mut older = dataset;
        older.signature.grammar_hash ^= 1;
        older.write(&path).unwrap();
        let error = Dataset::read(&path).unwrap_err();
        assert!(matches!(error, DatasetError::Signature { .. }), "{error}");
        assert!(error.to_string().contains("was made for grammar"), "{error}");
    }
}
