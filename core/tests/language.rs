//! The kernel language: text and tokens round-trip, nothing panics on nonsense, the mask leads to
//! programs only, and even drawing is even.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use sparserl_core::arbitrary::{
    Case, case, csr, free_program, mutated_tokens, random_bits, task, tokens,
};
use sparserl_core::language::grammar::expand;
use sparserl_core::language::{
    Derivation, Facts, Mask, Program, ProgramError, Slot, Space, TextError, Token,
};
use sparserl_core::layout::pack;
use sparserl_core::matrix::{Csr, Scalar, generate};
use sparserl_core::task::{Dtype, Operation, Task};

const SPMV: Task = Task { operation: Operation::SpMV, dtype: Dtype::F64 };

fn any_task() -> impl Strategy<Value = Task> {
    prop_oneof![task(Dtype::F32), task(Dtype::F64)]
}

fn round_trips(program: &Program) -> Result<(), TestCaseError> {
    let text = program.to_string();
    prop_assert_eq!(&Program::parse(&text).unwrap(), program);
    prop_assert_eq!(&Program::from_tokens(program.task, &program.tokens()).unwrap(), program);
    prop_assert_eq!(Program::parse(&text).unwrap().to_string(), text);
    Ok(())
}

/// The error is about the first token that no program goes on with.
fn is_first_misfit(
    task: Task,
    tokens: &[Token],
    error: &ProgramError,
) -> Result<(), TestCaseError> {
    let (ProgramError::Unexpected { position, .. }
    | ProgramError::Incomplete { position, .. }
    | ProgramError::Trailing { position, .. }) = *error;
    prop_assert!(position <= tokens.len());
    let mut derivation = Derivation::start(Mask::free(task));
    for &token in &tokens[..position] {
        prop_assert_eq!(derivation.push(token), Ok(()));
    }
    if let Some(&token) = tokens.get(position) {
        prop_assert!(derivation.push(token).is_err());
    } else {
        prop_assert!(!derivation.is_complete());
    }
    Ok(())
}

fn line_of(error: &TextError) -> usize {
    match *error {
        TextError::Version { line, .. }
        | TextError::Task { line, .. }
        | TextError::Word { line, .. }
        | TextError::Program { line, .. } => line,
    }
}

proptest! {
    #[test]
    fn free_programs_round_trip(task in any_task(), seed: u64) {
        round_trips(&free_program(task, seed))?;
    }

    #[test]
    fn random_tokens_are_a_program_or_an_error_in_place(task in any_task(), tokens in tokens(70)) {
        match Program::from_tokens(task, &tokens) {
            Ok(program) => prop_assert_eq!(program.tokens(), tokens),
            Err(error) => is_first_misfit(task, &tokens, &error)?,
        }
    }

    #[test]
    fn mutated_tokens_are_a_program_or_an_error_in_place(
        (task, tokens) in any_task().prop_flat_map(|task| (Just(task), mutated_tokens(task)))
    ) {
        match Program::from_tokens(task, &tokens) {
            Ok(program) => {
                prop_assert_eq!(program.tokens(), tokens);
                round_trips(&program)?;
            }
            Err(error) => is_first_misfit(task, &tokens, &error)?,
        }
    }

    #[test]
    fn mutated_text_is_a_program_or_an_error_with_its_line(
        task in any_task(),
        seed: u64,
        edits in proptest::collection::vec((any::<Index>(), any::<char>(), 0..3u8), 1..4),
    ) {
        let mut text: Vec<char> = free_program(task, seed).to_string().chars().collect();
        for (at, with, kind) in edits {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = with,
                1 => text.insert(at, with),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        match Program::parse(&text) {
            Ok(program) => round_trips(&program)?,
            Err(error) => {
                let line = line_of(&error);
                prop_assert!((1..=text.lines().count().max(1)).contains(&line), "{error}");
                prop_assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
                if let TextError::Word { found, .. } = &error {
                    prop_assert!(text.lines().nth(line - 1).unwrap().contains(found), "{error}");
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_without_panic(text in "\\PC*", body in "(sparserl 1\n)?(spmv f32\n)?(block )?[a-z0-9# \n-]{0,80}") {
        let _ = Program::parse(&text);
        let _ = Program::parse(&body);
    }

    #[test]
    fn words_may_stand_on_any_lines(task in any_task(), seed: u64, breaks in proptest::collection::vec(0..4u8, 60)) {
        let program = free_program(task, seed);
        let mut text = format!("# a comment\n\nsparserl 1 # version\n  {task}\n");
        for (token, gap) in program.tokens().iter().zip(breaks.iter().cycle()) {
            text.push_str(&token.to_string());
            text.push_str([" ", "\n", "\t \r\n\n", " # words of a comment, sell\n"][usize::from(*gap)]);
        }
        prop_assert_eq!(Program::parse(&text).unwrap(), program);
    }
}

proptest! {
    // Facts and counts of a space take milliseconds where tests are not optimised.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn legal_programs_round_trip_and_are_legal(case in case::<f32>(40, 60, 150)) {
        let Case { matrix, program } = case;
        round_trips(&program)?;
        let facts = Facts::new(matrix.view(), program.task);
        let mut derivation = Derivation::start(Mask::legal(&facts));
        for token in program.tokens() {
            prop_assert_eq!(derivation.push(token), Ok(()));
        }
        prop_assert_eq!(derivation.finish().unwrap(), program.clone());
        let cost = facts.cost(&program);
        prop_assert!(cost.seconds.is_finite() && cost.seconds >= 0.0, "{cost:?}");
    }

    #[test]
    fn whatever_the_mask_offers_leads_to_a_program_that_packs(
        matrix in csr::<f64>(40, 60, 150),
        task in task(Dtype::F64),
        seed: u64,
    ) {
        every_offer_leads_to_a_program(&matrix, task, seed)?;
    }

    #[test]
    fn also_for_wide_matrices(
        matrix in csr::<f32>(30, 200_000, 60),
        task in task(Dtype::F32),
        seed: u64,
    ) {
        every_offer_leads_to_a_program(&matrix, task, seed)?;
    }
}

/// Walks one random derivation and, at each step, completes every alternative at random.
fn every_offer_leads_to_a_program<T: Scalar>(
    matrix: &Csr<T>,
    task: Task,
    seed: u64,
) -> Result<(), TestCaseError> {
    let facts = Facts::new(matrix.view(), task);
    let mut random = random_bits(seed);
    let mut walk = Derivation::start(Mask::legal(&facts));
    while !walk.is_complete() {
        let legal = walk.legal();
        prop_assert!(!legal.is_empty(), "nothing may follow {:?}", walk.tokens());
        for alternative in &legal {
            let mut branch = walk.clone();
            prop_assert_eq!(branch.push(alternative.token), Ok(()));
            let program = complete(branch, &mut random)?;
            let packed = pack(matrix.view(), &program);
            prop_assert!(packed.is_ok(), "{}\n{program}", packed.unwrap_err());
        }
        let chosen = &legal[random() as usize % legal.len()];
        prop_assert_eq!(walk.push(chosen.token), Ok(()));
    }
    Ok(())
}

fn complete(
    mut derivation: Derivation<'_>,
    random: &mut impl FnMut() -> u64,
) -> Result<Program, TestCaseError> {
    while !derivation.is_complete() {
        let legal = derivation.legal();
        prop_assert!(!legal.is_empty(), "nothing may follow {:?}", derivation.tokens());
        let token = legal[random() as usize % legal.len()].token;
        prop_assert_eq!(derivation.push(token), Ok(()));
    }
    Ok(derivation.finish().unwrap())
}

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
fn programs_have_7_to_47_tokens() {
    for operation in [Operation::SpMV, Operation::SpMM { columns: 8.try_into().unwrap() }] {
        let task = Task { operation, ..SPMV };
        assert_eq!(lengths(Slot::Block, Mask::free(task), &mut BTreeMap::new()), (7, 47), "{task}");
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
            let facts = Facts::new(matrix.view(), task);
            let mask = Mask::legal(&facts);
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
        let facts = Facts::new(matrix.view(), SPMV);
        let mask = Mask::legal(&facts);
        let mut space = Space::new(mask);
        let mut random = random_bits(1);
        let mut drawn = BTreeMap::<Vec<Token>, usize>::new();
        for _ in 0..DRAWS {
            let tokens = space.sample(&mut random).tokens();
            *drawn.entry(tokens[..4].to_vec()).or_default() += 1;
        }

        let mut expected = BTreeMap::new();
        let total = space.count() as f64;
        beginnings(Derivation::start(mask), mask, 4, &mut |tokens, count| {
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
    derivation: Derivation<'_>,
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
        beginnings(next, mask, length, visit);
    }
}
