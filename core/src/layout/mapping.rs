use crate::syntax::Lanes;
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
}

impl Mapping {
    /// The mapping of a task whose rows are shared by `lanes`, `vector` columns to a thread.
    #[must_use]
    pub fn new(task: Task, lanes: Lanes, vector: u32, block: u32) -> Self {
        let room = match lanes {
            Lanes::Threads(n) => 32 / n.clamp(1, 32),
            Lanes::Block => 32,
        };
        let packs = task.operation.columns().div_ceil(vector.max(1));
        let stride = packs.min(room).next_power_of_two();
        let lanes = match lanes {
            Lanes::Threads(n) => n,
            Lanes::Block => block / stride,
        };
        Self { lanes, stride, vector, column_tiles: packs.div_ceil(stride).max(1) }
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
    use crate::task::{Dtype, Operation};

    #[test]
    fn columns_of_any_number_are_covered() {
        for columns in [1, 2, 3, 8, 33, 128, 1000, u32::MAX] {
            let operation = Operation::SpMM { columns: columns.try_into().unwrap() };
            let task = Task::new(operation, Dtype::F32);
            for lanes in [Lanes::Threads(1), Lanes::Threads(4), Lanes::Threads(32), Lanes::Block] {
                let mapping = Mapping::new(task, lanes, 1, 256);
                let covered = u64::from(mapping.column_tiles) * u64::from(mapping.stride);
                assert!(covered >= u64::from(columns), "{columns}: {mapping:?}");
                assert!(mapping.stride.is_power_of_two() && mapping.stride <= 32);
            }
        }
    }
}
