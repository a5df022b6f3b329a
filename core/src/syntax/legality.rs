//! Which codings a mask offers at a site.

use super::coding::{IndexCoding, ValueCoding};
use super::grammar::{IndexUnit, Site};
use super::mask::Mask;
use crate::structure::MatrixStats;
use crate::task::Values;

impl<L> Mask<'_, L> {
    /// True when decoding freely, or when all indices of the site fit the coding.
    pub(super) fn index_fits(self, site: Site, unit: IndexUnit, coding: IndexCoding) -> bool {
        self.allows(|stats| {
            let side = if let IndexUnit::BlockRows(side) = unit { side as usize } else { 1 };
            let short = stats.cols().div_ceil(side) <= 1 << 16;
            match coding {
                IndexCoding::U32 => true,
                IndexCoding::U16 => short,
                // Where u16 fits as it is, a base would only cost.
                IndexCoding::D16 => !short && span(stats, site, unit) <= coding.max(),
                IndexCoding::D8 => span(stats, site, unit) <= coding.max(),
            }
        })
    }

    /// True when decoding freely, or when the values of the matrix fit the coding whatever the task
    /// allows them to become.
    pub(super) fn values_fit(self, coding: ValueCoding, padded: bool) -> bool {
        self.allows(|stats| {
            // Asked first: where values may change, those that the matrix has now do not count.
            if coding == ValueCoding::Plain || self.task().values == Values::Variable {
                return coding == ValueCoding::Plain;
            }
            let Some(table) = stats.value_table() else { return false };
            match coding {
                ValueCoding::Plain => true,
                ValueCoding::Constant => table.len() == 1,
                // One value without padding is `constant`.
                ValueCoding::Dictionary => {
                    table.len() > usize::from(!padded) && (!padded || table.has_code_for_padding())
                }
            }
        })
    }
}

/// Largest distance between columns of a unit.
fn span(stats: &MatrixStats<'_>, site: Site, unit: IndexUnit) -> u64 {
    match unit {
        IndexUnit::Rows(height) => stats.span(site.rows, site.order, height, 1),
        IndexUnit::BlockRows(side) => stats.span(site.rows, site.order, side, side),
        IndexUnit::Tile(items) => stats.tile_span(site.rows, site.order, items),
    }
}
