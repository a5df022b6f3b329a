//! The syntax of programs: tokens, the grammar with its masks, and the typed tree.
//!
//! It is the same whatever layouts there are: they are a [`LayoutSet`], a type parameter of the
//! grammar and of the tree. [`crate::layout`] has the one that kernels exist for, and
//! [`crate::language`] the types with it filled in.

mod block_size;
mod coding;
mod derivation;
pub mod grammar;
mod legality;
mod mask;
mod reader;
mod space;
mod token;
mod tree;

pub use crate::structure::{Order, RowSetId, SplitRule};
pub use block_size::BlockSize;
pub use coding::{Access, Cache, IndexCoding, Lanes, Panel, ValueCoding};
pub use derivation::{Derivation, ProgramError};
pub use grammar::LayoutSet;
pub use mask::Mask;
pub use reader::Reader;
pub use space::Space;
pub use token::{Token, Word};
pub use tree::{Node, Part, Program};
