use std::collections::BTreeSet;
use std::path::PathBuf;

use sparserl_core::decode::{Chooser, PolicyInput};
use sparserl_core::language::Program;
use sparserl_core::search::{Search, SearchSettings};

use super::result::write_case;
use super::{CaseResult, Picks, TimedProgram};
use crate::collect::{Experiment, Measure, Stopped};
use crate::configuration::Contests;
use crate::corpus::Recipe;
use crate::proposals::{reference, seconds};

/// The fastest so many programs of the search are timed in the end.
const KEPT: usize = 5;

/// Compares choosers with each other and with a search.
pub struct Contest<'a> {
    settings: &'a Contests,
    choosers: Vec<Box<dyn Chooser + 'a>>,
    results: PathBuf,
}

impl<'a> Contest<'a> {
    /// Writes a [`CaseResult`] for each matrix and task into the folder `results`.
    #[must_use]
    pub fn new(
        settings: &'a Contests,
        choosers: Vec<Box<dyn Chooser + 'a>>,
        results: PathBuf,
    ) -> Self {
        Self { settings, choosers, results }
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
        let mut all: Vec<Program> = Vec::new();
        let mut picks = Vec::new();
        for chooser in &self.choosers {
            let chosen = chooser.choose(input, self.settings.picks)?;
            let mut chosen: Vec<Program> =
                chosen.into_iter().map(|choice| choice.program).collect();
            // Who has no idea still has to run something.
            if chosen.is_empty() {
                chosen.extend(reference(input.task));
            }
            for program in &chosen {
                if !all.contains(program) {
                    all.push(program.clone());
                }
            }
            picks.push((chooser.name(), chosen));
        }
        let generation = self.settings.mutations;
        let settings = SearchSettings { generation, ..SearchSettings::default() };
        let wanted = all.len() + self.settings.rounds_of_mutations * generation;
        let first = all.iter().cloned();
        let mut search = Search::new(input.stats.clone(), input.task, first, settings, seed);
        while search.measured() < wanted
            && let Some(round) = search.ask()
        {
            let outcomes = measure(&round.programs)?;
            let times: Vec<_> = outcomes.iter().map(seconds).collect();
            search.tell(&round.programs, &times);
        }
        let found = search.best(KEPT);
        let Some((_, oracle)) = found.first() else { return Ok(()) };
        all.extend(found.iter().map(|(_, program)| (*program).clone()));
        let mut seen = BTreeSet::new();
        all.retain(|program| seen.insert(program.clone()));

        let outcomes = measure(&all)?;
        let timed = |program: &Program| {
            let place = all.iter().position(|other| other == program);
            TimedProgram::new(program, place.and_then(|place| outcomes.get(place)))
        };
        let result = CaseResult {
            recipe: recipe.to_string(),
            family: recipe.family().to_owned(),
            task: input.task.to_string(),
            choosers: picks
                .into_iter()
                .map(|(chooser, programs)| Picks {
                    chooser: chooser.to_owned(),
                    programs: programs.iter().map(timed).collect(),
                })
                .collect(),
            oracle: timed(oracle),
            searched: search.measured(),
        };
        let written = write_case(&result, &self.results, shard, input.task);
        written.map_err(|(path, source)| Stopped::Write { path, source })
    }
}
