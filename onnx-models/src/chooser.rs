//! Chooses programs by a trained model.

use sparserl_core::decode::{
    Choice, Choices, Chooser, CostRanker, Diverse, Hypothesis, Policy as _, PolicyError,
    PolicyInput, beam_search,
};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Objective;

use crate::speeds::{ConditionedSpeedModel, MemberSpeeds, SpeedModel, expected_fastest, mean};

/// Programs of the policy's own beam that are considered.
const BEAM: usize = 48;
/// Programs of the cost model that are considered.
const OF_COST_MODEL: usize = 48;
/// Choices that are of the policy's own beam, before those of the cost model take part. A program
/// that the policy would not write is often one that it knows too little of to predict, so that the
/// fastest of these by prediction are less often fast; among eight they make up for what the beam
/// lacks.
const OF_BEAM_FIRST: usize = 4;

/// How programs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picking {
    /// What the decoder finds likeliest, in that order.
    Likeliest,
    /// Those of a beam, re-ranked by the ensemble.
    Reranked,
    /// Those of a beam, from the fifth on also those of the cost model, re-ranked by the ensemble.
    RerankedWithCostModel,
}

impl Picking {
    /// All ways of picking.
    pub const ALL: [Self; 3] = [Self::Likeliest, Self::Reranked, Self::RerankedWithCostModel];
}

/// A policy that writes programs and predicts their speeds, as a chooser.
///
/// The choices are not the programs with the highest predicted speeds, which are often all alike,
/// but those of which the fastest is expected to be fastest, by the members of the ensemble, in the
/// regimes of the objective. Their score is the speed predicted there: the mean of log2 relative to
/// the reference program. The likeliest are the same for all objectives.
#[derive(Debug)]
pub struct LearnedChooser<P> {
    name: String,
    policy: P,
    picking: Picking,
}

impl<P> LearnedChooser<P> {
    /// A chooser of this name.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: P, picking: Picking) -> Self {
        Self { name: name.into(), policy, picking }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: SpeedModel> LearnedChooser<P> {
    /// What it offers for an input.
    #[must_use]
    pub fn choices<'a>(
        &'a self,
        input: &'a PolicyInput<'a>,
        objective: Objective,
    ) -> LearnedChoices<'a, P> {
        LearnedChoices { chooser: self, input, objective, run: None }
    }
}

impl<P: SpeedModel + Send + Sync> Chooser for LearnedChooser<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        objective: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        self.choices(input, objective).first(count)
    }
}

/// What a [`LearnedChooser`] offers for one input and objective.
pub struct LearnedChoices<'a, P> {
    chooser: &'a LearnedChooser<P>,
    input: &'a PolicyInput<'a>,
    objective: Objective,
    run: Option<Run<'a>>,
}

/// A policy that has read its input, and what it found.
struct Run<'a> {
    reading: Box<dyn ConditionedSpeedModel + 'a>,
    /// Programs of its own beam, likeliest first.
    likeliest: Vec<Hypothesis>,
    /// Programs of the cost model, once they are considered.
    others: Option<Diverse>,
    /// Programs whose speeds are predicted.
    considered: Vec<(Program, MemberSpeeds)>,
}

impl<'a, P: SpeedModel> LearnedChoices<'a, P> {
    /// With programs of the cost model only where so many choices have some: to search for them
    /// takes as long as the beam.
    fn run(&mut self, count: usize) -> Result<&mut Run<'a>, PolicyError> {
        let Self { chooser, input, .. } = *self;
        let takes_part = chooser.picking == Picking::RerankedWithCostModel;
        let run = match &mut self.run {
            Some(run) => run,
            none => {
                let is_asked = takes_part && count > OF_BEAM_FIRST;
                none.insert(Run::new(&chooser.policy, input, is_asked)?)
            }
        };
        let of_beam = run.likeliest.len().min(OF_BEAM_FIRST);
        if takes_part && count > of_beam && run.others.is_none() {
            run.others = Some(of_cost_model(input)?);
        }
        Ok(run)
    }

    /// Predicted speeds of programs for the input.
    ///
    /// # Errors
    /// When the policy fails.
    pub fn speeds(&mut self, programs: &[Program]) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let run = self.run(0)?;
        run.consider(programs)?;
        Ok(programs.iter().filter_map(|program| run.known(program)).collect())
    }

    /// Whether a program is of the policy's own beam.
    ///
    /// # Errors
    /// When the policy fails.
    pub fn wrote(&mut self, program: &Program) -> Result<bool, PolicyError> {
        Ok(self.run(0)?.likeliest.iter().any(|written| written.program == *program))
    }
}

impl<P: SpeedModel> Choices for LearnedChoices<'_, P> {
    fn first(&mut self, count: usize) -> Result<Vec<Choice>, PolicyError> {
        let (objective, picking) = (self.objective, self.chooser.picking);
        let run = self.run(count)?;
        if picking == Picking::Likeliest {
            return Ok(run.likeliest.iter().take(count).cloned().map(Choice::from).collect());
        }
        let programs = run.offered(count);
        run.consider(&programs)?;
        let known = programs.iter().filter_map(|program| run.known(program));
        let speeds: Vec<MemberSpeeds> = known.collect();
        let choice = |place: usize| {
            let (program, speeds) = (programs.get(place)?, speeds.get(place)?);
            Some(Choice { program: program.clone(), score: f64::from(mean(speeds, objective)) })
        };
        let of_beam = &speeds[..run.likeliest.len().min(speeds.len())];
        let begun = expected_fastest(of_beam, &[], objective, count.min(OF_BEAM_FIRST));
        let places = expected_fastest(&speeds, &begun, objective, count);
        Ok(places.into_iter().filter_map(choice).collect())
    }
}

impl<'a> Run<'a> {
    fn new(
        policy: &impl SpeedModel,
        input: &PolicyInput<'a>,
        is_cost_model_asked: bool,
    ) -> Result<Self, PolicyError> {
        let mask = Mask::legal(&input.stats, input.task);
        let mut reading = policy.read_for_speeds(input)?;
        let mut others = None;
        // The cost model searches on other threads of the current rayon pool meanwhile.
        let likeliest = rayon::in_place_scope(|scope| {
            if is_cost_model_asked {
                scope.spawn(|_| others = Some(of_cost_model(input)));
            }
            beam_search(&mut *reading, mask, BEAM)
        })?;
        Ok(Self { reading, likeliest, others: others.transpose()?, considered: Vec::new() })
    }

    /// Programs of which `count` are to be chosen, each once.
    fn offered(&self, count: usize) -> Vec<Program> {
        // Where more are wanted than the beam has, those of the cost model fill up: they cost less.
        let others = self.others.as_ref().map(|others| others.pick(OF_COST_MODEL.max(count)));
        let mut programs: Vec<Program> = Vec::new();
        for Hypothesis { program, .. } in self.likeliest.iter().chain(others.iter().flatten()) {
            if !programs.contains(program) {
                programs.push(program.clone());
            }
        }
        programs
    }

    /// Has the speeds predicted of those of these programs of which they are not yet.
    fn consider(&mut self, programs: &[Program]) -> Result<(), PolicyError> {
        let is_new = |program: &&Program| self.known(program).is_none();
        let new: Vec<Program> = programs.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            let speeds = self.reading.speeds(&new)?;
            self.considered.extend(new.into_iter().zip(speeds));
        }
        Ok(())
    }

    fn known(&self, program: &Program) -> Option<MemberSpeeds> {
        let mut considered = self.considered.iter();
        considered.find(|(known, _)| known == program).map(|(_, speeds)| *speeds)
    }
}

fn of_cost_model(input: &PolicyInput<'_>) -> Result<Diverse, PolicyError> {
    Diverse::search(&mut *CostRanker.read(input)?, Mask::legal(&input.stats, input.task))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use sparserl_core::decode::{BatchRow, ConditionedPolicy, Policy, Prediction};
    use sparserl_core::matrix::generate;
    use sparserl_core::structure::MatrixStats;
    use sparserl_core::target::Target;
    use sparserl_core::task::{Dtype, Operation, Task};

    use super::*;
    use crate::speeds::{ENSEMBLE, REGIMES};

    /// The cost model, which finds long programs fast; counts what is asked of it.
    #[derive(Default)]
    struct Counting {
        readings: AtomicUsize,
        predicted: Arc<AtomicUsize>,
    }

    struct Reading<'m>(Box<dyn ConditionedPolicy + 'm>, Arc<AtomicUsize>);

    impl Policy for Counting {
        fn read<'m>(
            &self,
            input: &PolicyInput<'m>,
        ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
            CostRanker.read(input)
        }
    }

    impl SpeedModel for Counting {
        fn read_for_speeds<'m>(
            &self,
            input: &PolicyInput<'m>,
        ) -> Result<Box<dyn ConditionedSpeedModel + 'm>, PolicyError> {
            self.readings.fetch_add(1, Relaxed);
            Ok(Box::new(Reading(CostRanker.read(input)?, Arc::clone(&self.predicted))))
        }
    }

    impl ConditionedPolicy for Reading<'_> {
        fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
            self.0.next(batch)
        }
    }

    impl ConditionedSpeedModel for Reading<'_> {
        fn speeds(&mut self, programs: &[Program]) -> Result<Vec<MemberSpeeds>, PolicyError> {
            self.1.fetch_add(programs.len(), Relaxed);
            let speed = |program: &Program| program.to_string().len() as f32;
            Ok(programs.iter().map(|p| [[speed(p); REGIMES.len()]; ENSEMBLE]).collect())
        }
    }

    #[test]
    fn the_policy_runs_once_however_often_it_is_asked() {
        let matrix = generate::rmat(9, 8, 1).cast::<f32>().unwrap();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let task = Task::new(Operation::SpMV, Dtype::F32);
        let input = PolicyInput::new(stats, task, Target::H200);
        let new = || LearnedChooser::new("counting", Counting::default(), PICKING);
        let chooser = new();
        let Counting { readings, predicted } = chooser.policy();
        let mut choices = chooser.choices(&input, Objective::Both);
        assert_eq!(readings.load(Relaxed), 0, "nobody has asked");
        let first = choices.first(1).unwrap();
        let considered = predicted.load(Relaxed);
        let eight = choices.first(8).unwrap();
        assert_eq!((first.len(), eight.len()), (1, 8));
        assert_eq!(first[0], eight[0]);
        assert_eq!(eight, new().choose(&input, Objective::Both, 8).unwrap());
        // One choice needs the beam alone, the fifth programs of the cost model, too.
        let all = predicted.load(Relaxed);
        assert!(considered <= BEAM && all > considered, "{considered} {all}");
        let programs: Vec<Program> = eight.into_iter().map(|choice| choice.program).collect();
        let lengths = choices.speeds(&programs).unwrap();
        assert_eq!(lengths[7][0][0], programs[7].to_string().len() as f32);
        assert_eq!((readings.load(Relaxed), predicted.load(Relaxed)), (1, all));
        // More than the beam has: only those that were not considered yet are.
        let many = choices.first(2 * BEAM).unwrap();
        assert_eq!(many, new().choose(&input, Objective::Both, 2 * BEAM).unwrap());
        assert!(predicted.load(Relaxed) > all && readings.load(Relaxed) == 1);
    }

    const PICKING: Picking = Picking::RerankedWithCostModel;
}
