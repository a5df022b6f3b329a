//! A search for the fastest program of a matrix and task by measuring: it says what to measure
//! next, and is told times. It may be ended at any moment, and goes on from what was measured.
//!
//! ```text
//!   seeds, offspring ─► screened ─► the fastest of them, and ─► the fastest of these ─► …
//!           ▲                       of all before, once more    with more samples
//!           └───── parents: the fastest of all, several families ◄──────┘
//! ```
//!
//! Each generation is one bracket of successive halving (Jamieson and Talwalkar, "Non-stochastic
//! best arm identification and hyperparameter optimization", 2016): many programs are screened with
//! few samples, and those that seem fastest are timed again with more, in turn with the fastest of
//! all generations before. A program's time is the mean of what it was timed again with: who was
//! lucky when it was screened gains a second look, and nothing else.
//!
//! What is asked for next follows from the seed and from what was told, in its order, and from
//! nothing else. A search that is told again what another was told goes on as that one would have.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::decode::{cross, family, is_offered, mutate, random_walk, regrow};
use crate::language::{Mask, Program, Word};
use crate::random::SplitMix64;
use crate::structure::MatrixStats;
use crate::task::Task;

/// Programs that offspring descends from.
const PARENTS: usize = 16;
/// Parents of one family, at most.
const OF_ONE_FAMILY: usize = 4;
/// Attempts at a new program for each that is wanted, before there are taken to be no more.
const ATTEMPTS: usize = 16;
/// Who took this much longer than the fastest when it was screened is not timed again: times of
/// different rounds differ by less.
const HOPELESS: f64 = 1.5;

/// How a generation is made and thinned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// Programs that are screened in a generation; at least one.
    pub generation: usize,
    /// Rounds of a generation, the screening included; at least one.
    pub rungs: u32,
    /// One of so many goes on to the next round, which takes so many times the samples; at least 2.
    pub reduction: u32,
    /// The fastest so far that are timed again in turn with the newly screened.
    pub elite: usize,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { generation: 32, rungs: 3, reduction: 4, elite: 4 }
    }
}

/// Programs that are to be measured in turn with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its place in its generation, from 0, which is the screening.
    pub rung: u32,
    /// How many times the samples of a screening it deserves.
    pub effort: u32,
    /// None of them twice; at least one.
    pub programs: Vec<Program>,
}

/// A search for one matrix and task.
#[derive(Clone, Debug)]
pub struct Search<'m> {
    stats: Arc<MatrixStats<'m>>,
    task: Task,
    settings: SearchSettings,
    seed: u64,
    /// Measured before anything else, in this order.
    first: Vec<Program>,
    known: BTreeMap<Program, Standing>,
    /// That it was told.
    rounds: u64,
    last: Option<Told>,
}

/// The last round that it was told.
#[derive(Clone, Debug)]
struct Told {
    rung: u32,
    programs: usize,
    /// The right ones, fastest first.
    ranked: Vec<(f64, Program)>,
}

/// What is known of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    /// It is no kernel, or no right one.
    Refused,
    /// Seconds when it was screened, and the sum of those when it was timed again, by the effort of
    /// each round.
    Right { screened: f64, seconds: f64, effort: f64 },
}

impl Standing {
    /// Whether it was only screened, and its seconds; `None` for what is not right.
    fn time(self) -> Option<(bool, f64)> {
        match self {
            Self::Refused => None,
            Self::Right { screened, effort: 0.0, .. } => Some((true, screened)),
            Self::Right { seconds, effort, .. } => Some((false, seconds / effort)),
        }
    }
}

impl<'m> Search<'m> {
    /// A search that measures `first` before anything else, as far as the matrix can have it.
    #[must_use]
    pub fn new(
        stats: Arc<MatrixStats<'m>>,
        task: Task,
        first: impl IntoIterator<Item = Program>,
        settings: SearchSettings,
        seed: u64,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let mask = Mask::legal(&stats, task);
        let is_new = |program: &Program| is_offered(mask, program) && seen.insert(program.clone());
        let first = first.into_iter().filter(is_new).collect();
        let (known, rounds, last) = (BTreeMap::new(), 0, None);
        Self { stats, task, settings, seed, first, known, rounds, last }
    }

    /// What to measure next; `None` when there is nothing that was not measured. The same until it
    /// is told something.
    #[must_use]
    pub fn ask(&self) -> Option<Round> {
        let next = self.last.as_ref().and_then(|last| {
            let rung = last.rung + 1;
            (rung < self.settings.rungs).then(|| (rung, self.go_on(last)))
        });
        let (rung, programs) = match next {
            Some((rung, programs)) if !programs.is_empty() => (rung, programs),
            _ => (0, self.generation()),
        };
        (!programs.is_empty()).then(|| Round { rung, effort: self.effort(rung), programs })
    }

    /// Takes the outcome of a round, this search's or another one's: for each program its seconds,
    /// or `None` where it is no right kernel. Outcomes for which there is no program count for
    /// nothing.
    pub fn tell(&mut self, programs: &[Program], seconds: &[Option<f64>]) {
        let told = || programs.iter().zip(seconds);
        if told().next().is_none() {
            return;
        }
        let is_screening = told().any(|(program, _)| !self.known.contains_key(program));
        let rung = match &self.last {
            Some(last) if !is_screening => last.rung + 1,
            _ => 0,
        };
        let effort = f64::from(self.effort(rung));
        for (program, &seconds) in told() {
            let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            match (self.known.get_mut(program), seconds) {
                (Some(Standing::Refused), _) => {}
                (Some(standing), None) => *standing = Standing::Refused,
                (Some(Standing::Right { seconds: sum, effort: weight, .. }), Some(seconds)) => {
                    *sum += effort * seconds;
                    *weight += effort;
                }
                (None, None) => drop(self.known.insert(program.clone(), Standing::Refused)),
                (None, Some(screened)) => {
                    let right = Standing::Right { screened, seconds: 0.0, effort: 0.0 };
                    self.known.insert(program.clone(), right);
                }
            }
        }
        let mut ranked: Vec<(f64, Program)> =
            told().filter_map(|(program, seconds)| Some(((*seconds)?, program.clone()))).collect();
        ranked.retain(|(_, program)| self.known.get(program) != Some(&Standing::Refused));
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.last = Some(Told { rung, programs: told().count(), ranked });
        self.rounds += 1;
    }

    /// Takes back that a program is right, as when a closer look has shown that it is not.
    pub fn refuse(&mut self, program: &Program) {
        self.known.insert(program.clone(), Standing::Refused);
        if let Some(last) = &mut self.last {
            last.ranked.retain(|(_, ranked)| ranked != program);
        }
    }

    /// Whether a program was measured.
    #[must_use]
    pub fn knows(&self, program: &Program) -> bool {
        self.known.contains_key(program)
    }

    /// Programs that were measured.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.known.len()
    }

    /// How many of the measured programs are right.
    #[must_use]
    pub fn right(&self) -> usize {
        self.known.values().filter(|standing| **standing != Standing::Refused).count()
    }

    /// The fastest programs with their seconds, at most so many: those that were only screened
    /// after those that were timed again.
    #[must_use]
    pub fn best(&self, count: usize) -> Vec<(f64, &Program)> {
        self.ranking().into_iter().take(count).collect()
    }

    /// Programs of which one is the fastest in all likelihood, at most so many: the fastest so far,
    /// and for up to a quarter of the places those that wait to be timed again.
    #[must_use]
    pub fn finalists(&self, count: usize) -> Vec<Program> {
        let last = self.last.as_ref().filter(|last| last.rung == 0 && self.settings.rungs > 1);
        let mut waiting = last.map_or(Vec::new(), |last| self.go_on(last));
        waiting.truncate(count / 4);
        let ranking = self.ranking().into_iter().map(|(_, program)| program);
        let mut finalists: Vec<Program> =
            ranking.filter(|program| !waiting.contains(program)).cloned().collect();
        finalists.truncate(count - waiting.len());
        finalists.extend(waiting);
        finalists
    }

    fn mask(&self) -> Mask<'_> {
        Mask::legal(&self.stats, self.task)
    }

    fn effort(&self, rung: u32) -> u32 {
        // What another search was told may have more rounds in a row than a generation of this one.
        let rung = rung.min(self.settings.rungs.saturating_sub(1));
        self.settings.reduction.max(2).saturating_pow(rung)
    }

    /// The right programs, as [`best`](Self::best) orders them.
    fn ranking(&self) -> Vec<(f64, &Program)> {
        let time = |(program, standing): (_, &Standing)| Some((standing.time()?, program));
        let mut right: Vec<((bool, f64), &Program)> = self.known.iter().filter_map(time).collect();
        right.sort_by(|((a, x), _), ((b, y), _)| a.cmp(b).then(x.total_cmp(y)));
        right.into_iter().map(|((_, seconds), program)| (seconds, program)).collect()
    }

    /// Who goes on from a round to the next; empty when nobody deserves it.
    fn go_on(&self, last: &Told) -> Vec<Program> {
        let share = last.programs.div_ceil(self.settings.reduction.max(2) as usize);
        let fastest = self.ranking().first().map_or(f64::INFINITY, |(seconds, _)| *seconds);
        // One alone has nobody to be compared with.
        let hopeful = last.ranked.iter().take(share.max(2));
        let hopeful = hopeful.filter(|(seconds, _)| *seconds <= HOPELESS * fastest);
        let mut chosen: Vec<Program> = hopeful.map(|(_, program)| program.clone()).collect();
        if last.rung == 0 && !chosen.is_empty() {
            let timed = self.known.iter().filter_map(|(program, standing)| match standing.time() {
                Some((false, seconds)) => Some((seconds, program)),
                _ => None,
            });
            let mut elite: Vec<(f64, &Program)> = timed.collect();
            elite.retain(|(_, program)| !chosen.contains(program));
            elite.sort_by(|a, b| a.0.total_cmp(&b.0));
            chosen.extend(elite.into_iter().take(self.settings.elite).map(|(_, p)| p.clone()));
        }
        chosen
    }

    /// New programs: what is to be measured first, and then offspring.
    fn generation(&self) -> Vec<Program> {
        let wanted = self.settings.generation.max(1);
        let mut random = SplitMix64::new(SplitMix64::after(self.seed, self.rounds).bits());
        let first = self.first.iter().filter(|program| !self.knows(program));
        let mut found: Vec<Program> = first.take(wanted).cloned().collect();
        let mut taken: BTreeSet<Program> = found.iter().cloned().collect();
        let parents = self.parents();
        for attempt in 0..2 * ATTEMPTS * wanted {
            if found.len() >= wanted {
                break;
            }
            // Where the neighbourhood of the parents is used up, there may be others.
            let child = match attempt < ATTEMPTS * wanted {
                true => self.offspring(&parents, &mut random),
                false => random_walk(self.mask(), &mut random),
            };
            if let Some(child) = child.filter(|child| !self.knows(child))
                && taken.insert(child.clone())
            {
                found.push(child);
            }
        }
        found
    }

    /// The fastest, fastest first, not too many of one family.
    fn parents(&self) -> Vec<&Program> {
        let mut families = BTreeMap::<Vec<Word>, usize>::new();
        let ranking = self.ranking().into_iter().map(|(_, program)| program);
        let is_wanted = |program: &&Program| {
            let taken = families.entry(family(program)).or_insert(0);
            *taken += 1;
            *taken <= OF_ONE_FAMILY
        };
        ranking.filter(is_wanted).take(PARENTS).collect()
    }

    /// A change of a parent, a cross of two, or now and then something else altogether.
    fn offspring(&self, parents: &[&Program], random: &mut SplitMix64) -> Option<Program> {
        let mask = self.mask();
        // The faster of two is more likely.
        let mut parent = || -> Option<&Program> {
            let place = random.below(parents.len()).min(random.below(parents.len()));
            parents.get(place).copied()
        };
        let (one, other) = (parent(), parent());
        let (Some(one), Some(other)) = (one, other) else { return random_walk(mask, random) };
        match random.below(20) {
            0..=9 => {
                let mut child = mutate(mask, one, random)?;
                // Half of them are changed again, half of those once more, …
                while random.below(2) == 0 {
                    child = mutate(mask, &child, random)?;
                }
                Some(child)
            }
            10..=13 => regrow(mask, one, random),
            14..=17 => cross(mask, one, other, random),
            _ => random_walk(mask, random),
        }
    }
}

#[cfg(test)]
mod tests;
