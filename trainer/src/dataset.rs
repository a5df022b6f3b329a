//! What networks are trained on: measured cases with everything that a network is given, so that no
//! matrix has to be made again.
//!
//! ```text
//! recordings ─► MeasuredCase ─► recipe ─► matrix ─► statistics ─► Dataset ─► one file
//! ```
//!
//! Positions of nonzeros are kept instead of their embeddings, which are ten times as large and can
//! be of several kinds.

mod file;
mod prepare;

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sparserl_core::language::{Program, Token};
use sparserl_core::structure::{
    DensityGrids, EmbeddingConfig, Features, IndexScaling, SampledPositions,
};
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::{Inputs, MatrixSize, scalars};
use sparserl_onnx_models::signature::Signature;
use sparserl_onnx_models::speeds::REGIMES;
use sparserl_onnx_models::terms::TERMS;

pub use file::DatasetError;
pub use prepare::{PrepareError, Prepared, prepare};

use crate::compiled::{CompiledPrograms, RESOURCES};
use crate::corpus::{Recipe, RecipeError, Role, Split};

/// Matrices, and what was measured on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// What its numbers were made for.
    pub signature: Signature,
    /// The matrices.
    pub matrices: Vec<DatasetMatrix>,
    /// The cases, those of a matrix after each other.
    pub cases: Vec<DatasetCase>,
}

/// What a network is given of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetMatrix {
    /// The text of its recipe.
    pub recipe: String,
    /// Entries.
    pub nnz: u64,
    /// Features.
    pub features: Features,
    /// Density grids.
    pub grids: DensityGrids,
    /// Nonzeros to embed, as many as the signature's embedding has.
    pub sampled: SampledPositions,
}

/// A matrix, a task and a GPU, with the programs that were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetCase {
    /// Its place in [`Dataset::matrices`].
    pub matrix: u32,
    /// What was computed.
    pub task: Task,
    /// On which GPU.
    pub target: Target,
    /// The programs, each once; the reference first.
    pub programs: Vec<DatasetProgram>,
    /// Programs that were not measured.
    pub drawn: DrawnPrograms,
}

/// Programs of the grammar, drawn token by token, as ids of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnPrograms {
    /// Legal for the matrix.
    pub legal: Vec<Vec<u8>>,
    /// Programs of the language that are not legal for the matrix; fewer where nearly all are.
    pub illegal: Vec<Vec<u8>>,
}

/// A program and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetProgram {
    /// Ids of its tokens.
    pub tokens: Vec<u8>,
    /// Whether it was right.
    pub right: bool,
    /// log2 of its speed relative to the reference in each of [`REGIMES`]; `None` where it was not
    /// timed.
    pub speeds: [Option<f32>; REGIMES.len()],
    /// Its [`ProgramTerms`](sparserl_onnx_models::terms::ProgramTerms).
    pub terms: [f32; TERMS],
    /// Its resource usage, if it was compiled: its
    /// [`resources`](crate::compiled::CompiledProgram::resources).
    pub resources: Option<[f32; RESOURCES]>,
}

const _: () = assert!(Token::VOCABULARY <= 256, "ids of tokens are stored in bytes");

impl Dataset {
    /// No cases yet.
    #[must_use]
    pub fn empty() -> Self {
        let signature = Signature::current(EmbeddingConfig::default());
        Self { signature, matrices: Vec::new(), cases: Vec::new() }
    }

    /// The matrix of a case; `None` for a case of another dataset.
    #[must_use]
    pub fn matrix(&self, case: &DatasetCase) -> Option<&DatasetMatrix> {
        self.matrices.get(case.matrix as usize)
    }

    /// What a network is given for a case, with the indices of positions scaled in some way; `None`
    /// for a case of another dataset.
    #[must_use]
    pub fn inputs(&self, case: &DatasetCase, scaling: IndexScaling) -> Option<Inputs> {
        let config = EmbeddingConfig { scaling, ..self.signature.embedding };
        let matrix = self.matrix(case)?;
        Some(Inputs {
            scalars: scalars(&matrix.features, matrix.size(), case.task, &case.target).to_vec(),
            grids: matrix.grids.cells().to_vec(),
            tokens: matrix.sampled.embed(&config),
            config,
        })
    }

    /// What each matrix is used for.
    ///
    /// # Errors
    /// When the text of a recipe is none.
    pub fn roles(&self, split: &Split) -> Result<Vec<Role>, RecipeError> {
        self.matrices.iter().map(|matrix| Ok(split.role(&matrix.recipe()?))).collect()
    }

    /// This dataset with the resource usage of the programs, as far as they were compiled.
    #[must_use]
    pub fn with_resources(mut self, compiled: &CompiledPrograms) -> Self {
        self.cases.par_iter_mut().for_each(|case| case.tell(compiled));
        self
    }

    /// Hash of all that it holds, in hexadecimal: what was made of another dataset has another one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        // Nothing of it cannot be written, and a hasher takes all.
        drop(postcard::to_io(self, &mut hasher));
        hasher.finalize().to_hex().to_string()
    }

    /// Number of programs.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.cases.iter().map(|case| case.programs.len()).sum()
    }

    /// Number of programs whose resource usage is known.
    #[must_use]
    pub fn compiled_programs(&self) -> usize {
        let programs = self.cases.iter().flat_map(|case| &case.programs);
        programs.filter(|program| program.resources.is_some()).count()
    }
}

impl DatasetMatrix {
    /// Its recipe.
    ///
    /// # Errors
    /// When the text is none.
    pub fn recipe(&self) -> Result<Recipe, RecipeError> {
        self.recipe.parse()
    }

    /// How large it is.
    #[must_use]
    pub fn size(&self) -> MatrixSize {
        MatrixSize {
            rows: u64::from(self.sampled.rows),
            cols: u64::from(self.sampled.cols),
            nnz: self.nnz,
        }
    }
}

impl DatasetCase {
    /// Has its programs know their resource usage, as far as they were compiled.
    fn tell(&mut self, compiled: &CompiledPrograms) {
        let (task, architecture) = (self.task, self.target.architecture);
        for known in &mut self.programs {
            // Nothing is to be looked for among none.
            let program = if compiled.is_empty() { None } else { known.program(task) };
            known.resources = program.and_then(|program| {
                let compiled = compiled.of(&program, architecture)?;
                Some(compiled.resources(program.block.threads()))
            });
        }
    }

    /// The tokens of some of its programs.
    pub(crate) fn tokens_of<'p>(
        &self,
        programs: impl IntoIterator<Item = &'p DatasetProgram>,
    ) -> BTreeSet<Vec<Token>> {
        let programs = programs.into_iter().filter_map(|program| program.program(self.task));
        programs.map(|program| program.tokens()).collect()
    }

    /// The highest speed of a right program in a regime.
    #[must_use]
    pub fn best(&self, regime: usize) -> Option<f32> {
        fastest(&self.programs, regime)
    }
}

/// The highest speed of a right one of some programs in a regime.
pub(crate) fn fastest<'p>(
    programs: impl IntoIterator<Item = &'p DatasetProgram>,
    regime: usize,
) -> Option<f32> {
    programs.into_iter().filter_map(|program| program.speed(regime)).reduce(f32::max)
}

impl DatasetProgram {
    /// The program, for the task of its case; `None` where its tokens are none.
    #[must_use]
    pub fn program(&self, task: Task) -> Option<Program> {
        let tokens: Option<Vec<Token>> =
            self.tokens.iter().map(|&id| Token::from_id(usize::from(id))).collect();
        Program::from_tokens(task, &tokens?).ok()
    }

    /// Its speed in a regime, by the place in [`REGIMES`], if it was right and timed.
    #[must_use]
    pub fn speed(&self, regime: usize) -> Option<f32> {
        self.speeds.get(regime).copied().flatten().filter(|_| self.right)
    }
}
