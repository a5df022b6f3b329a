use alloc::vec::Vec;

use crate::language::{Node, Order, Rows};
use crate::layout::{
    Array, ArrayReader, ArrayRole, ElementType, LayoutModule, Packed, PackedPart, PartSize,
    each_layout,
};

/// What a source depends on besides its program: how a packing chose among a few forms.
///
/// It holds no size. [`super::emit`] is given nothing else, so that no size of a matrix can get
/// into such a source, and matrices whose signatures agree share one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The parts, in the order of the program's text.
    pub(super) parts: Vec<PartSignature>,
}

/// The forms that a packing chose for a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartSignature {
    pub(super) rows: RowsForm,
    /// Type of the numbers that count what the threads of the part share, where that is neither
    /// rows nor entries.
    pub(super) item: ElementType,
    /// In the order of the kernel's parameters.
    pub(super) arrays: Vec<ArraySignature>,
}

/// How the rows of a part are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowsForm {
    /// All rows of the matrix in order.
    All,
    /// Neighbouring rows.
    Range,
    /// An array of rows.
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArraySignature {
    pub(super) name: &'static str,
    pub(super) element: ElementType,
    pub(super) role: ArrayRole,
    pub(super) reader: ArrayReader,
}

impl PartSignature {
    pub(super) fn element(&self, array: &str) -> Option<ElementType> {
        self.arrays.iter().find(|a| a.name == array).map(|a| a.element)
    }

    /// Type of the parameter for a size of the part.
    pub(super) fn size_type(&self, size: PartSize) -> ElementType {
        match size {
            PartSize::Entries => self.element("row_offsets").unwrap_or(ElementType::U32),
            PartSize::Own(own) if own.counts_items => self.item,
            PartSize::Rows
            | PartSize::Columns
            | PartSize::FirstRow
            | PartSize::FirstBlock
            | PartSize::PanelBlocks
            | PartSize::Own(_) => ElementType::U32,
        }
    }
}

impl Packed {
    /// The forms of the packing that a source depends on.
    #[must_use]
    pub fn signature(&self) -> Signature {
        let has_all_rows = match &self.program.body {
            Node::Part(part) => part.order == Order::Keep,
            Node::Split { .. } => false,
        };
        let part = |part: &PackedPart| {
            let rows = match &part.rows {
                Rows::Range { .. } if has_all_rows => RowsForm::All,
                Rows::Range { .. } => RowsForm::Range,
                Rows::List(_) => RowsForm::List,
            };
            let items = each_layout!(&part.layout, layout => {
                layout.most_items(part.rows.len() as u64, part.nnz as u64)
            });
            let is_narrow = u32::try_from(items).is_ok();
            let item = if is_narrow { ElementType::U32 } else { ElementType::U64 };
            let array = |array: &Array| {
                let element = array.data.element_type();
                ArraySignature { name: array.name, element, role: array.role, reader: array.reader }
            };
            PartSignature { rows, item, arrays: part.arrays.iter().map(array).collect() }
        };
        Signature { parts: self.parts.iter().map(part).collect() }
    }
}
