//! The statistics of a matrix, and what a policy sees of it.
//!
//! [`MatrixStats`] is the one extractor: features for policies, the questions of the mask and the
//! prices of the cost model come from it. Each number is estimated in one place, but for how full
//! blocks are: features weigh them by sampled nonzeros, prices count them where a layout would
//! store them (`probe` says why).
//!
//! After SparseRL (ICLR 2026), the input of a policy is a [`StructureEmbedding`]: sinusoidal
//! embeddings of the positions of sampled nonzeros, beside global [`Features`] and
//! [`DensityGrids`]. Only the pattern is looked at, never the values.
//!
//! Most of it comes from one streaming pass over CSR (`scan`). Statistics of rows are exact.
//! Statistics of single nonzeros are taken on a deterministic, stratified sample of at most
//! [`SAMPLE_LIMIT`] of them, and those that need a search in other rows on at most
//! [`PROBE_LIMIT`]; a matrix with no more nonzeros than that is described exactly. Padded slices
//! are those that [`MatrixStats`] counts for layouts that store them. Its count of blocks is no
//! feature: of matrices without large blocks it takes a glance only, enough to refuse them.

mod answers;
mod chunks;
mod count;
mod embedding;
mod features;
mod grid;
mod groups;
mod limits;
mod pattern;
mod probe;
mod row_lengths;
mod rows;
mod scan;
mod similarity;
mod sketch;
mod spy;
mod stats;
#[cfg(test)]
mod tests;
mod values;

pub use answers::Answers;
pub use chunks::Chunks;
pub use count::BlockShape;
pub use embedding::{
    EMBEDDING_VERSION, EmbeddingConfig, IndexScaling, SCALED_RANGE, SampledPositions,
    StructureEmbedding,
};
pub use features::Features;
pub use grid::{DensityGrids, GRID_SIDES};
pub use groups::RowGroups;
pub use limits::{MAX_DIAGONALS, MAX_PADDING, PaddingLimit};
pub use row_lengths::{Moments, RowLengths};
pub use rows::{Order, RowSet, RowSetId, Rows, SplitRule};
pub use scan::{PROBE_LIMIT, SAMPLE_LIMIT};
pub use similarity::FeatureScale;
pub use spy::SpyGrid;
pub use stats::MatrixStats;

pub(crate) use chunks::{FOUR, row_chunk_count, row_chunks};
pub(crate) use count::{BlockColumns, diagonals, row_ends, tile_rows};
pub(crate) use values::Table;
