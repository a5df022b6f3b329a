use std::sync::{Arc, OnceLock};

use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::Dtype;
use sparserl_gpu::store::fingerprint::MatrixIdentity;

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
    single: Vec<OnceLock<Subject<f32>>>,
    double: Vec<OnceLock<Subject<f64>>>,
}

/// The cases of a dataset, with the statistics of their matrices.
#[derive(Debug)]
pub struct Cases<'m> {
    matrices: &'m Matrices<'m>,
    single: Vec<OnceLock<Arc<MatrixStats<'m>>>>,
    double: Vec<OnceLock<Arc<MatrixStats<'m>>>>,
}

/// A matrix in the type of its task.
pub(super) enum TypedSubject<'s> {
    Single(&'s Subject<f32>),
    Double(&'s Subject<f64>),
}

/// A matrix of a dataset cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The case is of another dataset.
    #[error("there is no matrix of number {number}: the dataset is another one")]
    Absent {
        /// The number.
        number: u32,
    },
    /// No dataset has such cases.
    #[error("the case is in half precision, which no network is trained for")]
    Half,
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
        let count = dataset.matrices.len();
        let single = (0..count).map(|_| OnceLock::new()).collect();
        let double = (0..count).map(|_| OnceLock::new()).collect();
        Self { dataset, real, single, double }
    }

    /// The matrix of a case.
    pub(super) fn subject(&self, case: &DatasetCase) -> Result<TypedSubject<'_>, MatrixError> {
        let number = case.matrix;
        let absent = || MatrixError::Absent { number };
        Ok(match case.task.precision.matrix() {
            Dtype::F32 => {
                let place = self.single.get(number as usize).ok_or_else(absent)?;
                let single = |recipe: &Recipe, matrix: Csr<f64>| recipe.in_single(&matrix);
                TypedSubject::Single(self.get_or_make(place, case, single)?)
            }
            Dtype::F64 => {
                let place = self.double.get(number as usize).ok_or_else(absent)?;
                TypedSubject::Double(self.get_or_make(place, case, |_, matrix| Ok(matrix))?)
            }
            Dtype::F16 | Dtype::BF16 => return Err(MatrixError::Half),
        })
    }

    fn get_or_make<'s, T: Scalar>(
        &self,
        place: &'s OnceLock<Subject<T>>,
        case: &DatasetCase,
        typed: impl FnOnce(&Recipe, Csr<f64>) -> Result<Csr<T>, RemakeError>,
    ) -> Result<&'s Subject<T>, MatrixError> {
        if let Some(subject) = place.get() {
            return Ok(subject);
        }
        let absent = MatrixError::Absent { number: case.matrix };
        let recipe: Recipe = self.dataset.matrix(case).ok_or(absent)?.recipe()?;
        let as_read = recipe.remake(self.real)?;
        let identity = Arc::new(MatrixIdentity::of(as_read.view(), recipe.to_string()));
        let matrix = Arc::new(typed(&recipe, as_read)?);
        let value_source = recipe.values.source();
        // Where two made it at the same time, one of them was first.
        Ok(place.get_or_init(|| Subject { matrix, identity, value_source }))
    }
}

impl<'m> Cases<'m> {
    /// The cases of the matrices\' dataset.
    #[must_use]
    pub fn new(matrices: &'m Matrices<'m>) -> Self {
        let count = matrices.dataset.matrices.len();
        let single = (0..count).map(|_| OnceLock::new()).collect();
        let double = (0..count).map(|_| OnceLock::new()).collect();
        Self { matrices, single, double }
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &'m Dataset {
        self.matrices.dataset
    }

    /// The matrix of a case.
    pub(super) fn subject(&self, case: &DatasetCase) -> Result<TypedSubject<'m>, MatrixError> {
        self.matrices.subject(case)
    }

    /// The statistics of the matrix of a case: what was asked of them once is remembered.
    ///
    /// # Errors
    /// When the matrix cannot be made again.
    pub fn stats(&self, case: &DatasetCase) -> Result<&Arc<MatrixStats<'m>>, MatrixError> {
        let number = case.matrix as usize;
        let absent = || MatrixError::Absent { number: case.matrix };
        Ok(match self.subject(case)? {
            TypedSubject::Single(subject) => {
                let place = self.single.get(number).ok_or_else(absent)?;
                place.get_or_init(|| Arc::new(MatrixStats::new(subject.matrix.view())))
            }
            TypedSubject::Double(subject) => {
                let place = self.double.get(number).ok_or_else(absent)?;
                place.get_or_init(|| Arc::new(MatrixStats::new(subject.matrix.view())))
            }
        })
    }
}
