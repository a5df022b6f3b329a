//! Which launches a kernel is judged by, and what each of them may cost.

use sparserl_core::matrix::Scalar;

use super::{FEW_WARPS, Trial, is_short, warps};
use crate::candidate::executable::Parameter;
use crate::emulated::EmulationOptions;
use crate::judge::Check;

/// Instructions of a warp for an entry, at most, where one warp does all of the work.
const INSTRUCTIONS_OF_AN_ENTRY: u64 = 60;
/// Instructions that a warp may execute however small the matrix is.
const LEAST_BUDGET: u64 = 10_000_000;
/// And however large it is, unless the caller says more: a minute or so. Who is given up there may
/// have gone on to the end.
const MOST_BUDGET: u64 = 200_000_000;

/// Launches, one after the other, of a kernel that may keep something from each to the next.
const LAUNCHES_OF_STATE: usize = 12;

impl<A: Scalar, D: Scalar> Trial<'_, A, D> {
    /// What is asked for, or the least of it where a launch of a kernel from anywhere takes long.
    pub(super) fn affordable(&self, options: &EmulationOptions) -> EmulationOptions {
        if self.is_long() {
            EmulationOptions { seeds: 1, checks: 2, ..*options }
        } else {
            options.clone()
        }
    }

    /// In how many orders threads take turns.
    pub(super) fn orders(&self, options: &EmulationOptions) -> u64 {
        // What threads tell each other, or draw, goes wrong in few orders.
        let tells = self.kernel.has_strong_reads() || self.kernel.has_drawn_values();
        let times = if tells && self.is_short_foreign() { 2 } else { 1 };
        options.seeds.max(1).saturating_mul(times).into()
    }

    /// The checks that are run in an order of threads; order 0 is the plain one.
    pub(super) fn checks(
        &self,
        order: u64,
        options: &EmulationOptions,
    ) -> impl Iterator<Item = Check> + use<A, D> {
        // What only the first launch does wrong may need an output that is added to.
        let first = if self.is_foreign() { order as usize } else { 0 };
        let launches = options.checks.max(1) as usize;
        let keeps = order == 0 && self.is_short_foreign() && self.keeps_variables();
        let launches = match launches {
            2.. if keeps => launches.max(LAUNCHES_OF_STATE),
            _ => launches,
        };
        // Generated kernels leave out what they pad with, which a thorough check goes into.
        let thorough = self.is_foreign() || options.checks as usize >= Check::of_all().count();
        let goes_on = thorough && order == 0 && !self.is_long();
        let takes_factors = self.takes(Parameter::Alpha) || self.takes(Parameter::Beta);
        let besides = Check::of_emulators(self.is_foreign(), takes_factors);
        let checks = Check::of_all().cycle().skip(first).take(launches);
        checks.chain(besides.filter(move |_| goes_on))
    }

    /// Instructions that a warp may execute in a launch.
    pub(super) fn budget(&self, options: &EmulationOptions) -> u64 {
        let implied = self.implied_instructions();
        options.budget.unwrap_or(implied.clamp(LEAST_BUDGET, MOST_BUDGET))
    }

    /// Instructions that a warp executes at most if a single one does all of the work.
    pub(super) fn implied_instructions(&self) -> u64 {
        let (rows, columns) = (self.matrix.rows() as u64, self.matrix.cols() as u64);
        let work = (self.matrix.nnz() as u64 + rows + columns).saturating_mul(self.width as u64);
        work.saturating_mul(INSTRUCTIONS_OF_AN_ENTRY)
    }

    /// Whether it is a kernel from anywhere whose launches take long.
    fn is_long(&self) -> bool {
        self.is_foreign() && !is_short(self.prepared)
    }

    /// Whether it is a kernel from anywhere of which there may be more launches than of others.
    fn is_short_foreign(&self) -> bool {
        self.is_foreign() && warps(&self.prepared.launch.geometry) <= FEW_WARPS
    }
}
