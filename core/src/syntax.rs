//! The syntax of programs: tokens, the grammar with its masks, and the typed tree.
//!
//! It is the same whatever layouts there are: they are a [`LayoutSet`], a type parameter of the
//! grammar and of the tree. [`crate::layout`] has the one that kernels exist for, and
//! [`crate::language`] the types with it filled in.

mod coding;
mod derivation;
pub mod grammar;
mod legality;
mod mask;
mod space;
mod token;
mod tree;

pub use crate::structure::{Order, RowSetId, SplitRule};
pub use coding::{Access, Cache, IndexCoding, Lanes, Panel, ValueCoding};
pub use derivation::Derivation;
pub use mask::Mask;
pub use space::Space;
pub use token::{Token, Word};
pub use tree::{BlockSize, Node, Part, Program, ProgramError, Reader};

use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use grammar::{Alternative, Site};

/// The layouts that programs may use, as far as the grammar and the tree know them.
pub trait LayoutSet: Copy + Debug + Ord + Hash + 'static {
    /// The layouts that may store the rows of a site: of each its word, and the slots of its
    /// fields.
    fn openings(site: Site, mask: Mask<'_, Self>) -> Vec<Alternative<Self>>;

    /// Appends the layout's word and fields.
    fn write(&self, out: &mut Vec<Token>);

    /// Reads what [`LayoutSet::write`] wrote; `None` when the tokens are anything else.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}
