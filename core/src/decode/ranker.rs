use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::prefix::Path;
use super::{BatchRow, ConditionedPolicy, Policy, PolicyError, PolicyInput, Prediction};
use crate::language::grammar::{Alternative, MAX_SPLIT_DEPTH, Site, Slot, expand};
use crate::language::{Cache, Mask, Node, Panel, RowSetId, Token, Word};
use crate::layout::{CostModel, PartTime, WIDEST_PANEL};
use crate::matrix::tasks;
use crate::structure::MatrixStats;
use crate::task::Operation;

/// A cost model in the place of a learned policy.
///
/// Its logits are the negated, scaled logarithm of the predicted seconds of the best completion it
/// knows: bytes of the packed arrays, reads of the input past the L2 cache, memory transactions,
/// and the longest dependent walk. It knows the choices listed in `considers`; the others remain
/// legal, but unlikely. It takes what it needs from the statistics of its input, not from the
/// structure embedding. On a prefix that is not legal for the matrix it has no opinion.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostRanker;

impl Policy for CostRanker {
    fn read<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
        Ok(Box::new(Ranking {
            model: CostModel::new(input.stats.clone(), input.task, input.target),
            parts: BTreeMap::new(),
            splits: BTreeMap::new(),
            rows: Vec::new(),
        }))
    }
}

/// The prices of one matrix, and the rows of the last batch.
struct Ranking<'m> {
    model: CostModel<'m>,
    parts: BTreeMap<PartKey, Arc<BestTimes>>,
    splits: BTreeMap<PartKey, PartTime>,
    rows: Vec<Option<RankedPrefix>>,
}

/// A legal prefix, and where the open part began.
#[derive(Clone)]
struct RankedPrefix {
    path: Path,
    /// First token of the part being written, the threads of a block, its rows.
    part: Option<(usize, u32, RowSetId)>,
}

/// Threads of a block, and the rows.
type PartKey = (u32, RowSetId);

/// Predicted time of the best considered part that begins with some tokens.
type BestTimes = BTreeMap<Vec<Token>, PartTime>;

/// Logit units per e-fold of predicted time: 1 % slower is 0.4 less likely.
const SHARPNESS: f64 = 40.0;
/// Logit of a legal token that the ranker does not consider, below all it does.
const UNCONSIDERED: f64 = 60.0;

impl Ranking<'_> {
    fn stats(&self) -> &MatrixStats<'_> {
        self.model.stats()
    }

    fn mask(&self) -> Mask<'_> {
        Mask::legal(self.stats(), self.model.task())
    }

    /// Whether the L2 cache does not hold what is in use of a vector x.
    fn reads_x_from_memory(&self) -> bool {
        self.model.task().operation == Operation::SpMV && self.model.element_miss_rate() > 0.0
    }

    /// Whether a choice is worth pricing. What the cost model cannot tell apart is decided by rule.
    fn considers(&self, slot: Slot, token: Token) -> bool {
        match (slot, token) {
            // Blocks of many threads are for panels and bins, of which a multiprocessor has few.
            (Slot::Block, Token::Number(512)) => self.reads_x_from_memory(),
            (Slot::Block, token) => matches!(token, Token::Number(128 | 256)),
            (Slot::Rows { rows, .. }, Token::Word(Word::SplitLength)) => {
                let set = self.stats().rows(rows);
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
                let cache = if self.model.streams() { Cache::Streamed } else { Cache::Cached };
                token == cache.token()
            }
            (Slot::Unroll, token) => token == Token::Number(4),
            // Where the L2 holds what is in use of B, panels have nothing to gain; elsewhere narrow
            // ones have most.
            (Slot::Vector, Token::Number(n)) => match Panel::of(n) {
                Some(_) => {
                    let columns = self.model.task().operation.columns().min(WIDEST_PANEL);
                    n == 32 && self.model.row_miss_rate(columns) > 0.0
                }
                None => true,
            },
            (
                Slot::Window { .. }
                | Slot::Share { .. }
                | Slot::Layout(_)
                | Slot::Field(_)
                | Slot::Index(..)
                | Slot::Values { .. }
                | Slot::Vector
                | Slot::VectorOf(_)
                | Slot::Lanes { .. },
                _,
            ) => true,
        }
    }

    fn considered(&self, slot: Slot) -> Vec<Alternative> {
        let mut alternatives = expand(slot, self.mask());
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
    fn parts(&mut self, block: u32, rows: RowSetId) -> Arc<BestTimes> {
        if let Some(parts) = self.parts.get(&(block, rows)) {
            return parts.clone();
        }
        let parts = self.enumerated(block, rows);
        self.parts.insert((block, rows), parts.clone());
        parts
    }

    /// Has the times of all parts that these beginnings lead to computed at once: of each set of
    /// rows by a thread, as blocks of all sizes need the same statistics of it.
    fn enumerate_ahead(&mut self, blocks: &[Alternative]) {
        let mut wanted = BTreeMap::<RowSetId, Vec<u32>>::new();
        let mut want = |slots: &[Slot]| {
            for slot in slots {
                if let &Slot::Rows { block, rows, .. } = slot {
                    wanted.entry(rows).or_default().push(block);
                }
            }
        };
        for &whole in blocks.iter().flat_map(|alternative| &alternative.opens) {
            want(&[whole]);
            let Slot::Rows { block, rows, depth } = whole else { continue };
            if self.considers(whole, Token::Word(Word::SplitLength)) {
                let thresholds = self.considered(Slot::Threshold { block, rows, depth });
                thresholds.iter().for_each(|threshold| want(&threshold.opens));
            }
        }
        let found = tasks::map(wanted.into_iter().collect(), |(rows, blocks): (_, Vec<u32>)| {
            let parts = |block| ((block, rows), self.enumerated(block, rows));
            blocks.into_iter().map(parts).collect::<Vec<_>>()
        });
        self.parts.extend(found.into_iter().flatten());
    }

    fn enumerated(&self, block: u32, rows: RowSetId) -> Arc<BestTimes> {
        let mut found = BestTimes::new();
        let start = Slot::Rows { block, rows, depth: MAX_SPLIT_DEPTH };
        self.enumerate(block, rows, alloc::vec![start], &mut Vec::new(), &mut found);
        Arc::new(found)
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
        Some(self.model.part_time(site, &part))
    }

    /// Predicted time of the best program for some rows.
    fn best(&mut self, slot: Slot) -> PartTime {
        let Slot::Rows { block, rows, depth } = slot else { return PartTime::NEVER };
        let whole = rows == RowSetId::ALL;
        let unsplit = self.best_part(block, rows, &[]);
        let split = if whole { self.best_split(block, rows, depth) } else { PartTime::NEVER };
        quickest([unsplit, split].into_iter())
    }

    fn best_split(&mut self, block: u32, rows: RowSetId, depth: u8) -> PartTime {
        if let Some(&time) = self.splits.get(&(block, rows)) {
            return time;
        }
        let split = Slot::Rows { block, rows, depth };
        if !self.considers(split, Token::Word(Word::SplitLength)) {
            return PartTime::NEVER;
        }
        let thresholds = self.considered(Slot::Threshold { block, rows, depth });
        let time = quickest(thresholds.iter().map(|a| self.both_sides(&a.opens)));
        self.splits.insert((block, rows), time);
        time
    }

    fn both_sides(&mut self, sides: &[Slot]) -> PartTime {
        let constants = *self.model.constants();
        let times = sides.iter().map(|&side| self.best(side));
        times.reduce(|low, high| low.beside(high, &constants)).unwrap_or(PartTime::NEVER)
    }

    /// Predicted seconds of the best completion through an alternative, for the rows of its slot.
    fn completion(
        &mut self,
        prefix: &RankedPrefix,
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
            _ => prefix.part.map_or(PartTime::NEVER, |(start, block, rows)| {
                let mut beginning = prefix.path.prefix().tokens_from(start);
                beginning.push(alternative.token);
                self.best_part(block, rows, &beginning)
            }),
        }
    }

    /// Logits of what may follow a prefix.
    fn logits(&mut self, prefix: &RankedPrefix) -> Vec<f32> {
        let mut logits = alloc::vec![f32::NEG_INFINITY; Token::VOCABULARY];
        let Some(slot) = prefix.path.slot() else { return logits };
        let considered = self.considered(slot);
        if slot == Slot::Block && self.parts.is_empty() {
            self.enumerate_ahead(&considered);
        }
        let seconds: Vec<f64> =
            considered.iter().map(|a| self.completion(prefix, slot, a).seconds()).collect();
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        for alternative in prefix.path.legal(self.mask()) {
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
        logits
    }

    /// The best considered part that begins with some tokens.
    fn best_part(&mut self, block: u32, rows: RowSetId, beginning: &[Token]) -> PartTime {
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

impl RankedPrefix {
    fn with_token(&self, token: Token, mask: Mask<'_>) -> Option<Self> {
        let part = match self.path.slot() {
            Some(Slot::Rows { block, rows, .. }) => Some((self.path.prefix().len(), block, rows)),
            _ => self.part,
        };
        Some(Self { path: self.path.with_token(token, mask)?, part })
    }
}

impl ConditionedPolicy for Ranking<'_> {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        let mask = self.mask();
        let follow = |row: &BatchRow<'_>| {
            let known = match row.parent {
                Some(parent) => self.rows.get(parent)?.clone()?,
                None => RankedPrefix { path: Path::start(), part: None },
            };
            let mut tokens = row.prefix.tokens_from(known.path.prefix().len()).into_iter();
            tokens.try_fold(known, |known, token| known.with_token(token, mask))
        };
        let rows: Vec<Option<RankedPrefix>> = batch.iter().map(follow).collect();
        let predict = |row: &Option<RankedPrefix>| {
            let no_opinion = || alloc::vec![0.0; Token::VOCABULARY];
            let logits = row.as_ref().map_or_else(no_opinion, |prefix| self.logits(prefix));
            Prediction { logits, value: None }
        };
        let predictions = rows.iter().map(predict).collect();
        self.rows = rows;
        Ok(predictions)
    }
}
