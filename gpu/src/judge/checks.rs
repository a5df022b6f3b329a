//! What kernels are checked for, whoever runs them.
//!
//! A kernel is launched several times. What its inputs are and what its output holds before
//! differs:
//!
//! | check | input | output before | shows |
//! |---|---|---|---|
//! | fresh | random | not written | elements that are not written, or made from old ones |
//! | added | random | random, with α and β random | β, and reading the output |
//! | thinned | random, mostly zero | not written | entries left out of long rows, which the error bound would cover |
//! | in place | new at the same address | an older result | results kept by pointer, work skipped because there is a result |
//! | patched | that of the check before | its result, but for scattered elements | work skipped because a part of the result is right |
//! | subnormal | random, too small to be normal | not written | numbers taken for 0 |
//! | displaced | random, 16 bytes behind where an allocation begins, as the output | not written | loads that operands are not aligned to |
//! | not a number | random, NaN in rows that a row of the matrix does not name | not written | products with entries that are not there |
//! | infinite | the same with infinity | not written | the same, of kernels that take NaN for something else |
//! | zero | 0 | not written | elements that are not written where a sum is 0 |
//! | accumulated | random | random, with α = 1, β = 1 or both | shortcuts for these factors |
//! | scaled | random | random, with α = 0 and β random | the same |
//!
//! α = 1 and β = 0, as when timed, except that α is random where something is added or thinned, and
//! β where something is added; the last two rows are only for kernels that take factors. What has
//! to stay is the same in all of them: the input, the arrays of the matrix, the variables that the
//! machine code declares, and everything outside of the buffers that the kernel was given. Counters
//! are zero after each launch.
//!
//! The first two come behind a kernel that writes the operands late, for kernels that begin before
//! those before them have ended: one that does not wait computes with other numbers. The first is
//! given what it is given when timed, so that none can wait in the checks alone.
//!
//! Each says [who runs it](Judges). An emulator sees every read of an element that was not written,
//! so the first three show it all that there is to show; it runs the others of a device's when it
//! is asked for more.

/// A check: what a launch is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// How messages call it, after "the result is wrong".
    pub(crate) name: &'static str,
    pub(crate) input: Input,
    pub(crate) before: Before,
    /// α, for kernels that take one; for others it is 1.
    pub(crate) alpha: Factor,
    /// β, for kernels that take one; for others it is 0.
    pub(crate) beta: Factor,
    pub(crate) operands: Placement,
    /// Whether the kernel before it ends late.
    pub(crate) behind_late: bool,
    pub(crate) judges: Judges,
}

/// Who runs a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judges {
    /// Devices, and the emulator in each order of threads.
    All,
    /// The emulator alone, in its first order: of kernels from anywhere, and of our own where it
    /// runs all that a device runs.
    Emulator,
    /// The same, of kernels from anywhere alone.
    EmulatorOfForeign,
}

/// What the dense input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// New random numbers.
    Fresh,
    /// New random numbers, most of them replaced by zero.
    Thinned,
    /// Nothing but zeros.
    Zero,
    /// New random numbers that are too small to be normal, which are numbers all the same.
    Subnormal,
    /// New random numbers, but NaN in rows that a row of the matrix does not name, and which are
    /// thus nothing to it.
    NotANumber,
    /// The same with infinity.
    Infinite,
    /// What it held in the check before.
    Kept,
}

impl Input {
    /// What rows hold that a row of the matrix does not name, where that is no finite number.
    pub(crate) fn strange(self) -> Option<f64> {
        match self {
            Self::NotANumber => Some(f64::NAN),
            Self::Infinite => Some(f64::INFINITY),
            Self::Fresh | Self::Thinned | Self::Zero | Self::Subnormal | Self::Kept => None,
        }
    }
}

/// A factor of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Factor {
    Zero,
    One,
    /// Of either sign, from 0.5 to 2 in size.
    Random,
}

impl Factor {
    fn draw(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::One => 1.0,
            Self::Random => {
                let magnitude = 0.5 + 1.5 * random.f64();
                if random.bool() { magnitude } else { -magnitude }
            }
        }
    }
}

/// What the dense output holds before a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing that may be read: NaN on a device.
    Unwritten,
    /// Random numbers.
    Random,
    /// What an earlier launch left.
    OldResult,
    /// The right result, but for scattered elements.
    Patched,
}

/// Which of two pairs of operands is taken, so that a launch finds its operands elsewhere than the
/// one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Here,
    There,
    /// [`DISPLACEMENT`] behind where an allocation begins.
    Displaced,
}

/// Bytes that operands lie behind the begin of an allocation, as a part of a longer vector does:
/// they are aligned to 16 bytes, which is what our own programs ask of them, and to no more.
pub(crate) const DISPLACEMENT: u64 = 16;

/// What the checks of emulators alone share: they stand for themselves.
const ALONE: Check = Check {
    name: "",
    input: Input::Fresh,
    before: Before::Unwritten,
    alpha: Factor::One,
    beta: Factor::Zero,
    operands: Placement::Here,
    behind_late: false,
    judges: Judges::Emulator,
};

impl Check {
    /// All of them, in the order that they are run in.
    const ALL: [Self; 14] = [
        Self {
            name: "on fresh inputs",
            input: Input::Fresh,
            before: Before::Unwritten,
            alpha: Factor::One,
            beta: Factor::Zero,
            operands: Placement::Here,
            behind_late: true,
            judges: Judges::All,
        },
        Self {
            name: "adding to an output",
            input: Input::Fresh,
            before: Before::Random,
            alpha: Factor::Random,
            beta: Factor::Random,
            operands: Placement::There,
            behind_late: true,
            judges: Judges::All,
        },
        Self {
            name: "on an input that is mostly 0",
            input: Input::Thinned,
            before: Before::Unwritten,
            alpha: Factor::Random,
            beta: Factor::Zero,
            operands: Placement::There,
            behind_late: false,
            judges: Judges::All,
        },
        Self {
            name: "over an old result",
            input: Input::Fresh,
            before: Before::OldResult,
            alpha: Factor::One,
            beta: Factor::Zero,
            operands: Placement::Here,
            behind_late: false,
            judges: Judges::All,
        },
        Self {
            name: "over a partly right result",
            input: Input::Kept,
            before: Before::Patched,
            alpha: Factor::One,
            beta: Factor::Zero,
            operands: Placement::Here,
            behind_late: false,
            judges: Judges::All,
        },
        Self {
            name: "on subnormal inputs",
            input: Input::Subnormal,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "on operands that are aligned to 16 bytes only",
            operands: Placement::Displaced,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "with NaN in rows of the input that a row of the matrix does not name",
            input: Input::NotANumber,
            ..ALONE
        },
        Self {
            name: "with infinity in rows of the input that a row of the matrix does not name",
            input: Input::Infinite,
            ..ALONE
        },
        Self {
            name: "on an input that is 0",
            input: Input::Zero,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "adding to an output with α = 1 and β = 1",
            before: Before::Random,
            beta: Factor::One,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "adding to an output with β = 1",
            before: Before::Random,
            alpha: Factor::Random,
            beta: Factor::One,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "adding to an output with α = 1",
            before: Before::Random,
            beta: Factor::Random,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
        Self {
            name: "scaling an output with α = 0",
            before: Before::Random,
            alpha: Factor::Zero,
            beta: Factor::Random,
            judges: Judges::EmulatorOfForeign,
            ..ALONE
        },
    ];

    /// Those that everybody runs, in this order.
    pub(crate) fn of_all() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|check| check.judges == Judges::All)
    }

    /// Those that an emulator runs besides, of a kernel that is foreign or not and takes α, β or
    /// neither of them.
    pub(crate) fn of_emulators(foreign: bool, takes_factors: bool) -> impl Iterator<Item = Self> {
        let is_judged = move |check: &Self| match check.judges {
            Judges::All => false,
            Judges::Emulator => true,
            Judges::EmulatorOfForeign => foreign,
        };
        let is_other = move |check: &Self| takes_factors || !check.has_factors();
        Self::ALL.into_iter().filter(move |check| is_judged(check) && is_other(check))
    }

    /// Whether its factors are others than those as when timed.
    fn has_factors(&self) -> bool {
        (self.alpha, self.beta) != (Factor::One, Factor::Zero)
    }

    /// α and β, for a kernel that takes them or not.
    pub(crate) fn factors(
        &self,
        takes_alpha: bool,
        takes_beta: bool,
        random: &mut fastrand::Rng,
    ) -> (f64, f64) {
        let alpha = if takes_alpha { self.alpha.draw(random) } else { 1.0 };
        let beta = if takes_beta { self.beta.draw(random) } else { 0.0 };
        (alpha, beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_random_only_where_a_kernel_takes_them() {
        let mut random = fastrand::Rng::with_seed(1);
        for check in Check::ALL {
            assert_eq!(check.factors(false, false, &mut random), (1.0, 0.0));
            let (alpha, beta) = check.factors(true, true, &mut random);
            for (asked, factor) in [(check.alpha, alpha), (check.beta, beta)] {
                match asked {
                    Factor::Zero => assert_eq!(factor, 0.0),
                    Factor::One => assert_eq!(factor, 1.0),
                    Factor::Random => assert!((0.5..=2.0).contains(&factor.abs()), "{factor}"),
                }
            }
        }
    }

    #[test]
    fn old_results_are_of_launches_as_when_timed() {
        let of_all: Vec<Check> = Check::of_all().collect();
        for pair in of_all.windows(2) {
            let [first, second] = pair else { continue };
            // What is patched is right only where the launch before was on these operands, with α =
            // 1 and β = 0.
            if second.before == Before::Patched {
                assert_eq!((first.operands, second.input), (second.operands, Input::Kept));
                assert!(!first.has_factors());
            }
        }
        assert_eq!(of_all[0].before, Before::Unwritten);
    }

    #[test]
    fn every_check_is_run_by_somebody() {
        let [of_all, own, foreign] = [
            Check::of_all().count(),
            Check::of_emulators(false, true).count(),
            Check::of_emulators(true, true).count(),
        ];
        assert_eq!(of_all + foreign, Check::ALL.len());
        assert!(own < foreign, "of ours fewer");
        assert_eq!(Check::of_emulators(true, false).count() + 4, foreign, "factors");
        // A device has no such numbers.
        let is_strange = |check: Check| {
            matches!(check.input, Input::Subnormal | Input::Zero)
                || check.input.strange().is_some()
                || check.operands == Placement::Displaced
        };
        assert!(!Check::of_all().any(is_strange));
    }
}
