use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::features::Features;
use super::grid::DensityGrids;
use super::pattern::{Pattern, Strata, within};

/// Version of everything in this module that a model can see: the features and their order, the
/// grids, the choice of nonzeros and their embedding. A model names the version it was trained on.
pub const EMBEDDING_VERSION: u32 = 2;

/// Row and column indices are scaled to `0..SCALED_RANGE` before they are embedded.
pub const SCALED_RANGE: f64 = 1024.0;

/// Base of the wavelengths, as in Vaswani et al., Attention Is All You Need (2017), §3.5.
const WAVELENGTH_BASE: f64 = 10_000.0;

/// How a row or column index enters its embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexScaling {
    /// Sinusoids of the index scaled to `0..`[`SCALED_RANGE`], so that positions look alike in
    /// matrices of all sizes.
    #[default]
    Scaled,
    /// Sinusoids of the index itself (ablation).
    Raw,
    /// The index alone, scaled to [0, 1] between the first and the last (ablation).
    MaxMin,
}

/// Size and kind of an embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmbeddingConfig {
    /// Nonzeros embedded, at most.
    pub max_tokens: usize,
    /// Frequencies of the sinusoids; each gives a sine and a cosine.
    pub frequencies: usize,
    /// How indices are scaled.
    pub scaling: IndexScaling,
}

impl Default for EmbeddingConfig {
    /// 256 nonzeros, 64 numbers for each index.
    fn default() -> Self {
        Self { max_tokens: 256, frequencies: 32, scaling: IndexScaling::Scaled }
    }
}

impl EmbeddingConfig {
    /// Numbers that embed one index.
    #[must_use]
    pub fn index_width(&self) -> usize {
        match self.scaling {
            IndexScaling::Scaled | IndexScaling::Raw => 2 * self.frequencies,
            IndexScaling::MaxMin => 1,
        }
    }

    /// Numbers that embed one nonzero: its row, then its column.
    #[must_use]
    pub fn token_width(&self) -> usize {
        2 * self.index_width()
    }
}

/// The structure of a matrix as the policy sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StructureEmbedding {
    /// [`EMBEDDING_VERSION`] of the code that made it.
    pub version: u32,
    /// How it was made.
    pub config: EmbeddingConfig,
    /// Embedded nonzeros, `n_tokens` × `d`, row-major, in the order of the matrix.
    ///
    /// Each is its row's embedding, then its column's. An index i, scaled, gives at 2j and 2j + 1
    /// the values sin(i / 10000^(j / frequencies)) and cos(i / 10000^(j / frequencies)).
    pub tokens: Vec<f32>,
    /// Nonzeros embedded: all when there are at most `config.max_tokens`, otherwise that many, less
    /// the few that both strata picked.
    pub n_tokens: usize,
    /// Numbers for each nonzero.
    pub d: usize,
    /// Global features.
    pub features: Features,
    /// How dense the matrix is, in grids of several scales.
    pub grids: DensityGrids,
}

impl StructureEmbedding {
    pub(super) fn of(
        config: &EmbeddingConfig,
        sampled: &SampledPositions,
        features: Features,
        grids: DensityGrids,
    ) -> Self {
        Self {
            version: EMBEDDING_VERSION,
            config: *config,
            tokens: sampled.embed(config),
            n_tokens: sampled.positions.len(),
            d: config.token_width(),
            features,
            grids,
        }
    }
}

/// Nonzeros of a matrix that stand for all of them.
///
/// They are what an embedding is made of, in a tenth of its bytes: whoever keeps the embeddings of
/// many matrices keeps these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledPositions {
    /// Rows of the matrix.
    pub rows: u32,
    /// Columns of the matrix.
    pub cols: u32,
    /// Row and column of each nonzero, in the order of the matrix.
    pub positions: Vec<[u32; 2]>,
}

impl SampledPositions {
    pub(super) fn of(pattern: &Pattern<'_>, limit: usize) -> Self {
        let position = |at| [pattern.row_of(at) as u32, pattern.columns[at]];
        Self {
            rows: pattern.rows as u32,
            cols: pattern.cols as u32,
            positions: sample(pattern, limit).into_iter().map(position).collect(),
        }
    }

    /// The embeddings of all of them, `config.token_width()` numbers each: the tokens of a
    /// [`StructureEmbedding`].
    #[must_use]
    pub fn embed(&self, config: &EmbeddingConfig) -> Vec<f32> {
        let encoder = Encoder::new(config);
        let mut tokens = Vec::with_capacity(self.positions.len() * config.token_width());
        for &[row, col] in &self.positions {
            encoder.encode(row, self.rows, &mut tokens);
            encoder.encode(col, self.cols, &mut tokens);
        }
        tokens
    }
}

/// Positions of the nonzeros to embed, increasing.
///
/// Half of them are stratified over the nonzeros, which shows where the work is; half over the
/// rows, so that a few heavy rows do not hide the others.
fn sample(pattern: &Pattern<'_>, limit: usize) -> Vec<usize> {
    let nnz = pattern.nnz();
    if nnz <= limit {
        return (0..nnz).collect();
    }
    let by_row = Strata::new(pattern.rows, limit / 2);
    let by_nonzero = Strata::new(nnz, limit - by_row.len());
    let mut positions: Vec<usize> = (0..by_row.len())
        .map(|k| {
            let row = by_row.position(k);
            let length = pattern.row(row).len() as u64;
            // An empty row gives way to the next nonzero after it.
            (pattern.offsets.at(row) + within(!(k as u64), length) as usize).min(nnz - 1)
        })
        .chain((0..by_nonzero.len()).map(|k| by_nonzero.position(k)))
        .collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// Turns indices into numbers.
struct Encoder {
    scaling: IndexScaling,
    /// 10000^(−2j/d) for each frequency j.
    rates: Vec<f64>,
}

impl Encoder {
    fn new(config: &EmbeddingConfig) -> Self {
        let frequencies = match config.scaling {
            IndexScaling::Scaled | IndexScaling::Raw => config.frequencies,
            IndexScaling::MaxMin => 0,
        };
        let rates = (0..frequencies)
            .map(|j| libm::pow(WAVELENGTH_BASE, -(j as f64) / frequencies as f64))
            .collect();
        Self { scaling: config.scaling, rates }
    }

    /// Appends the embedding of an index below `count`.
    fn encode(&self, index: u32, count: u32, out: &mut Vec<f32>) {
        let index = f64::from(index);
        let scaled = match self.scaling {
            IndexScaling::Scaled => index * SCALED_RANGE / f64::from(count),
            IndexScaling::Raw => index,
            IndexScaling::MaxMin => {
                out.push((index / f64::from(count.saturating_sub(1).max(1))) as f32);
                return;
            }
        };
        for rate in &self.rates {
            let (sin, cos) = libm::sincos(scaled * rate);
            out.extend([sin as f32, cos as f32]);
        }
    }
}
