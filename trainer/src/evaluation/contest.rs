use std::path::PathBuf;

use sparserl_core::decode::PolicyInput;
use sparserl_core::language::Program;

use super::{CaseResult, Chooser, Picks, TimedProgram};
use crate::collect::{Experiment, Measure, Stopped};
use crate::configuration::Contests;
use crate::corpus::Recipe;
use crate::proposals::{Fastest, Proposer, reference};

/// The fastest so many programs are changed in the search, and timed in the end.
const KEPT: usize = 5;

/// Compares choosers with each other and with a search.
pub struct Contest<'a> {
    settings: &'a Contests,
    choosers: Vec<Box<dyn Chooser + 'a>>,
    results: PathBuf,
}

impl<'a> Contest<'a> {
    /// Writes a [`CaseResult`] for each matrix and task into the folder `results`, which exists.
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
            let mut chosen = chooser.choose(input, self.settings.picks)?;
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
        let mut fastest = Fastest::new(KEPT);
        fastest.add(&all, &measure(&all)?);
        let mut searched = all.len();
        let mut proposer = Proposer::new(input, seed);
        for _ in 0..self.settings.rounds_of_mutations {
            let mutants = proposer.mutations(self.settings.mutations, &fastest.programs());
            fastest.add(&mutants, &measure(&mutants)?);
            searched += mutants.len();
        }
        let found = fastest.programs();
        let Some(oracle) = found.first() else { return Ok(()) };
        all.extend(
            found.iter().filter(|program| !all.contains(program)).cloned().collect::<Vec<_>>(),
        );

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
            searched,
        };
        let written = result.write(&self.results, shard, input.task);
        written.map_err(|(path, source)| Stopped::Write { path, source })
    }
}
