//! Which programs to measure for a matrix.
//!
//! A quarter each of what the cost model finds best, of programs that won elsewhere, of a pool that
//! is the same for all matrices, and of programs of the matrix's own; what one kind lacks, the
//! others give. Programs that are measured on many matrices say what depends on the matrix, and
//! each of them is compiled only once. A list of programs may be measured on all matrices besides:
//! what is said of these is said of all alike, and not of those that were proposed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sparserl_core::decode::{
    CostRanker, Policy as _, PolicyError, PolicyInput, diverse_search, is_offered, mutate,
    random_walk,
};
use sparserl_core::language::{Layout, Mask, Program, Token};
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::{Outcome, Regime};
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::Task;

pub use sparserl_onnx_models::reference::reference;

use crate::collect::{Experiment, Measure, Stopped};
use crate::configuration::Collection;
use crate::corpus::Recipe;
use crate::measured::median;

/// Programs of one task that are tried on every matrix that they are legal for.
#[derive(Clone, Debug)]
pub struct Pool {
    /// By the layouts of their parts, so that rare ones are met as often as others.
    families: Vec<Vec<Program>>,
}

/// How often each program was among the best of a matrix.
#[derive(Clone, Debug, Default)]
pub struct Winners(BTreeMap<Task, BTreeMap<String, (Program, u32)>>);

/// Draws programs for one matrix and task.
pub struct Proposer<'a, 'm> {
    input: &'a PolicyInput<'m>,
    wanted: &'a dyn Fn(&Program) -> bool,
    taken: BTreeSet<Vec<Token>>,
    random: SplitMix64,
}

/// The fastest so many programs of a matrix and task are its winners.
const WINNERS: usize = 3;
/// Attempts at a new program for each that is wanted, before there are taken to be no more.
const ATTEMPTS: usize = 8;

impl Pool {
    /// About `size` different programs of those `wanted`, drawn on small matrices of several kinds;
    /// the same for the same seed.
    #[must_use]
    pub fn draw(task: Task, size: usize, seed: u64, wanted: &dyn Fn(&Program) -> bool) -> Self {
        let matrices: [Csr<f64>; 6] = [
            generate::stencil5(40, 40),
            generate::stencil27(9, 9, 9),
            generate::uniform(3000, 3000, 12, seed),
            generate::rmat(11, 12, seed),
            generate::block_pruned(512, 512, 4, 20, seed),
            generate::hyper_sparse(60_000, 60_000, 20_000, seed),
        ];
        let mut random = SplitMix64::new(seed);
        let mut families = BTreeMap::<Vec<Token>, Vec<Program>>::new();
        let mut seen = BTreeSet::new();
        let all: Vec<_> = matrices.iter().map(|matrix| MatrixStats::new(matrix.view())).collect();
        for number in 0..ATTEMPTS * size {
            if seen.len() >= size {
                break;
            }
            let Some(stats) = all.get(number % all.len()) else { break };
            if let Some(program) = random_walk(Mask::legal(stats, task), &mut random)
                && wanted(&program)
                && seen.insert(program.tokens())
            {
                families.entry(family(&program)).or_default().push(program);
            }
        }
        Self { families: families.into_values().collect() }
    }

    /// All of them.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.families.iter().flatten()
    }
}

/// The words for the splits and layouts of a program.
fn family(program: &Program) -> Vec<Token> {
    let is_layout = |token: &Token| match token {
        Token::Word(word) => Layout::WORDS.contains(word),
        Token::Number(_) => false,
    };
    program.tokens().into_iter().filter(is_layout).collect()
}

impl Winners {
    /// Notes that a program was among the best of a matrix.
    pub fn add(&mut self, program: &Program) {
        let of_task = self.0.entry(program.task).or_default();
        of_task.entry(program.to_string()).or_insert_with(|| (program.clone(), 0)).1 += 1;
    }

    /// Winners for a task, what won most often first.
    #[must_use]
    pub fn of(&self, task: Task) -> Vec<&Program> {
        let mut found: Vec<_> = self.0.get(&task).into_iter().flat_map(BTreeMap::values).collect();
        found.sort_by_key(|(_, wins)| std::cmp::Reverse(*wins));
        found.into_iter().map(|(program, _)| program).collect()
    }
}

impl<'a, 'm> Proposer<'a, 'm> {
    /// Proposes programs of those `wanted` for the matrix and task of `input`; the same for the
    /// same seed.
    #[must_use]
    pub fn new(
        input: &'a PolicyInput<'m>,
        seed: u64,
        wanted: &'a dyn Fn(&Program) -> bool,
    ) -> Self {
        Self { input, wanted, taken: BTreeSet::new(), random: SplitMix64::new(seed) }
    }

    fn mask(&self) -> Mask<'a> {
        Mask::legal(&self.input.stats, self.input.task)
    }

    /// `count` programs, fewer when the mask does not offer as many; none twice, neither here nor
    /// in another call.
    ///
    /// # Errors
    /// When the cost model fails.
    pub fn first(
        &mut self,
        count: usize,
        pool: &Pool,
        winners: &Winners,
    ) -> Result<Vec<Program>, PolicyError> {
        let quarter = count.div_ceil(4);
        let mut found = Vec::new();
        let mut ranker = CostRanker.read(self.input)?;
        // Enough of them for those that are wanted.
        let predicted = diverse_search(&mut *ranker, self.mask(), 4 * quarter)?;
        self.take(&mut found, quarter, predicted.into_iter().map(|hypothesis| hypothesis.program));
        let mask = self.mask();
        let fits = |program: &Program| is_offered(mask, program);
        let winners = winners.of(self.input.task).into_iter().filter(|program| fits(program));
        self.take(&mut found, quarter, winners.cloned());
        let shared = self.of_pool(pool).into_iter().filter(fits);
        let wanted = count.saturating_sub(found.len() + quarter);
        self.take(&mut found, wanted, shared);
        let mut random = SplitMix64::new(self.random.bits());
        let own = (0..ATTEMPTS * count).filter_map(|_| random_walk(mask, &mut random));
        let wanted = count.saturating_sub(found.len());
        self.take(&mut found, wanted, own);
        Ok(found)
    }

    /// Proposes the programs of a list that are for the task and that the mask offers, none that
    /// was proposed before.
    #[must_use]
    pub fn of_list(&mut self, list: &[Program]) -> Vec<Program> {
        let (mask, task) = (self.mask(), self.input.task);
        let offered =
            list.iter().filter(|program| program.task == task && is_offered(mask, program));
        let mut found = Vec::new();
        self.take(&mut found, list.len(), offered.cloned());
        found
    }

    /// Up to `count` programs that differ from one of `best` in a choice, none that was proposed
    /// before.
    #[must_use]
    pub fn mutations(&mut self, count: usize, best: &[Program]) -> Vec<Program> {
        let mut found = Vec::new();
        let (mask, mut random) = (self.mask(), SplitMix64::new(self.random.bits()));
        let parents = best.iter().cycle().take(if best.is_empty() { 0 } else { ATTEMPTS * count });
        let mutants = parents.filter_map(|parent| mutate(mask, parent, &mut random));
        self.take(&mut found, count, mutants);
        found
    }

    /// The pool from a random place on, one of each family in turn.
    fn of_pool(&mut self, pool: &Pool) -> Vec<Program> {
        let starts: Vec<usize> =
            pool.families.iter().map(|family| self.random.below(family.len())).collect();
        let longest = pool.families.iter().map(Vec::len).max().unwrap_or(0);
        let mut shared = Vec::new();
        for round in 0..longest {
            for (family, start) in pool.families.iter().zip(&starts) {
                if round < family.len() {
                    shared.extend(family.get((start + round) % family.len()).cloned());
                }
            }
        }
        shared
    }

    /// Moves up to `count` that were not proposed before from `offered`, all legal, to `found`.
    fn take(
        &mut self,
        found: &mut Vec<Program>,
        count: usize,
        offered: impl Iterator<Item = Program>,
    ) {
        let mut wanted = count;
        for program in offered {
            if wanted == 0 {
                break;
            }
            if (self.wanted)(&program) && self.taken.insert(program.tokens()) {
                found.push(program);
                wanted -= 1;
            }
        }
    }
}

/// Measures proposals of all kinds, and then changes of the fastest.
#[derive(Debug)]
pub struct Stratified<'a> {
    collection: &'a Collection,
    list: Vec<Program>,
    pools: BTreeMap<Task, Pool>,
    winners: Mutex<Winners>,
}

impl<'a> Stratified<'a> {
    /// Proposes as many programs as the collection says, after those of a list.
    #[must_use]
    pub fn new(collection: &'a Collection, list: Vec<Program>) -> Self {
        let pool = |&task| {
            let seed = collection.corpus.seed;
            (task, Pool::draw(task, collection.pool, seed, &|program| collection.wants(program)))
        };
        let pools = collection.tasks.iter().map(pool).collect();
        Self { collection, list, pools, winners: Mutex::default() }
    }

    /// What won stays whole whoever panics.
    fn winners(&self) -> MutexGuard<'_, Winners> {
        self.winners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Experiment for Stratified<'_> {
    fn run(
        &self,
        _: (u64, &Recipe),
        input: &PolicyInput<'_>,
        seed: u64,
        measure: &mut Measure<'_>,
    ) -> Result<(), Stopped> {
        let Some(pool) = self.pools.get(&input.task) else { return Ok(()) };
        let wanted = |program: &Program| self.collection.wants(program);
        let mut proposer = Proposer::new(input, seed, &wanted);
        let mut fastest = Fastest::new(WINNERS);
        let listed = proposer.of_list(&self.list);
        fastest.add(&listed, &measure(&listed)?);
        let won = self.winners().clone();
        let first = proposer.first(self.collection.programs, pool, &won)?;
        fastest.add(&first, &measure(&first)?);
        for _ in 0..self.collection.rounds_of_mutations {
            let mutants = proposer.mutations(self.collection.mutations, &fastest.programs());
            fastest.add(&mutants, &measure(&mutants)?);
        }
        let mut winners = self.winners();
        for program in fastest.programs() {
            winners.add(&program);
        }
        Ok(())
    }
}

/// The fastest programs of a matrix and task.
#[derive(Clone, Debug)]
pub struct Fastest {
    count: usize,
    found: Vec<(f64, Program)>,
}

impl Fastest {
    /// None yet, and so many at most.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { count, found: Vec::new() }
    }

    /// Adds what was measured; a program that is known keeps its time.
    pub fn add(&mut self, programs: &[Program], outcomes: &[Outcome]) {
        for (program, outcome) in programs.iter().zip(outcomes) {
            if let Some(seconds) = seconds(outcome)
                && self.found.iter().all(|(_, known)| known != program)
            {
                self.found.push((seconds, program.clone()));
            }
        }
        self.found.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.found.truncate(self.count);
    }

    /// The programs, fastest first.
    #[must_use]
    pub fn programs(&self) -> Vec<Program> {
        self.found.iter().map(|(_, program)| program.clone()).collect()
    }
}

/// The time that decides: with a warm cache in a chain, or else with a cold one.
pub(crate) fn seconds(outcome: &Outcome) -> Option<f64> {
    median(outcome, Regime::Warm).or_else(|| median(outcome, Regime::Cold))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Arc;

    use sparserl_core::target::Target;
    use sparserl_core::task::{Dtype, Operation, Values};

    use super::*;

    fn tasks() -> [Task; 4] {
        let spmm = |columns| Operation::SpMM { columns: NonZeroU32::new(columns).unwrap() };
        [
            Task::new(Operation::SpMV, Dtype::F32),
            Task::new(spmm(8), Dtype::F32),
            Task::new(spmm(130), Dtype::F64),
            Task::new(Operation::SpMV, Dtype::F64).with_values(Values::Variable),
        ]
    }

    #[test]
    fn the_reference_is_legal_for_every_matrix() {
        for task in tasks() {
            let reference = reference(task).unwrap();
            assert_eq!(reference.task, task);
            for matrix in [generate::rmat(8, 4, 1), generate::one_dense_row(70, 90_000, 1)] {
                let stats = MatrixStats::new(matrix.view());
                assert!(is_offered(Mask::legal(&stats, task), &reference), "{task}");
            }
        }
    }

    #[test]
    fn proposals_are_legal_different_and_of_many_layouts() {
        let task = tasks()[0];
        let pool = Pool::draw(task, 100, 1, &|_| true);
        assert_eq!(pool.programs().count(), 100);
        assert!(pool.families.len() >= 10);
        let matrix = generate::uniform(500, 400, 9, 3).cast::<f32>().unwrap();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let input = PolicyInput::new(stats.clone(), task, Target::H200);
        let mut winners = Winners::default();
        let won = reference(task).unwrap();
        winners.add(&won);
        let mut proposer = Proposer::new(&input, 7, &|_| true);
        let first = proposer.first(60, &pool, &winners).unwrap();
        assert_eq!(first.len(), 60);
        assert!(first.contains(&won));
        let mutants = proposer.mutations(20, &first[..3]);
        assert_eq!(mutants.len(), 20);
        let mut seen = BTreeSet::new();
        let mask = Mask::legal(&stats, task);
        for program in first.iter().chain(&mutants) {
            assert!(is_offered(mask, program));
            assert!(seen.insert(program.tokens()));
        }
        assert!(first.iter().map(family).collect::<BTreeSet<_>>().len() >= 10);
        assert!(
            first.iter().filter(|program| pool.programs().any(|p| p == *program)).count() >= 10
        );
        let again = Proposer::new(&input, 7, &|_| true).first(60, &pool, &winners).unwrap();
        assert_eq!(first, again);
    }

    #[test]
    fn winners_come_by_how_often_they_won() {
        let task = tasks()[0];
        let pool = Pool::draw(task, 3, 1, &|_| true);
        let programs: Vec<&Program> = pool.programs().collect();
        let mut winners = Winners::default();
        for program in [programs[0], programs[1], programs[1], programs[2], programs[1]] {
            winners.add(program);
        }
        assert_eq!(winners.of(task)[0], programs[1]);
        assert_eq!(winners.of(task).len(), 3);
        assert!(winners.of(tasks()[1]).is_empty());
    }

    #[test]
    fn what_is_listed_is_proposed_once_where_it_is_offered() {
        let [task, other, ..] = tasks();
        let matrix = generate::uniform(500, 400, 9, 3).cast::<f32>().unwrap();
        let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), task, Target::H200);
        let list = [reference(task).unwrap(), reference(other).unwrap()];
        let mut proposer = Proposer::new(&input, 7, &|_| true);
        assert_eq!(proposer.of_list(&list), list[..1]);
        assert!(proposer.of_list(&list).is_empty());
        let mut winners = Winners::default();
        winners.add(&list[0]);
        let first = proposer.first(20, &Pool::draw(task, 20, 1, &|_| true), &winners).unwrap();
        assert!(!first.contains(&list[0]));
    }
}
