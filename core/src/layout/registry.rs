//! The registry of layouts: one line for each makes it part of the language.

use alloc::vec::Vec;

use super::bcsr::BcsrLayout;
use super::binned::BinnedLayout;
use super::chunk::ChunkLayout;
use super::csr::CsrLayout;
use super::cvse::CvseLayout;
use super::dia::DiaLayout;
use super::ell::EllLayout;
use super::layout_module::LayoutModule;
use super::merge::MergeLayout;
use super::sell::SellLayout;
use crate::syntax::grammar::Site;
use crate::syntax::{Access, LayoutSet, Panel, Reader, Token, Word};

/// Lists the layouts, in the order in which the grammar offers them.
macro_rules! layouts {
    ($($(#[$doc:meta])* $variant:ident($Layout:ident),)*) => {
        /// Storage and mapping of a part.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Layout { $($(#[$doc])* $variant($Layout),)* }

        impl LayoutSet for Layout {
            fn openings(site: Site, mask: Mask<'_>) -> Vec<Alternative> {
                let openings = [$(opening::<$Layout>(site, mask),)*];
                openings.into_iter().flatten().collect()
            }

            fn write(&self, out: &mut Vec<Token>) {
                out.push(Token::Word(self.word()));
                each_layout!(self, layout => layout.write(out));
            }

            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                let word = reader.word()?;
                $(if word == $Layout::WORD {
                    return $Layout::read(reader).map(Self::$variant);
                })*
                None
            }
        }

        impl Layout {
            /// The words that open layouts.
            pub const WORDS: &'static [Word] = &[$($Layout::WORD,)*];

            /// Names of the fields that follow a layout's word; none for another word.
            #[must_use]
            pub(crate) fn fields_of(word: Word) -> &'static [&'static str] {
                $(if word == $Layout::WORD {
                    return $Layout::FIELDS;
                })*
                &[]
            }

            /// The layout as far as it decides what is stored.
            pub(crate) fn storage(&self) -> Self {
                match self { $(Self::$variant(layout) => Self::$variant(layout.storage()),)* }
            }

            /// Whether what is stored depends on the threads of a block, too.
            pub(crate) fn stores_by_block(&self) -> bool {
                match self { $(Self::$variant(_) => $Layout::STORES_BY_BLOCK,)* }
            }

            /// The word that opens the layout in a program.
            #[must_use]
            pub fn word(&self) -> Word {
                match self { $(Self::$variant(_) => $Layout::WORD,)* }
            }
        }

        /// Evaluates an expression for whichever layout it is.
        macro_rules! each_layout {
            ($of:expr, $l:ident => $body:expr) => {
                match $of { $($crate::layout::registry::Layout::$variant($l) => $body,)* }
            };
        }
        pub(crate) use each_layout;
    };
}

layouts! {
    /// Compressed sparse rows.
    Csr(CsrLayout),
    /// Padded slices of rows.
    Sell(SellLayout),
    /// Diagonals.
    Dia(DiaLayout),
    /// Dense square blocks.
    Bcsr(BcsrLayout),
    /// Tiles of equally many entries and row ends.
    Merge(MergeLayout),
    /// Rows in chunks.
    Chunk(ChunkLayout),
    /// Rows of equally many slots.
    Ell(EllLayout),
    /// Products by panels of columns, then sums by bins of rows.
    Binned(BinnedLayout),
    /// Rows in groups, column by column.
    Cvse(CvseLayout),
}

/// A program over these layouts.
pub type Program = crate::syntax::Program<Layout>;
/// What a program does with a set of rows.
pub type Node = crate::syntax::Node<Layout>;
/// Rows in an order, with the layout that stores them.
pub type Part = crate::syntax::Part<Layout>;
/// The tokens that a derivation over these layouts may go on with.
pub type Mask<'f> = crate::syntax::Mask<'f, Layout>;
/// An open choice of a derivation.
pub type Slot = crate::syntax::grammar::Slot<Layout>;
/// A token that may fill a slot, and the slots that it opens.
pub type Alternative = crate::syntax::grammar::Alternative<Layout>;
/// A program being written.
pub type Derivation<'f> = crate::syntax::Derivation<'f, Layout>;
/// The programs under a mask.
pub type Space<'f> = crate::syntax::Space<'f, Layout>;

/// The field of a number of columns per thread.
pub(crate) const VECTOR: &str = "vector";
/// The field that may stand before it.
pub(crate) const PANEL: &str = "panel";

fn opening<M: LayoutModule>(site: Site, mask: Mask<'_>) -> Option<Alternative> {
    Some(Alternative::word(M::WORD, M::open(site, mask)?))
}

impl Layout {
    /// Coding and caching of the layout's arrays.
    #[must_use]
    pub fn access(&self) -> Access {
        each_layout!(self, layout => layout.access())
    }

    /// The field that a token fills where `expected` comes next: that one, or the width of column
    /// panels, which may stand before the columns per thread.
    pub(crate) fn field_of(expected: &'static str, token: Token) -> &'static str {
        match token {
            Token::Number(n) if expected == VECTOR && Panel::of(n).is_some() => PANEL,
            _ => expected,
        }
    }

    /// The layout's fields, by their names in program text, in the order of their tokens.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, Token)> {
        let mut names = Self::fields_of(self.word()).iter().copied().peekable();
        let tokens = self.tokens().into_iter().skip(1);
        let named = tokens.map_while(|token| {
            let expected = *names.peek()?;
            let field = Self::field_of(expected, token);
            if field == expected {
                names.next();
            }
            Some((field, token))
        });
        named.collect()
    }

    /// The layout's tokens.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token> {
        let mut out = Vec::new();
        LayoutSet::write(self, &mut out);
        out
    }
}
