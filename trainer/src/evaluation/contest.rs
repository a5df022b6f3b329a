//! The experiment that compares choosers: picks of all of them, a search for the oracle, and then
//! all timed in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sparserl_core::decode::{Chooser, PolicyInput};
use sparserl_core::language::Program;
use sparserl_core::outcome::{Objective, Regime};
use sparserl_core::search::{Round, Search, SearchSettings};
use sparserl_core::target::Target;
use sparserl_core::task::Task;

use super::result::write_case;
use super::{CaseResult, ONE_REGIME, Oracle, Picks, TimedProgram};
use crate::collect::{BETWEEN_REFERENCES, Experiment, Measure, Stopped};
use crate::configuration::Contests;
use crate::corpus::Recipe;
use crate::measured::{MeasuredCase, MeasuredProgram, median};
use crate::proposals::reference;

/// The fastest so many programs of the search are timed in the end, for each regime.
const KEPT: usize = 5;
/// The fastest so many programs that were recorded before take part in the search, for each regime.
const RECORDED: usize = 12;

/// Choosers that are asked for an objective.
pub type Contestants<'a> = Vec<(Objective, Vec<Box<dyn Chooser + 'a>>)>;

/// Seconds in each of [`ONE_REGIME`], where something was timed.
type Times = [Option<f64>; ONE_REGIME.len()];

/// Compares choosers with each other and with a search.
pub struct Contest<'a> {
    settings: &'a Contests,
    contestants: Contestants<'a>,
    recorded: BTreeMap<(String, Task, Target), &'a MeasuredCase>,
    results: PathBuf,
}

/// What a chooser picks for a regime, best first; at least one program.
struct Picked<'c> {
    chooser: &'c str,
    regime: Regime,
    programs: Vec<Program>,
}

impl<'a> Contest<'a> {
    /// Compares the contestants of each of [`ONE_REGIME`], and writes a [`CaseResult`] for each
    /// matrix and task into the folder `results`. What was recorded of a matrix before counts as
    /// searched.
    #[must_use]
    pub fn new(
        settings: &'a Contests,
        contestants: Contestants<'a>,
        recorded: &'a [MeasuredCase],
        results: PathBuf,
    ) -> Self {
        let named =
            |case: &'a MeasuredCase| ((case.recipe.to_string(), case.task, case.target), case);
        let recorded = recorded.iter().map(named).collect();
        Self { settings, contestants, recorded, results }
    }

    /// What each chooser picks for each regime.
    fn picks(&self, input: &PolicyInput<'_>) -> Result<Vec<Picked<'_>>, Stopped> {
        let mut picks = Vec::new();
        for (objective, regime) in ONE_REGIME {
            let asked = self.contestants.iter().filter(|(of, _)| *of == objective);
            for chooser in asked.flat_map(|(_, choosers)| choosers) {
                let chosen = chooser.choose(input, objective, self.settings.picks)?;
                let mut programs: Vec<Program> =
                    chosen.into_iter().map(|choice| choice.program).collect();
                // Who has no idea still has to run something.
                if programs.is_empty() {
                    programs.extend(reference(input.task));
                }
                picks.push(Picked { chooser: chooser.name(), regime, programs });
            }
        }
        Ok(picks)
    }
}

impl Experiment for Contest<'_> {
    fn run(
        &self,
        (shard, recipe): (u64, &Recipe),
        input: &PolicyInput<'_>,
        seed: u64,
        measure: &mut Measure<'_>,
    ) -> Result<(), Stopped> {
        let picks = self.picks(input)?;
        let picked: Vec<&Program> = picks.iter().flat_map(|picked| &picked.programs).collect();
        let recorded = self.recorded.get(&(recipe.to_string(), input.task, input.target));
        let known = recorded.map_or(Vec::new(), |case| fastest_of(case));
        let first = distinct(picked.iter().copied().chain(known));

        let generation = self.settings.mutations;
        let wanted = first.len() + self.settings.rounds_of_mutations * generation;
        let searches = search(input, &first, (generation, wanted), seed, measure)?;
        let [cold, warm] = searches.each_ref().map(|search| search.best(KEPT));
        let (Some((_, coldest)), Some((_, warmest))) = (cold.first(), warm.first()) else {
            return Ok(());
        };

        let found = cold.iter().chain(&warm).map(|(_, program)| *program);
        let all = distinct(picked.iter().copied().chain(found));
        let times = timed_beside([coldest, warmest], &all, measure)?;
        let timed = |program: &Program| {
            let [cold, warm] = times.get(program).copied().unwrap_or_default();
            TimedProgram { program: program.to_string(), cold, warm }
        };
        let before = recorded.into_iter().flat_map(|case| &case.programs);
        let before = before.filter(|known| !searches[0].knows(&known.program)).count();
        let result = CaseResult {
            recipe: recipe.to_string(),
            family: recipe.family().to_owned(),
            task: input.task.to_string(),
            choosers: picks
                .iter()
                .map(|Picked { chooser, regime, programs }| Picks {
                    chooser: (*chooser).to_owned(),
                    regime: *regime,
                    programs: programs.iter().map(timed).collect(),
                })
                .collect(),
            oracle: Oracle { cold: timed(coldest), warm: timed(warmest) },
            searched: searches[0].measured() + before,
        };
        let written = write_case(&result, &self.results, shard, input.task);
        written.map_err(|(path, source)| Stopped::Write { path, source })
    }
}

/// Searches for the fastest programs of each of [`ONE_REGIME`], from the `first` ones, until
/// `wanted` were measured. What one search asks for the other one is told, too.
fn search<'m>(
    input: &PolicyInput<'m>,
    first: &[Program],
    (generation, wanted): (usize, usize),
    seed: u64,
    measure: &mut Measure<'_>,
) -> Result<[Search<'m>; ONE_REGIME.len()], Stopped> {
    let share = generation.div_ceil(ONE_REGIME.len());
    let settings = SearchSettings { generation: share, ..SearchSettings::default() };
    let mut searches = ONE_REGIME.map(|_| {
        Search::new(input.stats.clone(), input.task, first.iter().cloned(), settings, seed)
    });
    loop {
        let rounds: Vec<Round> = searches.iter().filter_map(Search::ask).collect();
        // The fastest of the last generation are timed again, too.
        let begins = rounds.iter().all(|round| round.rung == 0);
        if begins && searches[0].measured() >= wanted {
            break;
        }
        let programs = distinct(rounds.iter().flat_map(|round| &round.programs));
        if programs.is_empty() {
            break;
        }
        let outcomes = measure(&programs)?;
        for (search, (objective, _)) in searches.iter_mut().zip(ONE_REGIME) {
            let times: Vec<_> =
                outcomes.iter().map(|o| objective.seconds(&o.measurement()?.timing)).collect();
            search.tell(&programs, &times);
        }
    }
    Ok(searches)
}

/// Seconds of programs in each of [`ONE_REGIME`], as if all were timed in turn: each is, with the
/// program that was `fastest` in the regime, and what that takes more or less from batch to batch
/// is taken out.
fn timed_beside(
    fastest: [&Program; ONE_REGIME.len()],
    programs: &[Program],
    measure: &mut Measure<'_>,
) -> Result<BTreeMap<Program, Times>, Stopped> {
    let mut times: BTreeMap<Program, Times> = BTreeMap::new();
    let mut of_fastest = Times::default();
    for some in programs.chunks(BETWEEN_REFERENCES - ONE_REGIME.len()) {
        let asked = distinct(fastest.into_iter().chain(some));
        let outcomes = measure(&asked)?;
        for (place, (_, regime)) in ONE_REGIME.into_iter().enumerate() {
            let seconds = |program: &Program| {
                let at = asked.iter().position(|other| other == program)?;
                median(outcomes.get(at)?, regime)
            };
            let Some(here) = seconds(fastest[place]) else { continue };
            let first = *of_fastest[place].get_or_insert(here);
            for program in &asked {
                let scaled = seconds(program).map(|own| own * first / here);
                times.entry(program.clone()).or_default()[place] = scaled;
            }
        }
    }
    Ok(times)
}

/// The fastest programs of a case in each regime.
fn fastest_of(case: &MeasuredCase) -> Vec<&Program> {
    let of_regime = |(_, regime)| {
        let speed = |known: &MeasuredProgram| Some(known.speed(regime)?.relative);
        let right = case.programs.iter().filter(|known| known.is_right());
        let mut timed: Vec<_> = right.filter_map(|k| Some((speed(k)?, &k.program))).collect();
        timed.sort_by(|a, b| b.0.total_cmp(&a.0));
        timed.into_iter().take(RECORDED).map(|(_, program)| program)
    };
    ONE_REGIME.into_iter().flat_map(of_regime).collect()
}

/// Each program once, in the order in which they come.
fn distinct<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Vec<Program> {
    let mut seen = BTreeSet::new();
    programs.into_iter().filter(|program| seen.insert(*program)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use sparserl_core::outcome::{Measurement, Outcome, Samples, Timing};

    use super::*;

    #[test]
    fn what_drifts_from_batch_to_batch_is_taken_out() {
        let program = |block: u32, lanes: u32, unroll: u32| {
            let part = "keep csr index=u32 values=plain cache=cached vector=1";
            let part = format!("{part} lanes={lanes} unroll={unroll}");
            Program::parse(&format!("sparserl 7\nspmv f32\nblock {block}\n{part}\n")).unwrap()
        };
        let mut programs = Vec::new();
        for unroll in [1, 4] {
            for block in [64, 128, 256, 512] {
                programs.extend([1, 2, 4, 8, 16, 32].map(|lanes| program(block, lanes, unroll)));
            }
        }
        // As they come, from 1 to 48 µs; clocks fall by a tenth with each batch, and one is wrong.
        let own = |program: &Program| programs.iter().position(|other| other == program).unwrap();
        let mut batches = 0;
        let mut measure = |asked: &[Program]| {
            let slower = 1.1_f64.powi(batches);
            batches += 1;
            let outcome = |program: &Program| {
                let seconds = 1e-6 * (own(program) + 1) as f64 * slower;
                let samples = |seconds: f64| Samples::try_from(vec![seconds]).ok();
                let (cold, warm) = (samples(2.0 * seconds), samples(seconds));
                match own(program) {
                    7 => Outcome::CompileFailed { reason: "no".to_owned() },
                    _ => Outcome::Measured(Measurement {
                        checks: 1,
                        worst_ratio: 0.5,
                        timing: Timing { cold, warm, back_to_back: None },
                    }),
                }
            };
            Ok(asked.iter().map(outcome).collect())
        };
        let fastest = [&programs[1], &programs[0]];
        let times = timed_beside(fastest, &programs, &mut measure).unwrap();
        assert_eq!((batches, times.len()), (2, programs.len()));
        for (place, program) in programs.iter().enumerate() {
            let [cold, warm] = times[program];
            let near =
                |time: Option<f64>, expected: f64| (time.unwrap() / expected - 1.0).abs() < 1e-9;
            if place == 7 {
                assert_eq!((cold, warm), (None, None));
            } else {
                let expected = 1e-6 * (place + 1) as f64;
                assert!(
                    near(cold, 2.0 * expected) && near(warm, expected),
                    "{place}: {cold:?} {warm:?}"
                );
            }
        }
    }
}
