use core::mem::discriminant;

use alloc::vec::Vec;

use crate::language::{Derivation, Mask, Program, Slot, Token};
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
    let mut derivation = Derivation::start(mask);
    fill(&mut derivation, 0, &[], random)?;
    derivation.finish().ok()
}

/// A program that differs from another in one token, and then only in what no longer fits after it:
/// later tokens stay as long as the mask offers them in their turn.
///
/// `None` when the other is not offered by the mask, or nothing can be changed in it.
#[must_use]
pub fn mutate(mask: Mask<'_>, program: &Program, random: &mut SplitMix64) -> Option<Program> {
    let tokens = program.tokens();
    let mut subtrees = subtrees(mask, program)?;
    subtrees.retain(|subtree| subtree.choices > 1);
    let subtree = pick(&subtrees, random)?;
    let mut derivation = start(mask, tokens.get(..subtree.start)?)?;
    let old = *tokens.get(subtree.start)?;
    let mut others = derivation.legal();
    others.retain(|alternative| alternative.token != old);
    derivation.take(pick(&others, random)?);
    let donor = tokens.get(subtree.start + 1..subtree.end)?;
    fill(&mut derivation, subtree.floor, donor, random)?;
    finish(derivation, tokens.get(subtree.end..)?, random)
}

/// A program with a part, or another piece that its grammar makes of one slot, drawn anew; what
/// follows stays as long as the mask offers it.
///
/// `None` when the program is not offered by the mask, or has no such piece.
#[must_use]
pub fn regrow(mask: Mask<'_>, program: &Program, random: &mut SplitMix64) -> Option<Program> {
    let subtrees = pieces(mask, program)?;
    splice(mask, program, pick(&subtrees, random)?, &[], random)
}

/// A program with a piece of another in the place of one of its own of the same kind, such as the
/// layout of a part: adapted where the mask does not offer it there.
///
/// `None` when one of them is not offered by the mask, or they have no pieces of one kind.
#[must_use]
pub fn cross(
    mask: Mask<'_>,
    program: &Program,
    donor: &Program,
    random: &mut SplitMix64,
) -> Option<Program> {
    let (own, theirs) = (pieces(mask, program)?, pieces(mask, donor)?);
    let place = pick(&own, random)?;
    let kind = discriminant(&place.slot);
    let alike: Vec<&Subtree> =
        theirs.iter().filter(|piece| discriminant(&piece.slot) == kind).collect();
    let piece = pick(&alike, random)?;
    splice(mask, program, place, donor.tokens().get(piece.start..piece.end)?, random)
}

/// What one slot of a program became: the tokens that fill it and all that they open.
#[derive(Clone, Copy, Debug)]
struct Subtree {
    slot: Slot,
    /// Alternatives that the mask offers for the slot.
    choices: usize,
    start: usize,
    end: usize,
    /// Slots that are open beside it.
    floor: usize,
}

/// The end of a subtree that has none yet.
const OPEN: usize = usize::MAX;

/// The subtree of each token of a program; `None` when the mask does not offer the program.
fn subtrees(mask: Mask<'_>, program: &Program) -> Option<Vec<Subtree>> {
    if mask.task() != program.task {
        return None;
    }
    let mut found: Vec<Subtree> = Vec::new();
    let mut derivation = Derivation::start(mask);
    for (start, token) in program.tokens().into_iter().enumerate() {
        let slot = *derivation.open().last()?;
        let legal = derivation.legal();
        let (choices, floor) = (legal.len(), derivation.open().len() - 1);
        found.push(Subtree { slot, choices, start, end: OPEN, floor });
        derivation.take(legal.iter().find(|alternative| alternative.token == token)?);
        let open = derivation.open().len();
        for subtree in found.iter_mut().filter(|subtree| subtree.end == OPEN) {
            if open <= subtree.floor {
                subtree.end = start + 1;
            }
        }
    }
    derivation.is_complete().then_some(found)
}

/// The subtrees of several tokens, but for the whole program.
fn pieces(mask: Mask<'_>, program: &Program) -> Option<Vec<Subtree>> {
    let mut pieces = subtrees(mask, program)?;
    pieces.retain(|subtree| subtree.start > 0 && subtree.end > subtree.start + 1);
    Some(pieces)
}

/// A program with other tokens in the place of a subtree, as far as they fit.
fn splice(
    mask: Mask<'_>,
    program: &Program,
    place: &Subtree,
    donor: &[Token],
    random: &mut SplitMix64,
) -> Option<Program> {
    let tokens = program.tokens();
    let mut derivation = start(mask, tokens.get(..place.start)?)?;
    fill(&mut derivation, place.floor, donor, random)?;
    finish(derivation, tokens.get(place.end..)?, random)
}

/// A derivation that has begun with some tokens.
fn start<'f>(mask: Mask<'f>, tokens: &[Token]) -> Option<Derivation<'f>> {
    let mut derivation = Derivation::start(mask);
    tokens.iter().try_for_each(|&token| derivation.push(token)).ok()?;
    Some(derivation)
}

/// The program that goes on with some tokens, as far as they fit.
fn finish(
    mut derivation: Derivation<'_>,
    rest: &[Token],
    random: &mut SplitMix64,
) -> Option<Program> {
    fill(&mut derivation, 0, rest, random)?;
    derivation.finish().ok()
}

/// Goes on until no more than `floor` slots are open: with the tokens of `kept` in their turn where
/// they are offered, with others drawn evenly where they are not. A kept token that is not offered
/// is left out where the next one is.
fn fill(
    derivation: &mut Derivation<'_>,
    floor: usize,
    kept: &[Token],
    random: &mut SplitMix64,
) -> Option<()> {
    let mut kept = kept;
    while derivation.open().len() > floor {
        let legal = derivation.legal();
        let place = |token: Option<&Token>| legal.iter().position(|a| Some(&a.token) == token);
        let (place, used) = match (place(kept.first()), place(kept.get(1))) {
            (Some(place), _) => (place, 1),
            (None, Some(place)) => (place, 2),
            (None, None) if legal.is_empty() => return None,
            (None, None) => (random.below(legal.len()), 0),
        };
        kept = kept.get(used..)?;
        derivation.take(legal.get(place)?);
    }
    Some(())
}

/// One of some things, evenly; `None` of none.
fn pick<'t, T>(things: &'t [T], random: &mut SplitMix64) -> Option<&'t T> {
    match things.len() {
        0 => None,
        count => things.get(random.below(count)),
    }
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
    fn a_mutation_of_one_part_leaves_the_other_as_it_is() {
        let matrix = generate::rmat(9, 6, 1);
        let stats = MatrixStats::new(matrix.view());
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let mask = Mask::legal(&stats, task);
        let mut random = SplitMix64::new(5);
        let two_parts = |random: &mut SplitMix64| {
            let walks = (0..1000).filter_map(|_| random_walk(mask, random));
            walks.into_iter().find(|program| program.parts().len() == 2).unwrap()
        };
        let (mut kept, mut all) = (0, 0);
        for _ in 0..300 {
            let program = two_parts(&mut random);
            let mutant = mutate(mask, &program, &mut random).unwrap();
            let (old, new) = (program.parts(), mutant.parts());
            if new.len() == 2 && mutant.block == program.block {
                all += 1;
                kept += usize::from(old[0] == new[0] || old[1] == new[1]);
            }
        }
        assert!(all > 150 && kept * 10 > all * 9, "{kept} of {all}");
    }

    #[test]
    fn pieces_are_drawn_anew_and_exchanged() {
        let matrix = generate::rmat(9, 6, 1).cast::<f32>().unwrap();
        let stats = MatrixStats::new(matrix.view());
        let columns = 32.try_into().unwrap();
        for operation in [Operation::SpMV, Operation::SpMM { columns }] {
            let mask = Mask::legal(&stats, Task::new(operation, Dtype::F32));
            let mut random = SplitMix64::new(2);
            let (mut regrown, mut crossed, mut inherited) = (0, 0, 0);
            for _ in 0..200 {
                let [one, other] = [(); 2].map(|()| random_walk(mask, &mut random).unwrap());
                let new = regrow(mask, &one, &mut random).unwrap();
                assert!(is_offered(mask, &new));
                assert_eq!(new.block, one.block);
                regrown += usize::from(new != one);
                let child = cross(mask, &one, &other, &mut random);
                let Some(child) = child else { continue };
                assert!(is_offered(mask, &child));
                crossed += usize::from(child != one && child != other);
                let is_theirs = |part: &&crate::language::Part| other.parts().contains(part);
                inherited += usize::from(child.parts().iter().any(is_theirs));
            }
            assert!(regrown > 180, "{regrown}");
            assert!(crossed > 120 && inherited > 40, "{crossed}, {inherited}");
        }
    }

    #[test]
    fn a_program_for_another_matrix_is_not_offered() {
        let one_value = generate::rmat(6, 4, 1);
        let stats = MatrixStats::new(one_value.view());
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let program = Program::parse(
            "sparserl 3\nspmv f64\nblock 256\n\
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
