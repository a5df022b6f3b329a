//! What a launch costs, counted.

use serde::{Deserialize, Serialize};

/// Counts of one launch, over all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Warps of all blocks.
    pub warps: u64,
    /// PTX instructions, each counted once for each thread that executes it.
    pub instructions: u64,
    /// PTX instructions, each counted once for each group of lanes of a warp that executes it
    /// together.
    pub warp_instructions: u64,
    /// PTX instructions of the warp that executes most, counted in the same way: the length of the
    /// critical path.
    pub longest_warp: u64,
    /// Instructions that read global memory, of the warp that executes most of them.
    pub longest_warp_loads: u64,
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
    /// Cycles that shared memory needs for them beyond one (for 64-bit elements two, for 128 bits
    /// four) each, because lanes want different words of the same bank.
    pub bank_conflicts: u64,
    /// Barriers at which a warp waited.
    pub barrier_waits: u64,
}

impl Counters {
    /// Adds those of another block or launch.
    pub fn add(&mut self, other: &Self) {
        self.warps += other.warps;
        self.instructions += other.instructions;
        self.warp_instructions += other.warp_instructions;
        self.longest_warp = self.longest_warp.max(other.longest_warp);
        self.longest_warp_loads = self.longest_warp_loads.max(other.longest_warp_loads);
        self.divergent_branches += other.divergent_branches;
        self.global_loads += other.global_loads;
        self.global_load_sectors += other.global_load_sectors;
        self.global_stores += other.global_stores;
        self.global_store_sectors += other.global_store_sectors;
        self.global_atomics += other.global_atomics;
        self.shared_accesses += other.shared_accesses;
        self.bank_conflicts += other.bank_conflicts;
        self.barrier_waits += other.barrier_waits;
    }
}
