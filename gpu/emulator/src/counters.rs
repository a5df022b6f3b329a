//! What a launch costs, counted.

use serde::{Deserialize, Serialize};

/// Counts of one launch, over all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// PTX instructions, each counted once for each thread that executes it.
    pub instructions: u64,
    /// PTX instructions, each counted once for each group of lanes of a warp that executes it together.
    pub warp_instructions: u64,
    /// Branches at which the lanes of a warp went different ways.
    pub divergent_branches: u64,
    /// Instructions of a warp that read global memory.
    pub global_loads: u64,
    /// 32-byte sectors that they touch, each counted once for each instruction of a warp.
    pub global_load_sectors: u64,
    /// Instructions of a warp that write global memory.
    pub global_stores: u64,
    /// 32-byte sectors that they touch.
    pub global_store_sectors: u64,
    /// Atomics on global memory, once for each thread.
    pub global_atomics: u64,
    /// Instructions of a warp that read or write shared memory.
    pub shared_accesses: u64,
    /// Cycles that shared memory needs for them beyond one (for 64-bit elements two, for 128 bits four) each, because
    /// lanes want different words of the same bank.
    pub bank_conflicts: u64,
    /// Barriers at which a warp waited.
    pub barrier_waits: u64,
}
