//! What a policy sees of a matrix: its structure as numbers of fixed, bounded shape.
//!
//! After SparseRL (ICLR 2026), the input of the policy is a [`StructureEmbedding`]: sinusoidal
//! embeddings of the positions of sampled nonzeros, beside global [`Features`] and
//! [`DensityGrids`]. Only the pattern is looked at, never the values.
//!
//! Everything comes from one streaming pass over CSR (`scan`). Statistics of rows are exact.
//! Statistics of single nonzeros are taken on a deterministic, stratified sample of at most
//! [`SAMPLE_LIMIT`] of them, and those that need a search in other rows on at most
//! [`PROBE_LIMIT`]; a matrix with no more nonzeros than that is described exactly. Memory is
//! bounded by these constants, whatever the matrix.

mod embedding;
mod features;
mod grid;
mod pattern;
mod probe;
mod row_lengths;
mod scan;
mod sketch;
mod spy;
#[cfg(test)]
mod tests;

pub use embedding::{
    EMBEDDING_VERSION, EmbeddingConfig, IndexScaling, SCALED_RANGE, StructureEmbedding,
};
pub use features::Features;
pub use grid::{DensityGrids, GRID_SIDES};
pub use scan::{PROBE_LIMIT, SAMPLE_LIMIT};
pub use spy::SpyGrid;
