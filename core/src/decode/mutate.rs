use alloc::vec::Vec;

use crate::language::grammar::Alternative;
use crate::language::{Derivation, Mask, Program, Token};
use crate::random::SplitMix64;

/// Whether a program is one of those that a mask offers.
#[must_use]
pub fn is_offered(mask: Mask<'_>, program: &Program) -> bool {
    let mut derivation = Derivation::start(mask);
    mask.task() == program.task
        && program.tokens().into_iter().all(|token| derivation.push(token).is_ok())
        && derivation.is_complete()
}

/// A program drawn by choosing evenly among what the mask offers at each token.
///
/// Layouts are about equally likely, however many programs each has: drawing evenly from all
/// programs, as [`Space`](crate::language::Space) does, hardly ever gives one without a split.
#[must_use]
pub fn random_walk(mask: Mask<'_>, random: &mut SplitMix64) -> Option<Program> {
    complete(Derivation::start(mask), |legal| random.below(legal.len()))
}

/// A program that differs from another in one token, and then only in what no longer fits after it:
/// later tokens stay as long as the mask offers them in their turn.
///
/// `None` when the other is not offered by the mask, or nothing can be changed in it.
#[must_use]
pub fn mutate(mask: Mask<'_>, program: &Program, random: &mut SplitMix64) -> Option<Program> {
    if mask.task() != program.task {
        return None;
    }
    let tokens = program.tokens();
    let mut derivations = Vec::new();
    let mut derivation = Derivation::start(mask);
    for &token in &tokens {
        let legal = derivation.legal();
        let alternative = legal.iter().find(|alternative| alternative.token == token)?;
        if legal.len() > 1 {
            derivations.push(derivation.clone());
        }
        derivation.take(alternative);
    }
    if derivations.is_empty() || !derivation.is_complete() {
        return None;
    }
    let mut derivation = derivations.swap_remove(random.below(derivations.len()));
    let position = derivation.tokens().len();
    let old = *tokens.get(position)?;
    let mut others = derivation.legal();
    others.retain(|alternative| alternative.token != old);
    derivation.take(others.get(random.below(others.len()))?);
    let mut kept = tokens.into_iter().skip(position + 1).peekable();
    complete(derivation, |legal| {
        let place = |token: &Token| legal.iter().position(|a| a.token == *token);
        let same = kept.next_if(|token| place(token).is_some());
        same.and_then(|token| place(&token)).unwrap_or_else(|| random.below(legal.len()))
    })
}

/// Goes on to the end of a program; `choose` picks one of the alternatives by its place.
fn complete(
    mut derivation: Derivation<'_>,
    mut choose: impl FnMut(&[Alternative]) -> usize,
) -> Option<Program> {
    while !derivation.is_complete() {
        let legal = derivation.legal();
        if legal.is_empty() {
            return None;
        }
        derivation.take(legal.get(choose(&legal))?);
    }
    derivation.finish().ok()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::language::Layout;
    use crate::matrix::generate;
    use crate::structure::MatrixStats;
    use crate::task::{Dtype, Operation, Task};

    #[test]
    fn walks_and_mutations_are_offered_and_meet_every_layout() {
        let matrix = generate::stencil5(20, 20);
        let stats = MatrixStats::new(matrix.view());
        let mask = Mask::legal(&stats, Task::new(Operation::SpMV, Dtype::F64));
        let mut random = SplitMix64::new(1);
        let mut layouts = BTreeSet::new();
        let mut changed = 0;
        for _ in 0..200 {
            let program = random_walk(mask, &mut random).unwrap();
            assert!(is_offered(mask, &program));
            let words = program.tokens().into_iter().filter_map(|token| match token {
                Token::Word(word) => Some(word),
                Token::Number(_) => None,
            });
            layouts.extend(words.filter(|word| Layout::WORDS.contains(word)));
            let mutant = mutate(mask, &program, &mut random).unwrap();
            assert!(is_offered(mask, &mutant));
            changed += usize::from(mutant != program);
        }
        assert_eq!(layouts.len(), Layout::WORDS.len());
        assert_eq!(changed, 200);
    }

    #[test]
    fn a_program_for_another_matrix_is_not_offered() {
        let one_value = generate::rmat(6, 4, 1);
        let stats = MatrixStats::new(one_value.view());
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let program = Program::parse(
            "sparserl 2\nspmv f64\nblock 256\n\
             keep csr index=u32 values=constant cache=cached vector=1 lanes=1 unroll=1",
        )
        .unwrap();
        assert!(is_offered(Mask::legal(&stats, task), &program));
        let values = generate::uniform(50, 50, 4, 1);
        let other = MatrixStats::new(values.view());
        let mask = Mask::legal(&other, task);
        assert!(!is_offered(mask, &program));
        assert_eq!(mutate(mask, &program, &mut SplitMix64::new(1)), None);
        let single = Task::new(Operation::SpMV, Dtype::F32);
        assert!(!is_offered(Mask::legal(&stats, single), &program));
    }
}
