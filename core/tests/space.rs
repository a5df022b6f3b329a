//! The space of programs: how long they are, how many there are, and that drawing from it is even.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;

use sparserl_core::arbitrary::random_bits;
use sparserl_core::language::grammar::expand;
use sparserl_core::language::{Derivation, Mask, Slot, Space, Token};
use sparserl_core::matrix::generate;
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Task};

const SPMV: Task = Task::new(Operation::SpMV, Dtype::F64);

/// Fewest and most tokens that a slot takes.
fn lengths(
    slot: Slot,
    mask: Mask<'_>,
    known: &mut BTreeMap<Slot, (usize, usize)>,
) -> (usize, usize) {
    if let Some(&lengths) = known.get(&slot) {
        return lengths;
    }
    let mut bounds = (usize::MAX, 0);
    for alternative in expand(slot, mask) {
        let (mut least, mut most) = (1, 1);
        for slot in alternative.opens {
            let (few, many) = lengths(slot, mask, known);
            (least, most) = (least + few, most + many);
        }
        bounds = (bounds.0.min(least), bounds.1.max(most));
    }
    known.insert(slot, bounds);
    bounds
}

#[test]
fn programs_have_8_to_47_tokens() {
    for operation in [Operation::SpMV, Operation::SpMM { columns: 8.try_into().unwrap() }] {
        let task = Task { operation, ..SPMV };
        assert_eq!(lengths(Slot::Block, Mask::free(task), &mut BTreeMap::new()), (8, 47), "{task}");
    }
}

/// Counts programs by the definition, as a check on [`Space`].
fn count(slot: Slot, mask: Mask<'_>, known: &mut BTreeMap<Slot, u128>) -> u128 {
    if let Some(&count) = known.get(&slot) {
        return count;
    }
    let mut sum = 0;
    for alternative in expand(slot, mask) {
        sum += alternative.opens.iter().map(|&slot| count(slot, mask, known)).product::<u128>();
    }
    known.insert(slot, sum);
    sum
}

#[test]
fn spaces_have_millions_of_programs() {
    let matrices = [
        ("stencil", generate::stencil5(20, 20)),
        ("R-MAT", generate::rmat(9, 8, 1)),
        ("FEM blocks", generate::fem_blocks(49, 3, 1)),
    ];
    for (name, matrix) in &matrices {
        for columns in [0u32, 1, 8, 33] {
            let operation = match columns.try_into() {
                Ok(columns) => Operation::SpMM { columns },
                Err(_) => Operation::SpMV,
            };
            let task = Task { operation, ..SPMV };
            let stats = MatrixStats::new(matrix.view());
            let mask = Mask::legal(&stats, task);
            let size = Space::new(mask).count();
            println!("{name}, {task}: {size:.2e} programs", size = size as f64);
            assert!(size > 1_000_000, "{name}, {task}: {size}");
            assert_eq!(size, count(Slot::Block, mask, &mut BTreeMap::new()));
        }
    }
}

/// Draws programs, and compares how often they begin in each way with how many do.
#[test]
fn drawing_is_even() {
    const DRAWS: usize = 4000;
    // Without splits that leave a side empty, and with few ways to store anything: the shares of
    // the beginnings differ, but none is tiny.
    for matrix in [generate::uniform(1, 9, 4, 1), generate::rmat(5, 2, 1)] {
        let stats = MatrixStats::new(matrix.view());
        let mask = Mask::legal(&stats, SPMV);
        let mut space = Space::new(mask);
        let mut random = random_bits(1);
        let mut drawn = BTreeMap::<Vec<Token>, usize>::new();
        for _ in 0..DRAWS {
            let tokens = space.sample(&mut random).tokens();
            *drawn.entry(tokens[..4].to_vec()).or_default() += 1;
        }

        let mut expected = BTreeMap::new();
        let total = space.count() as f64;
        beginnings(&Derivation::start(mask), mask, 4, &mut |tokens, count| {
            expected.insert(tokens.to_vec(), count as f64 / total * DRAWS as f64);
        });
        assert!(drawn.keys().all(|beginning| expected.contains_key(beginning)));
        // Pearson's statistic, rare beginnings taken together.
        let (mut statistic, mut bins, mut rare) = (0.0, 0, (0.0, 0.0));
        for (beginning, &expected) in &expected {
            let drawn = drawn.get(beginning).copied().unwrap_or_default() as f64;
            if expected < 5.0 {
                rare = (rare.0 + drawn, rare.1 + expected);
            } else {
                statistic += (drawn - expected).powi(2) / expected;
                bins += 1;
            }
        }
        if rare.1 >= 5.0 {
            statistic += (rare.0 - rare.1).powi(2) / rare.1;
            bins += 1;
        }
        let freedom = f64::from(bins - 1);
        println!("{bins} beginnings, chi-square {statistic:.1} for {freedom} degrees of freedom");
        assert!(bins > 4, "too few beginnings to tell anything");
        // Mean of the distribution plus five standard deviations; the seed is fixed.
        assert!(statistic < freedom + 5.0 * (2.0 * freedom).sqrt());
    }
}

/// Visits every beginning of some tokens with the number of programs that have it.
fn beginnings(
    derivation: &Derivation<'_>,
    mask: Mask<'_>,
    length: usize,
    visit: &mut impl FnMut(&[Token], u128),
) {
    if derivation.tokens().len() == length {
        let mut known = BTreeMap::new();
        let open = derivation.open().iter();
        visit(derivation.tokens(), open.map(|&slot| count(slot, mask, &mut known)).product());
        return;
    }
    for alternative in derivation.legal() {
        let mut next = derivation.clone();
        next.push(alternative.token).unwrap();
        beginnings(&next, mask, length, visit);
    }
}
