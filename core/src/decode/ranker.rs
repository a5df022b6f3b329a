use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::convert::Infallible;

use super::Policy;
use crate::language::grammar::{Alternative, MAX_SPLIT_DEPTH, Site, Slot, expand};
use crate::language::{Cache, Derivation, Facts, Mask, Node, RowSetId, Token, Word};
use crate::layout::PartTime;
use crate::structure::StructureEmbedding;
use crate::task::Task;

/// A cost model in the place of a learned policy.
///
/// Its logits are the negated, scaled logarithm of the predicted seconds of the best completion it
/// knows: bytes of the packed arrays, memory transactions, and the longest dependent walk. It knows
/// the choices listed in `considers`; the others remain legal, but unlikely. It takes what it needs
/// from [`Facts`], not from the structure embedding, and so decodes only under the mask of the same
/// facts.
#[derive(Debug)]
pub struct CostRanker<'f> {
    facts: &'f Facts<'f>,
    parts: RefCell<BTreeMap<PartKey, Rc<BestTimes>>>,
    splits: RefCell<BTreeMap<PartKey, PartTime>>,
}

/// Threads of a block, and the rows.
type PartKey = (u32, RowSetId);

/// Predicted time of the best considered part that begins with some tokens.
type BestTimes = BTreeMap<Vec<Token>, PartTime>;

/// Logit units per e-fold of predicted time: 1 % slower is 0.4 less likely.
const SHARPNESS: f64 = 40.0;
/// Logit of a legal token that the ranker does not consider, below all it does.
const UNCONSIDERED: f64 = 60.0;
/// Matrices past this size stream through the caches; smaller ones stay in a large GPU's L2.
const STREAM_BYTES: u64 = 32 << 20;

impl<'f> CostRanker<'f> {
    /// A ranker for the matrix of `facts`.
    #[must_use]
    pub fn new(facts: &'f Facts<'f>) -> Self {
        Self { facts, parts: RefCell::default(), splits: RefCell::default() }
    }

    /// Whether a choice is worth pricing. What the cost model cannot tell apart is decided by rule.
    fn considers(&self, slot: Slot, token: Token) -> bool {
        match (slot, token) {
            (Slot::Block, token) => matches!(token, Token::Number(128 | 256)),
            (Slot::Rows { rows, .. }, Token::Word(Word::SplitLength)) => {
                let set = self.facts.rows(rows);
                // Lengths that hardly differ leave nothing to gain.
                set.longest > 16 && set.longest * set.rows.len() > 4 * set.nnz
            }
            (Slot::Rows { .. }, token) => token != Token::Word(Word::SplitNonzeros),
            (Slot::Threshold { .. }, token) => matches!(token, Token::Number(8 | 32 | 128 | 512)),
            (Slot::Window { rows, .. }, Token::Number(window)) => {
                if rows == RowSetId::ALL {
                    matches!(window, 256 | 16384)
                } else {
                    window == 2048
                }
            }
            (Slot::Cache, token) => {
                let streams = self.facts.csr_bytes() > STREAM_BYTES;
                let cache = if streams { Cache::Streamed } else { Cache::Cached };
                token == cache.token()
            }
            (Slot::Unroll, token) => token == Token::Number(4),
            _ => true,
        }
    }

    fn considered(&self, slot: Slot) -> Vec<Alternative> {
        let mut alternatives = expand(slot, Mask::legal(self.facts));
        match slot {
            // The grammar lists codings from the widest to the narrowest; all are lossless.
            Slot::Index(..) | Slot::Values { .. } => alternatives.split_off(alternatives.len() - 1),
            _ => {
                alternatives.retain(|a| self.considers(slot, a.token));
                alternatives
            }
        }
    }

    /// Times of all considered parts for some rows, by their beginnings.
    fn parts(&self, block: u32, rows: RowSetId) -> Rc<BestTimes> {
        if let Some(parts) = self.parts.borrow().get(&(block, rows)) {
            return parts.clone();
        }
        let mut found = BestTimes::new();
        let start = Slot::Rows { block, rows, depth: MAX_SPLIT_DEPTH };
        self.enumerate(block, rows, alloc::vec![start], &mut Vec::new(), &mut found);
        let parts = Rc::new(found);
        self.parts.borrow_mut().insert((block, rows), parts.clone());
        parts
    }

    fn enumerate(
        &self,
        block: u32,
        rows: RowSetId,
        mut open: Vec<Slot>,
        tokens: &mut Vec<Token>,
        found: &mut BestTimes,
    ) {
        let Some(slot) = open.pop() else {
            if let Some(time) = self.price(block, rows, tokens) {
                for end in 0..=tokens.len() {
                    let best = found.entry(tokens[..end].to_vec()).or_insert(PartTime::NEVER);
                    *best = quickest([*best, time].into_iter());
                }
            }
            return;
        };
        for alternative in self.considered(slot) {
            let mut next = open.clone();
            next.extend(alternative.opens.iter().rev());
            tokens.push(alternative.token);
            self.enumerate(block, rows, next, tokens, found);
            tokens.pop();
        }
    }

    fn price(&self, block: u32, rows: RowSetId, tokens: &[Token]) -> Option<PartTime> {
        let part = Node::read_part(tokens)?;
        let site = Site { block, rows, order: part.order };
        Some(self.facts.part_cost(site, &part).time())
    }

    /// Predicted time of the best program for some rows.
    fn best(&self, slot: Slot) -> PartTime {
        let Slot::Rows { block, rows, depth } = slot else { return PartTime::NEVER };
        let whole = rows == RowSetId::ALL;
        let unsplit = self.best_part(block, rows, &[]);
        let split = if whole { self.best_split(block, rows, depth) } else { PartTime::NEVER };
        quickest([unsplit, split].into_iter())
    }

    fn best_split(&self, block: u32, rows: RowSetId, depth: u8) -> PartTime {
        if let Some(&time) = self.splits.borrow().get(&(block, rows)) {
            return time;
        }
        let split = Slot::Rows { block, rows, depth };
        if !self.considers(split, Token::Word(Word::SplitLength)) {
            return PartTime::NEVER;
        }
        let thresholds = self.considered(Slot::Threshold { block, rows, depth });
        let time = quickest(thresholds.iter().map(|a| self.both_sides(&a.opens)));
        self.splits.borrow_mut().insert((block, rows), time);
        time
    }

    fn both_sides(&self, sides: &[Slot]) -> PartTime {
        let times = sides.iter().map(|&side| self.best(side));
        times.reduce(PartTime::beside).unwrap_or(PartTime::NEVER)
    }

    /// Predicted seconds of the best completion through an alternative, for the rows of its slot.
    fn completion(
        &self,
        state: &RankerState<'_>,
        slot: Slot,
        alternative: &Alternative,
    ) -> PartTime {
        match (slot, alternative.token) {
            (Slot::Block, _) => {
                alternative.opens.first().map_or(PartTime::NEVER, |&s| self.best(s))
            }
            (Slot::Threshold { .. } | Slot::Share { .. }, _) => self.both_sides(&alternative.opens),
            (Slot::Rows { block, rows, depth }, Token::Word(Word::SplitLength)) => {
                self.best_split(block, rows, depth)
            }
            (Slot::Rows { block, rows, .. }, token) => self.best_part(block, rows, &[token]),
            _ => state.part.map_or(PartTime::NEVER, |(start, block, rows)| {
                let written = state.derivation.tokens()[start..].iter().copied();
                let beginning: Vec<Token> = written.chain([alternative.token]).collect();
                self.best_part(block, rows, &beginning)
            }),
        }
    }

    /// The best considered part that begins with some tokens.
    fn best_part(&self, block: u32, rows: RowSetId, beginning: &[Token]) -> PartTime {
        self.parts(block, rows).get(beginning).copied().unwrap_or(PartTime::NEVER)
    }
}

/// The least of some times.
fn quickest(times: impl Iterator<Item = PartTime>) -> PartTime {
    times.fold(
        PartTime::NEVER,
        |best, time| {
            if time.seconds() < best.seconds() { time } else { best }
        },
    )
}

/// The ranker's decoder state: the derivation, and where the open part began.
#[derive(Clone, Debug)]
pub struct RankerState<'f> {
    derivation: Derivation<'f>,
    /// First token of the part being written, the threads of a block, its rows.
    part: Option<(usize, u32, RowSetId)>,
}

impl<'f> Policy for CostRanker<'f> {
    type State = RankerState<'f>;
    type Error = Infallible;

    fn start(&self, _: &StructureEmbedding, _: Task) -> Result<Self::State, Infallible> {
        Ok(RankerState { derivation: Derivation::start(Mask::legal(self.facts)), part: None })
    }

    fn next(&self, state: &mut Self::State, prefix: &[Token]) -> Result<Vec<f32>, Infallible> {
        for &token in prefix.iter().skip(state.derivation.tokens().len()) {
            if let Some(&Slot::Rows { block, rows, .. }) = state.derivation.open().last() {
                state.part = Some((state.derivation.tokens().len(), block, rows));
            }
            if state.derivation.push(token).is_err() {
                break;
            }
        }
        let mut logits = alloc::vec![f32::NEG_INFINITY; Token::VOCABULARY];
        let Some(&slot) = state.derivation.open().last() else { return Ok(logits) };
        let considered = self.considered(slot);
        let seconds: Vec<f64> =
            considered.iter().map(|a| self.completion(state, slot, a).seconds()).collect();
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        for alternative in state.derivation.legal() {
            if let Some(id) = alternative.token.id() {
                logits[id] = -UNCONSIDERED as f32;
            }
        }
        for (alternative, seconds) in considered.iter().zip(seconds) {
            if let Some(id) = alternative.token.id().filter(|_| seconds.is_finite()) {
                let regret = SHARPNESS * libm::log(seconds / best);
                logits[id] = -regret.min(UNCONSIDERED / 2.0) as f32;
            }
        }
        Ok(logits)
    }
}
