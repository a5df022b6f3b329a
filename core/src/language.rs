//! The kernel language: what a policy writes, token by token, and what a kernel is made from.
//!
//! A [`Program`] splits the rows of a matrix into parts; each part has its own row order, layout,
//! compression and mapping to threads, and all parts run in one launch. Programs exist as
//! [`Token`]s (for policies), as text (`.skl` files) and as a typed tree:
//!
//! ```text
//! program := BLOCK rows
//! rows    := split-length T rows rows      rows of at most T entries, then the longer ones
//!          | split-nonzeros E rows rows    the first rows with E eighths of entries, the rest
//!          | keep layout                   rows in matrix order
//!          | sort W layout                 rows sorted by falling length in windows of W rows
//! layout  := csr INDEX VALUES CACHE VECTOR LANES UNROLL
//!          | sell H INDEX VALUES CACHE VECTOR LANES UNROLL
//!          | dia VALUES CACHE VECTOR R UNROLL
//!          | bcsr B INDEX VALUES CACHE VECTOR LANES
//!          | merge I INDEX VALUES CACHE VECTOR REDUCTION
//!          | chunk E INDEX VALUES CACHE VECTOR LANES UNROLL
//!          | ell INDEX VALUES CACHE VECTOR LANES UNROLL
//!          | binned S VALUES CACHE VECTOR LANES UNROLL
//!          | cvse R INDEX VALUES CACHE VECTOR LANES UNROLL
//! VECTOR  := V | P V                       V columns per thread, in panels of P columns
//! ```
//!
//! [`grammar`] is the single statement of these rules: the legal-next mask, the parser, uniform
//! sampling and the count of programs all come from its `expand` function. [`Mask::legal`]
//! narrows it to the programs that are valid for one matrix, by its
//! [`MatrixStats`](crate::structure::MatrixStats).

/// What may come at each open slot.
pub mod grammar {
    pub use crate::layout::{Alternative, Slot};
    pub use crate::syntax::grammar::{IndexUnit, MAX_SPLIT_DEPTH, Site, expand};
}
mod hash;
mod text;

pub use crate::layout::{Derivation, Layout, Mask, Node, Part, Program, Slot, Space};
pub use crate::structure::{
    MAX_DIAGONALS, MAX_PADDING, Order, PaddingLimit, RowSet, RowSetId, Rows, SplitRule,
};
pub use crate::syntax::{
    Access, BlockSize, Cache, IndexCoding, Lanes, Panel, ProgramError, Token, ValueCoding, Word,
};
pub(crate) use hash::Fnv;
pub use hash::{grammar_hash, layouts_changed_since, vocabulary_hash};
pub use text::TextError;

/// Version of the language; raised whenever a program's text, tokens or meaning change.
pub const LANGUAGE_VERSION: u32 = 7;

/// The oldest version whose programs are still read, with the meaning that they had.
pub const OLDEST_VERSION: u32 = 2;
