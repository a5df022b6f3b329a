//! Measures programs on the matrices of a corpus, for training and for fitting.
//!
//! ```text
//! Corpus ─► recipe ─► matrix ─► Proposer ─► programs ─► Evaluator ─► Recorder
//!   shard                           └──── winners, mutations ◄───┘
//! ```
//!
//! A shard is the matrix of one recipe with every task. The [`reference()`] program is measured
//! before every [`BETWEEN_REFERENCES`] others, so that what drifts can be taken out of their times.
//! A recording names its matrix by the recipe.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sparserl_core::decode::{PolicyError, PolicyInput};
use sparserl_core::language::{Program, TextError};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::outcome::{Evaluator, Outcome, Regime};
use sparserl_core::random::SplitMix64;
use sparserl_core::results::ValueSource;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_gpu::store::fingerprint::MatrixIdentity;
use sparserl_gpu::store::recording::{Context, Recorder, RecordingError};

use crate::configuration::Collection;
use crate::corpus::{BuildError, RealMatrices, Recipe, Values};
use crate::proposals::{Pool, Proposer, Winners, reference};
use crate::shards::{Claim, ShardError, Shards};

/// Programs between two measurements of the reference.
pub const BETWEEN_REFERENCES: usize = 19;
/// The fastest so many programs of a matrix and task are its winners.
const WINNERS: usize = 3;
/// Recordings are written, and their shards done, after so long: a lost process loses no more.
const FLUSH_AFTER: Duration = Duration::from_secs(60);

/// Collecting stopped.
#[derive(Debug, thiserror::Error)]
pub enum CollectError<E> {
    /// What measures is broken.
    #[error(transparent)]
    Evaluator(E),
    /// Shards cannot be shared.
    #[error(transparent)]
    Shards(#[from] ShardError),
    /// Recordings cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A real matrix cannot be read.
    #[error("recipe {index}: {source}")]
    Real {
        /// Number of the recipe.
        index: u64,
        /// The reason.
        source: BuildError,
    },
    /// The cost model failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The language lacks the reference program.
    #[error("no reference program: {0}")]
    Reference(#[from] TextError),
}

/// What one run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Matrices.
    pub matrices: u64,
    /// Programs that were judged, the reference among them.
    pub programs: u64,
    /// Of these, those that were right.
    pub right: u64,
}

/// Where a run stands, for whoever shows it.
pub struct Progress<'a> {
    /// The shard that is begun.
    pub shard: u64,
    /// Its matrix.
    pub recipe: &'a Recipe,
    /// So far.
    pub collected: Collected,
}

/// Collects on one evaluator what others have not collected yet.
#[derive(Debug)]
pub struct Collector<'a, E> {
    collection: &'a Collection,
    real: &'a RealMatrices,
    evaluator: E,
    target: Target,
    recorder: Recorder,
    context: Context,
    pools: BTreeMap<Task, Arc<Pool>>,
    winners: Winners,
}

impl<'a, E: Evaluator> Collector<'a, E> {
    /// A collector; `context` and `target` are of the evaluator.
    #[must_use]
    pub fn new(
        collection: &'a Collection,
        real: &'a RealMatrices,
        evaluator: E,
        target: Target,
        (recorder, context): (Recorder, Context),
    ) -> Self {
        let seed = collection.corpus.seed;
        let pool = |&task| (task, Arc::new(Pool::draw(task, collection.pool, seed)));
        let pools = collection.tasks.iter().map(pool).collect();
        let winners = Winners::default();
        Self { collection, real, evaluator, target, recorder, context, pools, winners }
    }

    /// Takes shards until there are none or `go_on` says no; what is begun is finished.
    ///
    /// # Errors
    /// When something other than a program fails. Finished matrices are recorded.
    pub fn run(
        &mut self,
        shards: &mut Shards,
        go_on: impl Fn() -> bool,
        mut observe: impl FnMut(&Progress<'_>),
    ) -> Result<Collected, CollectError<E::Error>> {
        let mut collected = Collected::default();
        let mut unwritten: Vec<Claim> = Vec::new();
        let mut flushed = Instant::now();
        while go_on()
            && let Some(claim) = shards.claim()?
        {
            let recipe = self.collection.corpus.recipe(claim.number(), self.real);
            observe(&Progress { shard: claim.number(), recipe: &recipe, collected });
            self.collect(claim.number(), &recipe, &mut collected)?;
            unwritten.push(claim);
            for claim in &unwritten {
                claim.renew()?;
            }
            if flushed.elapsed() > FLUSH_AFTER {
                self.write(&mut unwritten)?;
                flushed = Instant::now();
            }
        }
        self.write(&mut unwritten)?;
        Ok(collected)
    }

    /// Shards are done once their recordings are on the disk.
    fn write(&mut self, unwritten: &mut Vec<Claim>) -> Result<(), CollectError<E::Error>> {
        self.recorder.flush()?;
        for claim in unwritten.drain(..) {
            claim.finish()?;
        }
        Ok(())
    }

    fn collect(
        &mut self,
        index: u64,
        recipe: &Recipe,
        collected: &mut Collected,
    ) -> Result<(), CollectError<E::Error>> {
        let matrix = match recipe.build(self.real) {
            Ok(matrix) => matrix,
            Err(source @ (BuildError::Real(_) | BuildError::OtherMatrix { .. })) => {
                return Err(CollectError::Real { index, source });
            }
            // What the steps came to is no use: the corpus has other matrices.
            Err(_) => return Ok(()),
        };
        self.context.value_source = match recipe.values {
            Values::Random { .. } => ValueSource::Random,
            Values::Few { .. } | Values::Equal | Values::AsBuilt => ValueSource::File,
        };
        let identity = MatrixIdentity::of(matrix.view(), recipe.to_string());
        let seed = SplitMix64::after(self.collection.corpus.seed, index).bits();
        // Values beyond single precision: nobody computes with them in it.
        if self.has_tasks_in(Dtype::F32)
            && let Ok(matrix) = matrix.cast::<f32>()
        {
            self.measure_all(&matrix, &identity, seed, collected)?;
        }
        if self.has_tasks_in(Dtype::F64) {
            self.measure_all(&matrix, &identity, seed, collected)?;
        }
        collected.matrices += 1;
        Ok(())
    }

    fn has_tasks_in(&self, dtype: Dtype) -> bool {
        self.collection.tasks.iter().any(|task| task.precision.matrix() == dtype)
    }

    /// Measures every task whose matrix is of this type; what is asked of the matrix is asked once.
    fn measure_all<T: Scalar>(
        &mut self,
        matrix: &Csr<T>,
        identity: &MatrixIdentity,
        seed: u64,
        collected: &mut Collected,
    ) -> Result<(), CollectError<E::Error>> {
        let mut input: Option<PolicyInput<'_>> = None;
        for &task in &self.collection.tasks {
            if task.precision.matrix() == T::DTYPE {
                let input = input.get_or_insert_with(|| {
                    let stats = Arc::new(MatrixStats::new(matrix.view()));
                    PolicyInput::new(stats, task, self.target)
                });
                input.task = task;
                self.measure(matrix, identity, input, seed, collected)?;
            }
        }
        Ok(())
    }

    fn measure<T: Scalar>(
        &mut self,
        matrix: &Csr<T>,
        identity: &MatrixIdentity,
        input: &PolicyInput<'_>,
        seed: u64,
        collected: &mut Collected,
    ) -> Result<(), CollectError<E::Error>> {
        let Some(pool) = self.pools.get(&input.task).cloned() else { return Ok(()) };
        let reference = reference(input.task)?;
        let mut proposer = Proposer::new(input, seed);
        let mut best: Vec<(f64, Program)> = Vec::new();
        let first = proposer.first(self.collection.programs, &pool, &self.winners)?;
        self.judge(matrix, identity, &reference, &first, &mut best, collected)?;
        for _ in 0..self.collection.rounds_of_mutations {
            let parents: Vec<Program> = best.iter().map(|(_, program)| program.clone()).collect();
            let mutants = proposer.mutations(self.collection.mutations, &parents);
            self.judge(matrix, identity, &reference, &mutants, &mut best, collected)?;
        }
        for (_, program) in &best {
            self.winners.add(program);
        }
        Ok(())
    }

    /// Judges and records programs; keeps the fastest in `best`.
    fn judge<T: Scalar>(
        &mut self,
        matrix: &Csr<T>,
        identity: &MatrixIdentity,
        reference: &Program,
        programs: &[Program],
        best: &mut Vec<(f64, Program)>,
        collected: &mut Collected,
    ) -> Result<(), CollectError<E::Error>> {
        let with_reference =
            |chunk: &[Program]| std::iter::once(reference.clone()).chain(chunk.to_vec());
        let programs: Vec<Program> =
            programs.chunks(BETWEEN_REFERENCES).flat_map(with_reference).collect();
        if programs.is_empty() {
            return Ok(());
        }
        let evaluation = self.evaluator.evaluate(matrix.view(), &programs);
        let evaluation = evaluation.map_err(CollectError::Evaluator)?;
        self.recorder.record(matrix.view(), identity, &programs, &evaluation, &self.context)?;
        for (program, outcome) in programs.iter().zip(&evaluation.outcomes) {
            collected.programs += 1;
            collected.right += u64::from(outcome.is_right());
            if let Some(seconds) = seconds(outcome)
                && best.iter().all(|(_, known)| known != program)
            {
                best.push((seconds, program.clone()));
            }
        }
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.truncate(WINNERS);
        Ok(())
    }
}

/// The time that decides: with a warm cache in a chain, or else with a cold one.
fn seconds(outcome: &Outcome) -> Option<f64> {
    let timing = &outcome.measurement()?.timing;
    timing.median(Regime::Warm).or_else(|| timing.median(Regime::Cold))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;

    use sparserl_core::kernel::Candidate;
    use sparserl_core::matrix::CsrView;
    use sparserl_core::outcome::{Abilities, Evaluation, Measurement, Samples, Timing};
    use sparserl_gpu::compile::nvrtc::Version;
    use sparserl_gpu::run::device::DeviceFacts;
    use sparserl_gpu::store::recording::Recordings;

    use super::*;

    /// Finds every program right; the longer its text, the slower. Where it is mortal, it fails in
    /// its fifth judgement.
    struct Fake {
        mortal: bool,
        judgements: u32,
    }

    impl Evaluator for Fake {
        type Code = Infallible;
        type Cuda = Infallible;
        type Error = String;

        fn abilities(&self) -> Abilities {
            Abilities { times: true, findings: false, cuda: false, protocol: "fake".into() }
        }

        fn judge_all<T: Scalar>(
            &mut self,
            _: CsrView<'_, T>,
            candidates: &[Candidate<'_, Infallible, Infallible>],
        ) -> Result<Evaluation, String> {
            self.judgements += 1;
            if self.mortal && self.judgements == 5 {
                return Err("lost".to_owned());
            }
            let outcome = |candidate: &Candidate<'_, Infallible, Infallible>| {
                let length = candidate.program().map_or(0, |program| program.to_string().len());
                let samples = Samples::try_from(vec![1e-6 * length as f64]).unwrap();
                let timing = Timing { warm: Some(samples), ..Timing::default() };
                Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
            };
            let outcomes = candidates.iter().map(outcome).collect();
            Ok(Evaluation { outcomes, baselines: vec![], copy_bandwidth: None })
        }
    }

    fn collection() -> Collection {
        toml::from_str(
            "matrices = 6\ntasks = [\"spmv f32\", \"spmm 8 f64\"]\nprograms = 20\npool = 30\n\
             mutations = 4\nrounds_of_mutations = 1\n\
             [corpus]\nseed = 3\nshare_of_real = 0.0\nlargest_nnz = 3000\n",
        )
        .unwrap()
    }

    fn context() -> Context {
        Context {
            device: DeviceFacts {
                name: "Fake".to_owned(),
                driver: (13, 0),
                memory_bytes: 1 << 30,
                target: Target::H200,
            },
            nvrtc: Version { major: 13, minor: 0 },
            protocol: "fake".to_owned(),
            value_source: ValueSource::Random,
        }
    }

    fn run(folder: &Path, mortal: bool) -> Result<Collected, String> {
        let (collection, real) = (collection(), RealMatrices::none());
        let lease = Duration::from_secs(600);
        let mut shards = Shards::open(&folder.join("shards"), collection.matrices, lease).unwrap();
        let recorder = Recorder::append_to(folder.join("recordings")).unwrap();
        let fake = Fake { mortal, judgements: 0 };
        let outputs = (recorder, context());
        let mut collector = Collector::new(&collection, &real, fake, Target::H200, outputs);
        collector.run(&mut shards, || true, |_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn a_lost_run_is_taken_up_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), true), Err("lost".to_owned()));
        let again = run(folder.path(), false).unwrap();
        assert!(again.matrices > 0 && again.programs == again.right);
        assert_eq!(run(folder.path(), false), Ok(Collected::default()));
        let recordings = Recordings::read(folder.path().join("recordings")).unwrap();
        let mut names: Vec<&str> =
            recordings.into_iter().map(|recording| recording.matrix.name.as_str()).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 6);
        for name in names {
            let recipe: Recipe = name.parse().unwrap();
            assert!(recipe.build(&RealMatrices::none()).unwrap().nnz() > 0);
        }
    }

    #[test]
    fn two_processes_share_a_corpus_and_the_reference_is_measured_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let both: Vec<Collected> = std::thread::scope(|scope| {
            let run = || run(folder.path(), false).unwrap();
            let threads = [scope.spawn(run), scope.spawn(run)];
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(both.iter().map(|collected| collected.matrices).sum::<u64>(), 6);
        let recordings = Recordings::read(folder.path().join("recordings")).unwrap();
        // Two tasks, and for each what was drawn and what came of changing that.
        assert_eq!(recordings.as_slice().len(), 6 * 2 * 2);
        for recording in &recordings {
            let reference = reference(recording.task).unwrap().to_string();
            let places = recording.programs.iter().step_by(BETWEEN_REFERENCES + 1);
            assert!(places.into_iter().all(|program| *program == reference));
            assert!(recording.programs.len() > 1);
        }
    }
}
