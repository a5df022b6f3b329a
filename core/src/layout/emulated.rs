use serde::Serialize;

/// What one launch of a kernel did, counted without a GPU, and what it was about.
///
/// These are plain numbers: whatever runs or models a kernel may give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulatedCost {
    /// Entries of the matrix that it ran on, each counted once for each column of the dense
    /// operand.
    pub products: u64,
    /// Warps of the grid.
    pub warps: u64,
    /// Instructions, each counted once for each group of lanes of a warp that executes it together.
    pub warp_instructions: u64,
    /// Instructions of the warp that executes most, counted in the same way.
    pub longest_warp: u64,
    /// Reads of global memory by the warp that has most of them.
    pub longest_warp_loads: u64,
    /// Reads of global memory, by warps.
    pub loads: u64,
    /// 32-byte sectors that they touch.
    pub load_sectors: u64,
    /// 32-byte sectors that are written.
    pub store_sectors: u64,
    /// Atomics on global memory, by threads.
    pub atomics: u64,
    /// Cycles of shared memory: its accesses by warps and their bank conflicts.
    pub shared_cycles: u64,
    /// Barriers at which a warp waited.
    pub barrier_waits: u64,
    /// Branches at which the lanes of a warp went different ways.
    pub divergent_branches: u64,
}

/// What an [`EmulatedCost`] says of a kernel whatever the size of the matrix: inputs of a cost
/// model.
///
/// Those of a sample of the rows stand for those of the whole, except for the longest warp, which
/// a sample that shortens long rows makes shorter. All are finite and at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmulatedFeatures {
    /// Instructions of warps for each product of an entry.
    pub warp_instructions: f64,
    /// Reads of global memory, by warps, for each product.
    pub loads: f64,
    /// 32-byte sectors read for each product.
    pub load_sectors: f64,
    /// 32-byte sectors written for each product.
    pub store_sectors: f64,
    /// Atomics on global memory for each product.
    pub atomics: f64,
    /// Cycles of shared memory for each product.
    pub shared_cycles: f64,
    /// Barriers at which a warp waited, for each product.
    pub barrier_waits: f64,
    /// Divergent branches for each product.
    pub divergent_branches: f64,
    /// Instructions of the longest warp: the critical path, not divided by anything.
    pub longest_warp: f64,
    /// Reads of global memory on it, not divided by anything.
    pub longest_warp_loads: f64,
    /// Instructions of the longest warp over those of the mean warp: 1 where all have the same
    /// work.
    pub imbalance: f64,
}

// Fitted to the times of 452 programs on 39 matrices of up to 400,000 entries, in single precision,
// on an H200 with a cold L2, 2026-11-21; counts were of samples of the rows where the whole was
// more than 100,000 products. They rank programs for a matrix against each other, and are no claim
// about a GPU.
const LAUNCH: f64 = 2.63e-6;
const SECONDS_PER_SECTOR: f64 = 1.72e-12;
const SECONDS_PER_WARP_INSTRUCTION: f64 = 3.03e-13;
const SECONDS_ON_LONGEST_WARP: f64 = 3.16e-9;
const SHARE_OF_PREDICTION: f64 = 0.245;

impl EmulatedCost {
    /// Predicted seconds of a launch, for ranking only: `products` are those of the whole matrix,
    /// which the counts are scaled to, and `predicted` are the seconds of the static
    /// [`Cost`](super::Cost) on it.
    #[must_use]
    pub fn seconds(&self, products: u64, predicted: f64) -> f64 {
        let scale = products as f64 / self.products.max(1) as f64;
        let sectors = (self.load_sectors + self.store_sectors) as f64;
        let instructions = self.warp_instructions as f64;
        // The longest warp is no longer where there are more of them.
        LAUNCH
            + scale * (sectors * SECONDS_PER_SECTOR + instructions * SECONDS_PER_WARP_INSTRUCTION)
            + self.longest_warp as f64 * SECONDS_ON_LONGEST_WARP
            + predicted * SHARE_OF_PREDICTION
    }

    /// The counts by product, and the longest warp. Without entries counts are taken as of one.
    #[must_use]
    pub fn features(&self) -> EmulatedFeatures {
        let products = self.products.max(1) as f64;
        let each = |count: u64| count as f64 / products;
        let mean = self.warp_instructions as f64 / self.warps.max(1) as f64;
        EmulatedFeatures {
            warp_instructions: each(self.warp_instructions),
            loads: each(self.loads),
            load_sectors: each(self.load_sectors),
            store_sectors: each(self.store_sectors),
            atomics: each(self.atomics),
            shared_cycles: each(self.shared_cycles),
            barrier_waits: each(self.barrier_waits),
            divergent_branches: each(self.divergent_branches),
            longest_warp: self.longest_warp as f64,
            longest_warp_loads: self.longest_warp_loads as f64,
            imbalance: if mean > 0.0 { self.longest_warp as f64 / mean } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_features_of_the_whole() {
        let whole = EmulatedCost {
            products: 4_000,
            warps: 10,
            warp_instructions: 20_000,
            longest_warp: 3_000,
            longest_warp_loads: 40,
            loads: 800,
            load_sectors: 6_000,
            ..EmulatedCost::default()
        };
        let half = EmulatedCost {
            products: 2_000,
            warps: 5,
            warp_instructions: 10_000,
            loads: 400,
            load_sectors: 3_000,
            ..whole
        };
        let features = whole.features();
        assert_eq!((features.warp_instructions, features.loads), (5.0, 0.2));
        assert_eq!((features.load_sectors, features.imbalance), (1.5, 1.5));
        assert_eq!((features.longest_warp, features.longest_warp_loads), (3_000.0, 40.0));
        assert_eq!(half.features(), features);
    }

    #[test]
    fn seconds_grow_with_the_matrix_and_the_longest_warp() {
        let cost = EmulatedCost {
            products: 1_000,
            warp_instructions: 1_000_000,
            longest_warp: 1_000,
            load_sectors: 1_000_000,
            ..EmulatedCost::default()
        };
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(near(cost.seconds(1_000, 0.0), 2.63e-6 + 1.72e-6 + 0.303e-6 + 3.16e-6));
        assert!(near(cost.seconds(2_000, 0.0) - cost.seconds(1_000, 0.0), 1.72e-6 + 0.303e-6));
        assert!(near(cost.seconds(1_000, 1e-6) - cost.seconds(1_000, 0.0), 0.245e-6));
        let longer = EmulatedCost { longest_warp: 2_000, ..cost };
        assert!(near(longer.seconds(2_000, 0.0) - cost.seconds(2_000, 0.0), 3.16e-6));
    }

    #[test]
    fn nothing_counted_is_no_division_by_zero() {
        let EmulatedFeatures { warp_instructions, imbalance, .. } =
            EmulatedCost::default().features();
        assert_eq!((warp_instructions, imbalance), (0.0, 0.0));
    }
}
