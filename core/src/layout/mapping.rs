use crate::syntax::{Access, Lanes, Panel};
use crate::task::Task;

/// How the threads of a warp spread over rows, entries and dense columns.
///
/// A thread belongs to column lane `t % stride`; `lanes` groups of `stride` threads share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Threads that share the entries of a row.
    pub lanes: u32,
    /// Threads side by side over columns of the dense operands.
    pub stride: u32,
    /// Columns per thread.
    pub vector: u32,
    /// Passes over the columns, each by blocks of its own.
    pub column_tiles: u32,
    /// Column panels, each of as many column tiles: the blocks of one come before those of the
    /// next, and in a panel the tiles of the same rows are neighbours.
    pub panels: u32,
}

/// Columns of a panel where the program says nothing and they divide into such, or those of a whole
/// warp, where these are more. Wider rows of B would have to stay in the L2 cache for longer: on an
/// H100, 512 columns at once took up to twice the time.
pub(crate) const WIDEST_PANEL: u32 = 128;

/// Columns of each panel of a program that says nothing of panels.
fn widest_panel(columns: u32, vector: u32) -> u32 {
    let widths = [WIDEST_PANEL.max(32 * vector), WIDEST_PANEL];
    widths.into_iter().find(|&width| columns.is_multiple_of(width)).unwrap_or(columns)
}

impl Mapping {
    /// The mapping of a task whose rows are shared by `lanes`, and whose columns by what `access`
    /// says of them.
    #[must_use]
    pub fn new(task: Task, lanes: Lanes, access: Access, block: u32) -> Self {
        let vector = access.vector;
        let room = match lanes {
            Lanes::Threads(n) => 32 / n.clamp(1, 32),
            Lanes::Block => 32,
        };
        let columns = task.operation.columns();
        let panel = access.panel.map_or_else(|| widest_panel(columns, vector), Panel::columns);
        let (packs, panels) = (panel.div_ceil(vector.max(1)), columns / panel);
        let stride = packs.min(room).next_power_of_two();
        let lanes = match lanes {
            Lanes::Threads(n) => n,
            Lanes::Block => block / stride,
        };
        let tiles = packs.div_ceil(stride).max(1);
        Self { lanes, stride, vector, column_tiles: tiles * panels, panels }
    }

    /// Column tiles of each panel.
    #[must_use]
    pub fn tiles_of_panel(&self) -> u32 {
        self.column_tiles / self.panels
    }

    /// Blocks for `groups` groups of `lanes × stride` threads, over all column tiles.
    #[must_use]
    pub fn blocks(&self, groups: u64, block: u32) -> u64 {
        let threads = groups * u64::from(self.lanes) * u64::from(self.stride);
        threads.div_ceil(u64::from(block)) * u64::from(self.column_tiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Cache, Panel, ValueCoding};
    use crate::task::{Dtype, Operation};

    fn mapping(columns: u32, lanes: Lanes, panel: Option<Panel>, vector: u32) -> Mapping {
        let operation = Operation::SpMM { columns: columns.try_into().unwrap() };
        let access = Access { values: ValueCoding::Plain, cache: Cache::Cached, panel, vector };
        Mapping::new(Task::new(operation, Dtype::F32), lanes, access, 256)
    }

    #[test]
    fn columns_of_any_number_are_covered() {
        for columns in [1, 2, 3, 8, 33, 128, 1000, 1024, u32::MAX] {
            for lanes in [Lanes::Threads(1), Lanes::Threads(4), Lanes::Threads(32), Lanes::Block] {
                let mapping = mapping(columns, lanes, None, 1);
                let covered = u64::from(mapping.column_tiles) * u64::from(mapping.stride);
                assert!(covered >= u64::from(columns), "{columns}: {mapping:?}");
                assert!(mapping.stride.is_power_of_two() && mapping.stride <= 32);
            }
        }
    }

    #[test]
    fn panels_cover_all_columns_once_and_have_as_many_tiles_each() {
        for (columns, panel) in [(128, 64), (128, 32), (192, 64), (512, 32)] {
            for lanes in [Lanes::Threads(1), Lanes::Threads(2), Lanes::Threads(16), Lanes::Block] {
                for vector in [1, 2, 4] {
                    let mapping = mapping(columns, lanes, Panel::of(panel), vector);
                    assert_eq!(mapping.panels, columns / panel);
                    let tile = mapping.stride * vector;
                    assert_eq!(mapping.tiles_of_panel() * tile, panel, "{mapping:?}");
                }
            }
        }
        assert_eq!(mapping(512, Lanes::Threads(1), None, 4).panels, 4);
        assert_eq!(mapping(128, Lanes::Threads(8), None, 4).panels, 1);
        assert_eq!(mapping(160, Lanes::Threads(1), None, 4).panels, 1);
        // Of 8 columns a thread, a warp has 256.
        assert_eq!(mapping(512, Lanes::Threads(1), None, 8).panels, 2);
        assert_eq!(mapping(384, Lanes::Threads(1), None, 8).panels, 3);
    }
}
