//! Programs as numbers, and how long they get.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use sparserl_core::language::grammar::{Slot, expand};
use sparserl_core::language::{Mask, Program, Token};
use sparserl_core::task::{Dtype, Operation, Task};

/// Id of the token before the first one of a program.
pub const BEGIN: usize = Token::VOCABULARY;

/// Ids of the tokens of a program.
#[must_use]
pub fn token_ids(program: &Program) -> Vec<u8> {
    // Every token of a program has an id, and ids fit.
    let id = |token: Token| token.id().map(|id| id as u8);
    program.tokens().into_iter().filter_map(id).collect()
}

/// With enough columns for panels.
const SPMM: Operation = Operation::SpMM { columns: NonZeroU32::MIN.saturating_add(127) };

/// Tokens of the longest program of the language.
pub fn most_tokens() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let longest = |operation| {
            let mask = Mask::free(Task::new(operation, Dtype::F32));
            longest(Slot::Block, mask, &mut BTreeMap::new())
        };
        longest(Operation::SpMV).max(longest(SPMM))
    })
}

/// Tokens of the longest way to fill a slot.
fn longest(slot: Slot, mask: Mask<'_>, known: &mut BTreeMap<Slot, usize>) -> usize {
    if let Some(&length) = known.get(&slot) {
        return length;
    }
    let alternatives = expand(slot, mask);
    let lengths = alternatives.iter().map(|alternative| {
        1 + alternative.opens.iter().map(|&slot| longest(slot, mask, known)).sum::<usize>()
    });
    let length = lengths.max().unwrap_or(0);
    known.insert(slot, length);
    length
}

#[cfg(test)]
mod tests {
    use sparserl_core::decode::random_walk;
    use sparserl_core::random::SplitMix64;

    use super::*;

    #[test]
    fn drawn_programs_come_close_to_the_longest_and_none_is_longer() {
        let mask = Mask::free(Task::new(SPMM, Dtype::F32));
        let mut random = SplitMix64::new(1);
        let walks = (0..2000).filter_map(|_| random_walk(mask, &mut random));
        let longest = walks.map(|program| program.tokens().len()).max().unwrap();
        assert!(longest <= most_tokens() && longest + 4 > most_tokens(), "{longest}");
        assert!(most_tokens() < 64);
    }
}
