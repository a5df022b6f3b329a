//! How rows are cut into bins, and their entries into tiles of a panel and a bin.

use alloc::vec;
use alloc::vec::Vec;

use crate::layout::pack::{PackError, PartSource, check_slots};
use crate::matrix::Scalar;
use crate::structure::{FOUR, MAX_PADDING};
use crate::task::Task;

/// Bytes of a unit of shared memory.
pub(super) const SHARED_UNIT: usize = 32 << 10;
/// Bytes that the products of a tile are padded to: a sector of memory.
const SECTOR: usize = 32;
/// Places of entries that a thread loads at once.
pub(super) const PLACES_AT_ONCE: usize = 8;
/// Segments that the slots are cut into, about, where each is then large enough.
const SEGMENTS: u64 = 1024;

/// How large panels and bins are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Bytes of a sum.
    pub(super) sum: usize,
    /// Columns of a panel.
    pub(super) panel: usize,
    /// Slots that a tile is padded to a multiple of.
    pub(super) group: usize,
    /// Bytes that the products of a bin, and the places of its entries, may take.
    pub(super) room: usize,
}

impl Sizes {
    pub(super) fn new(task: Task, shared: u32) -> Self {
        let (sum, room) = (task.precision.accumulator().size(), shared as usize * SHARED_UNIT);
        Self { sum, panel: room / sum, group: SECTOR / sum, room }
    }

    pub(super) fn panels(self, columns: usize) -> usize {
        columns.div_ceil(self.panel)
    }

    /// Bytes of a bin with so many slots and entries.
    fn bin_bytes(self, slots: usize, entries: usize) -> usize {
        slots * self.sum + entries.next_multiple_of(PLACES_AT_ONCE) * size_of::<u16>()
    }

    /// Bytes of a bin whose only row has so many entries, at most.
    pub(super) fn row_bytes(self, entries: usize) -> usize {
        self.bin_bytes(entries * self.group, entries)
    }

    /// An upper bound of the slots of rows with so many entries in all, of which none has more than
    /// `longest`.
    ///
    /// A tile has less than a group of empty slots, and a bin ends where the next row does not fit.
    /// So for `b` bins and `p` panels: `slots ≤ nnz + b p (group − 1)` and
    /// `(b − 1) (room − row) ≤ bytes`.
    pub(super) fn most_slots(self, columns: usize, nnz: usize, longest: usize) -> u64 {
        let single = (nnz * self.group) as u64;
        let padding = (self.panels(columns) * (self.group - 1)) as f64;
        let filled = self.room.saturating_sub(self.row_bytes(longest)) as f64;
        let of_bin = padding * self.sum as f64 + (PLACES_AT_ONCE * size_of::<u16>()) as f64;
        let share = 1.0 - of_bin / filled;
        if share <= 0.0 || filled <= 0.0 {
            return single;
        }
        let bytes = (nnz * (self.sum + size_of::<u16>())) as f64;
        let bins = libm::ceil((1.0 + bytes / filled) / share);
        single.min(nnz as u64 + libm::ceil(bins * padding) as u64)
    }

    /// Bins and slots of such rows, as they are expected where columns are spread evenly.
    pub(super) fn expected(self, columns: usize, nnz: usize) -> (f64, f64) {
        let places = (nnz * size_of::<u16>()) as f64;
        let bins_of =
            |slots: f64| libm::ceil((slots * self.sum as f64 + places) / self.room as f64).max(1.0);
        let slots_in = |bins: f64| {
            let tiles = bins * self.panels(columns).max(1) as f64;
            let filled = tiles * (1.0 - libm::exp(-(nnz as f64) / tiles));
            nnz as f64 + filled * (self.group - 1) as f64 / 2.0
        };
        // Padding takes room, and so more bins: with a few rounds hardly any more.
        let bins = (0..3).fold(bins_of(nnz as f64), |bins, _| bins_of(slots_in(bins)));
        (bins, slots_in(bins))
    }

    /// Segments of so many slots that are spread evenly over the panels.
    pub(super) fn segments(self, columns: usize, slots: f64) -> f64 {
        let panels = self.panels(columns).max(1) as f64;
        panels * libm::ceil(slots / panels / self.segment(slots as u64) as f64)
    }

    /// Slots of a segment, about.
    fn segment(self, slots: u64) -> u64 {
        slots.div_ceil(SEGMENTS).max(self.panel as u64)
    }
}

/// The entries that a panel and a bin share.
pub(super) struct Tile {
    pub(super) panel: u32,
    /// The first of its groups, counted within the panel.
    pub(super) in_panel: u32,
    /// The first of its groups, counted over all products.
    pub(super) of_products: u32,
    pub(super) entries: u32,
}

/// Rows whose products a block holds.
pub(super) struct Bin {
    /// Position of the first.
    pub(super) row: usize,
    /// The first of its groups of products.
    pub(super) group: usize,
    /// The first of its places, in units of [`PLACES_AT_ONCE`].
    pub(super) place: usize,
    /// The first of its tiles, which are in the order of their panels.
    pub(super) tile: usize,
}

/// Rows cut into bins, and their entries into tiles.
pub(super) struct Cut {
    /// The bins, and the end.
    pub(super) bins: Vec<Bin>,
    pub(super) tiles: Vec<Tile>,
    /// Groups of each panel.
    pub(super) groups: Vec<usize>,
}

/// Entries of the bin that is being filled, by panels.
struct Filling {
    sizes: Sizes,
    entries_of: Vec<u32>,
    panels: Vec<u32>,
    slots: usize,
    entries: usize,
}

impl Filling {
    /// Adds a row if there is room for it, or nothing is there yet.
    fn takes(&mut self, columns: &[u32]) -> bool {
        let (was_slots, was_panels) = (self.slots, self.panels.len());
        for &column in columns {
            let panel = column as usize / self.sizes.panel;
            if self.entries_of[panel] == 0 {
                self.panels.push(panel as u32);
            }
            if (self.entries_of[panel] as usize).is_multiple_of(self.sizes.group) {
                self.slots += self.sizes.group;
            }
            self.entries_of[panel] += 1;
        }
        let entries = self.entries + columns.len();
        if self.entries == 0 || self.sizes.bin_bytes(self.slots, entries) <= self.sizes.room {
            self.entries = entries;
            return true;
        }
        for &column in columns {
            self.entries_of[column as usize / self.sizes.panel] -= 1;
        }
        self.slots = was_slots;
        self.panels.truncate(was_panels);
        false
    }

    /// Ends the bin, whose tiles it appends.
    fn end(&mut self, cut: &mut Cut, row: usize) {
        self.panels.sort_unstable();
        let Bin { group, place, .. } = *cut.bins.last().unwrap_or(&FIRST);
        let mut group = group;
        for panel in self.panels.drain(..) {
            let entries = core::mem::take(&mut self.entries_of[panel as usize]);
            let in_panel = &mut cut.groups[panel as usize];
            let (of_panel, of_products) = (*in_panel as u32, group as u32);
            cut.tiles.push(Tile { panel, in_panel: of_panel, of_products, entries });
            let groups = (entries as usize).div_ceil(self.sizes.group);
            *in_panel += groups;
            group += groups;
        }
        let place = place + self.entries.div_ceil(PLACES_AT_ONCE);
        cut.bins.push(Bin { row, group, place, tile: cut.tiles.len() });
        (self.slots, self.entries) = (0, 0);
    }
}

const FIRST: Bin = Bin { row: 0, group: 0, place: 0, tile: 0 };

impl Cut {
    pub(super) fn new<T: Scalar>(
        sizes: Sizes,
        source: &PartSource<'_, T>,
    ) -> Result<Self, PackError> {
        let panels = sizes.panels(source.matrix.cols());
        let mut cut = Self { bins: vec![FIRST], tiles: Vec::new(), groups: vec![0; panels] };
        let entries_of = vec![0; panels];
        let mut filling = Filling { sizes, entries_of, panels: vec![], slots: 0, entries: 0 };
        let rows = source.row_count();
        for position in 0..rows {
            let (columns, _) = source.row(position);
            let bytes = sizes.row_bytes(columns.len());
            if bytes > sizes.room {
                return Err(PackError::SharedMemory { bytes, most: sizes.room });
            }
            if !filling.takes(columns) {
                filling.end(&mut cut, position);
                filling.takes(columns);
            }
        }
        if rows > 0 {
            filling.end(&mut cut, rows);
        }
        let slots = cut.slots(sizes);
        MAX_PADDING.check("binned", slots, source.nnz())?;
        check_slots("binned", slots)?;
        Ok(cut)
    }

    pub(super) fn slots(&self, sizes: Sizes) -> u64 {
        self.bins.last().map_or(0, |end| (end.group * sizes.group) as u64)
    }

    /// The first group of each panel.
    pub(super) fn first_groups(&self) -> Vec<usize> {
        let starts = self.groups.iter().scan(0, |next, groups| {
            *next += groups;
            Some(*next - groups)
        });
        starts.collect()
    }

    /// `segments`: of each its panel, its first four and the end, in the order of the panels.
    pub(super) fn segments(&self, sizes: Sizes) -> Vec<u32> {
        let fours = sizes.group / FOUR as usize;
        let of_segment = sizes.segment(self.slots(sizes)) as usize / sizes.group;
        let mut segments = Vec::new();
        for ((panel, first), &groups) in
            self.first_groups().into_iter().enumerate().zip(&self.groups)
        {
            let count = groups.div_ceil(of_segment.max(1));
            let at = |n: usize| ((first + groups * n / count) * fours) as u32;
            for n in 0..count {
                segments.extend([panel as u32, at(n), at(n + 1)]);
            }
        }
        segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Dtype, Operation};

    const F32: Task = Task::new(Operation::SpMV, Dtype::F32);

    #[test]
    fn a_panel_of_x_and_the_products_of_a_bin_fill_the_shared_memory() {
        let sizes = Sizes::new(F32, 7);
        assert_eq!((sizes.panel, sizes.group, sizes.room), (57_344, 8, 229_376));
        // Column indices within a panel and places within a bin have 16 bits.
        assert!(sizes.panel <= 1 << 16);
        let sizes = Sizes::new(Task::new(Operation::SpMV, Dtype::F64), 7);
        assert_eq!((sizes.panel, sizes.group, sizes.room), (28_672, 4, 229_376));
    }

    #[test]
    fn the_bound_of_slots_holds_for_the_expected_ones_and_is_near() {
        for (columns, nnz, longest) in [(20_000_000, 100_000_000, 5), (100_000_000, 50_000_000, 7)]
        {
            let sizes = Sizes::new(F32, 7);
            let (most, expected) =
                (sizes.most_slots(columns, nnz, longest), sizes.expected(columns, nnz).1);
            assert!(expected <= most as f64 && most as f64 <= 1.5 * expected, "{most} {expected}");
        }
        // Rows that fill a bin: every entry may stand alone.
        assert_eq!(Sizes::new(F32, 1).most_slots(1_000_000, 5_000, 900), 40_000);
    }
}
