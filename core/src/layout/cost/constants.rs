use serde::{Deserialize, Serialize};

use crate::target::Target;

/// Declares [`CostConstants`] by its fields, and their order in an array.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the terms of a [`PartCost`](super::PartCost) cost on a GPU: each is finite and
        /// above 0.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub struct CostConstants { $($(#[$doc])* pub $name: f64,)* }

        impl CostConstants {
            /// Names of the constants, in the order of their declaration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// How many there are.
            pub const COUNT: usize = Self::NAMES.len();

            /// The constants, in the order of [`CostConstants::NAMES`].
            #[must_use]
            pub fn to_array(&self) -> [f64; Self::COUNT] {
                [$(self.$name,)*]
            }

            /// The inverse of [`CostConstants::to_array`].
            #[must_use]
            pub fn from_array(constants: [f64; Self::COUNT]) -> Self {
                let [$($name,)*] = constants;
                Self { $($name,)* }
            }
        }
    };
}

constants! {
    /// Share of the data sheet's bandwidth at which the matrix comes in; above 1 where it is found
    /// in a cache.
    attained_bandwidth,
    /// Warp-wide memory transactions a second of the load units of an H200; of another GPU, in
    /// proportion to its multiprocessors.
    transactions_per_second,
    /// Warps of a multiprocessor that keep its load units busy.
    saturating_warps,
    /// Seconds of a critical step: a trip to memory.
    seconds_per_step,
    /// Seconds that a list of rows delays a part.
    seconds_of_list,
    /// Seconds that a further part costs, for its branch and its partly filled last blocks.
    seconds_of_split,
    /// Seconds of [`StartUp::Rows`](super::StartUp::Rows).
    start_up_rows,
    /// Seconds of [`StartUp::BlockRows`](super::StartUp::BlockRows).
    start_up_block_rows,
    /// Seconds of [`StartUp::Slices`](super::StartUp::Slices).
    start_up_slices,
    /// Seconds of [`StartUp::Diagonals`](super::StartUp::Diagonals).
    start_up_diagonals,
    /// Seconds of [`StartUp::Blocks`](super::StartUp::Blocks).
    start_up_blocks,
    /// Seconds of [`StartUp::StagedTiles`](super::StartUp::StagedTiles).
    start_up_staged_tiles,
    /// Seconds of [`StartUp::Tiles`](super::StartUp::Tiles).
    start_up_tiles,
    /// Seconds of [`StartUp::Chunks`](super::StartUp::Chunks).
    start_up_chunks,
    /// Seconds of [`StartUp::PaddedRows`](super::StartUp::PaddedRows).
    start_up_padded_rows,
}

impl CostConstants {
    /// What `sparserl-trainer fit-cost trainer/recordings/h200-2026-11-22` found on 2026-11-22, to
    /// three digits: fitted to the times of 12,471 programs on 54 generated matrices, cold and
    /// warm, on an H200. Other GPUs are taken to have the same share of their bandwidth, and load
    /// units that are as fast on each multiprocessor. They rank programs against each other, and
    /// the seconds are no claim.
    ///
    /// The program with the least prediction has this share of the speed of the fastest measured
    /// one, in geometric mean, with constants that were fitted without the matrix's family, and in
    /// brackets with those that the fit began with (of 1,900 programs on other matrices, cold only,
    /// which were not kept):
    ///
    /// | | SpMV | SpMM, 32 columns | SpMM, 128 columns | all |
    /// |---|---|---|---|---|
    /// | cold | 0.940 (0.937) | 0.927 (0.889) | 0.929 (0.894) | 0.932 (0.906) |
    /// | warm | 0.913 (0.922) | 0.900 (0.822) | 0.905 (0.857) | 0.906 (0.866) |
    ///
    /// On the 999 matrices of `trainer/recordings/h200-2026-11-22-five-tasks`, none of which was
    /// fitted to, it is cold 0.952 (SpMV), 0.950, 0.935 and 0.916 (SpMM with 8, 32 and 128
    /// columns); a fit to them changes none of these by more than 0.001.
    ///
    /// How the fit weighs programs and how far it trusts its beginning were chosen by these scores.
    pub const FITTED: Self = Self {
        attained_bandwidth: 0.729,
        transactions_per_second: 1.24e11,
        saturating_warps: 3.81,
        seconds_per_step: 0.402e-6,
        seconds_of_list: 0.245e-6,
        seconds_of_split: 0.162e-6,
        start_up_rows: 4.51e-6,
        start_up_block_rows: 3.81e-6,
        start_up_slices: 4.6e-6,
        start_up_diagonals: 4.16e-6,
        start_up_blocks: 4.7e-6,
        start_up_staged_tiles: 5.56e-6,
        start_up_tiles: 8.0e-6,
        start_up_chunks: 5.2e-6,
        start_up_padded_rows: 4.35e-6,
    };

    /// Seconds in which memory moves so many bytes.
    #[must_use]
    pub fn transfer(&self, bytes: u64, target: &Target) -> f64 {
        bytes as f64 / (target.bandwidth.max(1) as f64 * self.attained_bandwidth)
    }
}
