//! In which regime of the L2 cache kernels are to be fast.

use clap::{Args, ValueEnum};
use sparserl_core::outcome::Objective;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RegimeArgs {
    /// Times that decide: with an empty L2 cache, those of launches in a chain, as a solver has
    /// them, or both alike
    #[arg(long, value_enum, default_value_t = ObjectiveArg::Both)]
    regime: ObjectiveArg,
}

impl RegimeArgs {
    pub(crate) fn objective(self) -> Objective {
        match self.regime {
            ObjectiveArg::Cold => Objective::Cold,
            ObjectiveArg::Warm => Objective::Warm,
            ObjectiveArg::Both => Objective::Both,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ObjectiveArg {
    /// One launch after the L2 cache was overwritten
    Cold,
    /// Launches in a chain
    Warm,
    /// The geometric mean of the two
    Both,
}
