//! Which cases are learned from, and in what order. Both depend on the seed and the number of the
//! step only, so that an interrupted stage goes on as if it had not been.

use sparserl_core::random::SplitMix64;

use crate::corpus::Role;

/// Goes through cases epoch by epoch, each once in an epoch, in an order of its own.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    places: Vec<usize>,
    seed: u64,
    /// The epoch that was asked about last, and its order.
    order: (u64, Vec<usize>),
}

impl Epochs {
    /// Through the cases at these places; the same for the same seed.
    pub(crate) fn new(places: Vec<usize>, seed: u64) -> Self {
        Self { places, seed, order: (u64::MAX, Vec::new()) }
    }

    /// Number of cases.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// The places of a step that takes `wanted` cases, or all where there are fewer.
    pub(crate) fn some(&mut self, step: u64, wanted: usize) -> Vec<usize> {
        let count = wanted.min(self.count()) as u64;
        let first = step * count;
        (first..first + count).filter_map(|number| self.case(number)).collect()
    }

    fn case(&mut self, number: u64) -> Option<usize> {
        let count = self.count() as u64;
        let epoch = number / count.max(1);
        if self.order.0 != epoch {
            let mut order = self.places.clone();
            shuffle(&mut order, &mut SplitMix64::after(self.seed ^ 0x0e90c, epoch));
            self.order = (epoch, order);
        }
        self.order.1.get((number % count.max(1)) as usize).copied()
    }
}

/// Of each matrix whether it is trained on: at most so many of those whose role that is. Fewer are
/// a part of more: each matrix has a number that says when it is taken.
pub(crate) fn trained_on(roles: &[Role], most: Option<usize>, seed: u64) -> Vec<bool> {
    let mut taken: Vec<usize> = (0..roles.len()).filter(|&i| roles[i] == Role::Train).collect();
    if let Some(most) = most {
        taken.sort_by_key(|&matrix| SplitMix64::after(seed, matrix as u64).bits());
        taken.truncate(most);
    }
    let mut is_taken = vec![false; roles.len()];
    for matrix in taken {
        is_taken[matrix] = true;
    }
    is_taken
}

/// At most so many of some places, taken evenly, since those of a family and of a matrix are next
/// to each other.
pub(crate) fn evenly(all: Vec<usize>, most: usize) -> Vec<usize> {
    match all.len() > most {
        true => (0..most).map(|i| all[i * all.len() / most]).collect(),
        false => all,
    }
}

/// Fisher and Yates, as Durstenfeld wrote it down.
pub(crate) fn shuffle<T>(places: &mut [T], random: &mut SplitMix64) {
    for last in (1..places.len()).rev() {
        places.swap(last, random.below(last + 1));
    }
}
