//! What is fitted: the terms of programs beside their times.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sparserl_core::layout::{CostConstants, CostModel, PartCost};
use sparserl_core::outcome::Regime;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_gpu::store::recording::{RecordingError, Recordings};

use super::solver::Residual;
use crate::corpus::{BuildError, RealMatrices, Recipe};
use crate::measured::{MeasuredCase, MeasuredError};

/// A program of half the speed of the fastest weighs 2 to the minus this: which of the slow ones is
/// slower decides no choice.
const PREFERENCE: f64 = 3.0;

/// The programs of one matrix, task and GPU that were right and timed in one regime.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseTerms {
    /// How the matrix is made.
    pub recipe: Recipe,
    /// What was computed.
    pub task: Task,
    /// On which GPU.
    pub target: Target,
    /// How it was timed.
    pub regime: Regime,
    /// Bytes of the dense operands, which every program moves.
    pub dense_bytes: u64,
    /// The programs: at least two.
    pub programs: Vec<ProgramTerms>,
}

/// A program as the cost model sees it, and how slow it was.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramTerms {
    /// Its parts.
    pub parts: Arc<[PartCost]>,
    /// ln(t ÷ t_reference): what drifts over hours is not in it.
    pub slowness: f64,
}

/// Recordings that nothing can be fitted to.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The recordings cannot be read.
    #[error(transparent)]
    Recordings(#[from] RecordingError),
    /// They are of another language, or of no corpus.
    #[error(transparent)]
    Measured(#[from] MeasuredError),
    /// A matrix cannot be made again.
    #[error("a recorded matrix cannot be made again: {0}; name the real ones with --real")]
    Matrix(#[from] BuildError),
    /// There is too little in them.
    #[error(
        "`{}` has no recordings of two timed programs each for matrices of two families; collect \
         more",
        path.display()
    )]
    TooFew {
        /// The folder.
        path: PathBuf,
    },
}

/// What a folder of recordings has to fit to.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The cases, of at least two families.
    pub cases: Vec<CaseTerms>,
    /// How many matrices they are of.
    pub matrices: usize,
    /// Programs that were measured, each once for a matrix, task and GPU.
    pub programs: usize,
}

impl Terms {
    /// Reads a folder of recordings, makes each matrix again and looks at it once, in the current
    /// rayon pool. `made` is told how many matrices are done, and of how many.
    ///
    /// # Errors
    /// When the recordings cannot be read, a matrix not be made, or too little is in them.
    pub fn read(
        folder: &Path,
        real: &RealMatrices,
        regimes: &[Regime],
        made: impl Fn(usize, usize) + Sync,
    ) -> Result<Self, FitError> {
        let measured = MeasuredCase::all(&Recordings::read(folder)?)?;
        let mut numbers = HashMap::new();
        let mut by_matrix: Vec<(&Recipe, Vec<&MeasuredCase>)> = Vec::new();
        for case in &measured {
            let number = *numbers.entry(&case.recipe).or_insert(by_matrix.len());
            match by_matrix.get_mut(number) {
                Some((_, cases)) => cases.push(case),
                None => by_matrix.push((&case.recipe, vec![case])),
            }
        }
        let (matrices, done) = (by_matrix.len(), AtomicUsize::new(0));
        made(0, matrices);
        let cases = by_matrix.par_iter().map(|(recipe, cases)| {
            let matrix = recipe.build(real)?;
            // No term depends on the values, so they are left in the type that they come in.
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            let cases = cases.iter().flat_map(|case| CaseTerms::of(case, &stats, regimes));
            let cases: Vec<CaseTerms> = cases.collect();
            made(done.fetch_add(1, Ordering::Relaxed) + 1, matrices);
            Ok(cases)
        });
        let cases: Vec<CaseTerms> =
            cases.collect::<Result<Vec<_>, BuildError>>()?.into_iter().flatten().collect();
        let families: BTreeSet<&str> = cases.iter().map(CaseTerms::family).collect();
        if families.len() < 2 {
            return Err(FitError::TooFew { path: folder.to_owned() });
        }
        let programs = measured.iter().map(|case| case.programs.len()).sum();
        Ok(Self { cases, matrices, programs })
    }
}

impl CaseTerms {
    fn of(measured: &MeasuredCase, stats: &Arc<MatrixStats<'_>>, regimes: &[Regime]) -> Vec<Self> {
        let (task, target) = (measured.task, measured.target);
        let model = CostModel::new(Arc::clone(stats), task, target);
        let dense_bytes = model.dense_bytes();
        let right = measured.programs.iter().filter(|measured| measured.is_right());
        let terms: Vec<_> =
            right.map(|one| (one, Arc::<[PartCost]>::from(model.parts(&one.program)))).collect();
        let of_regime = |&regime| {
            let timed = terms.iter().filter_map(|(measured, parts)| {
                let speed = measured.speed(regime)?;
                let slowness = -speed.relative * std::f64::consts::LN_2;
                Some(ProgramTerms { parts: Arc::clone(parts), slowness })
            });
            let programs: Vec<ProgramTerms> = timed.collect();
            let recipe = measured.recipe.clone();
            let case = Self { recipe, task, target, regime, dense_bytes, programs };
            (case.programs.len() > 1).then_some(case)
        };
        regimes.iter().filter_map(of_regime).collect()
    }

    /// The family that is left out together with it.
    #[must_use]
    pub fn family(&self) -> &str {
        self.recipe.family()
    }

    /// Is anything of this family in the matrix?
    #[must_use]
    pub fn is_from(&self, family: &str) -> bool {
        self.recipe.origins().into_iter().any(|(origin, _)| origin == family)
    }

    /// ln of the predicted seconds of each program. The launch itself is in the start-ups, from
    /// which no time can tell it.
    #[must_use]
    pub fn predict(&self, constants: &CostConstants) -> Vec<f64> {
        let dense = constants.transfer(self.dense_bytes, &self.target);
        let seconds =
            |program: &ProgramTerms| constants.time(&program.parts, &self.target).seconds() + dense;
        self.programs.iter().map(|program| seconds(program).ln()).collect()
    }

    /// How far each program is predicted off, but for a factor of the case's own; all weights
    /// together are 1.
    pub(super) fn residuals(&self, constants: &CostConstants) -> Vec<Residual> {
        let slowness = self.programs.iter().map(|program| program.slowness);
        let fastest = slowness.clone().fold(f64::INFINITY, f64::min);
        let weight = |slowness: f64| (PREFERENCE * (fastest - slowness)).exp();
        let total: f64 = slowness.clone().map(weight).sum();
        let off = self.predict(constants).into_iter().zip(slowness).map(|(ln, slowness)| {
            Residual { value: ln - slowness, weight: weight(slowness) / total }
        });
        let off: Vec<Residual> = off.collect();
        let mean: f64 = off.iter().map(|residual| residual.weight * residual.value).sum();
        off.into_iter().map(|off| Residual { value: off.value - mean, ..off }).collect()
    }
}
