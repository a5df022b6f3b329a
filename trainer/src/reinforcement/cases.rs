//! The matrices of a dataset and their statistics, made again when they are first asked for, and
//! then kept.

use std::sync::{Arc, OnceLock};

use sparserl_core::matrix::{bf16, f16};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::Dtype;
use sparserl_gpu::store::fingerprint::identity;

use crate::collect::Subject;
use crate::corpus::{RealMatrices, Recipe, RecipeError, RemakeError};
use crate::dataset::{Dataset, DatasetCase};

/// The matrices of a dataset, made again when they are first asked for, and then kept: what a mask
/// asks and what kernels are packed from. Those of the corpus, of up to four million entries, take
/// about 0.3 s of two cores and 10 MB each, statistics included (2026-11-22).
#[derive(Debug)]
pub struct Matrices<'d> {
    dataset: &'d Dataset,
    real: &'d RealMatrices,
    /// Of each matrix, in the types of [`Dtype::ALL`].
    subjects: Vec<[OnceLock<TypedSubject>; Dtype::ALL.len()]>,
}

/// The cases of a dataset, with the statistics of their matrices.
#[derive(Debug)]
pub struct Cases<'m> {
    matrices: &'m Matrices<'m>,
    /// Of each matrix, in the types of [`Dtype::ALL`].
    stats: Vec<[OnceLock<Arc<MatrixStats<'m>>>; Dtype::ALL.len()]>,
}

/// A matrix in the type of its task.
#[derive(Debug)]
pub(super) enum TypedSubject {
    F32(Subject<f32>),
    F64(Subject<f64>),
    F16(Subject<f16>),
    BF16(Subject<bf16>),
}

/// Evaluates an expression in which a word stands for the subject of a [`TypedSubject`], whatever
/// its type.
macro_rules! with_subject {
    ($typed:expr, $subject:ident => $value:expr) => {
        match $typed {
            TypedSubject::F32($subject) => $value,
            TypedSubject::F64($subject) => $value,
            TypedSubject::F16($subject) => $value,
            TypedSubject::BF16($subject) => $value,
        }
    };
}
pub(super) use with_subject;

/// A matrix of a dataset cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The case is of another dataset.
    #[error("there is no matrix of number {number}: the dataset is another one")]
    Absent {
        /// The number.
        number: u32,
    },
    /// Its recipe is none.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The recipe makes nothing, or not what was measured.
    #[error(transparent)]
    Remake(#[from] RemakeError),
}

impl<'d> Matrices<'d> {
    /// None is made yet.
    #[must_use]
    pub fn new(dataset: &'d Dataset, real: &'d RealMatrices) -> Self {
        let subjects = dataset.matrices.iter().map(|_| Default::default()).collect();
        Self { dataset, real, subjects }
    }

    /// The matrix of a case.
    pub(super) fn subject(&self, case: &DatasetCase) -> Result<&TypedSubject, MatrixError> {
        let place = place(&self.subjects, case)?;
        if let Some(subject) = place.get() {
            return Ok(subject);
        }
        let absent = MatrixError::Absent { number: case.matrix };
        let recipe: Recipe = self.dataset.matrix(case).ok_or(absent)?.recipe()?;
        let as_read = recipe.remake(self.real)?;
        let identity = Arc::new(identity(recipe.to_string(), as_read.view()));
        let value_source = recipe.values.source();
        macro_rules! subject {
            ($dtype:ident) => {{
                let matrix = Arc::new(recipe.in_type(&as_read)?);
                TypedSubject::$dtype(Subject { matrix, identity, value_source })
            }};
        }
        let subject = match case.task.precision.matrix() {
            Dtype::F32 => subject!(F32),
            Dtype::F64 => subject!(F64),
            Dtype::F16 => subject!(F16),
            Dtype::BF16 => subject!(BF16),
        };
        // Where two made it at the same time, one of them was first.
        Ok(place.get_or_init(|| subject))
    }
}

impl<'m> Cases<'m> {
    /// The cases of the matrices\' dataset.
    #[must_use]
    pub fn new(matrices: &'m Matrices<'m>) -> Self {
        let stats = matrices.subjects.iter().map(|_| Default::default()).collect();
        Self { matrices, stats }
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &'m Dataset {
        self.matrices.dataset
    }

    /// The matrix of a case.
    pub(super) fn subject(&self, case: &DatasetCase) -> Result<&'m TypedSubject, MatrixError> {
        self.matrices.subject(case)
    }

    /// The statistics of the matrix of a case: what was asked of them once is remembered.
    ///
    /// # Errors
    /// When the matrix cannot be made again.
    pub fn stats(&self, case: &DatasetCase) -> Result<&Arc<MatrixStats<'m>>, MatrixError> {
        let (place, subject) = (place(&self.stats, case)?, self.subject(case)?);
        Ok(place.get_or_init(|| {
            Arc::new(with_subject!(subject, subject => MatrixStats::new(subject.matrix.view())))
        }))
    }
}

/// What is known of the matrix of a case in the type of its task.
fn place<'a, T>(
    all: &'a [[T; Dtype::ALL.len()]],
    case: &DatasetCase,
) -> Result<&'a T, MatrixError> {
    let number = case.matrix;
    let of_matrix = all.get(number as usize).ok_or(MatrixError::Absent { number })?;
    let [f32, f64, f16, bf16] = of_matrix;
    Ok(match case.task.precision.matrix() {
        Dtype::F32 => f32,
        Dtype::F64 => f64,
        Dtype::F16 => f16,
        Dtype::BF16 => bf16,
    })
}
