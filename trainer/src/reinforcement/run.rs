//! The loop of reinforcement learning: programs, outcomes, lessons, optimizer steps, validations
//! and checkpoints.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sparserl_core::random::SplitMix64;

use super::fit::{self, FitError};
use super::state::{State, batch};
use super::{
    Algorithm, Cases, Group, Judged, Judgement, Judgements, Matrices, Outcomes,
    ReinforcementConfig, Report, Request, RolloutError, Tally, lessons, write_programs,
};
use crate::corpus::{RealMatrices, Role};
use crate::dataset::Dataset;
use crate::network::{
    AdamW, AutodiffBackend, Improvement, Learner, Losses, Modalities, ModelFile, NetworkPolicy,
    Objective, OnDevice, PolicyLosses, Processor, RolloutBatch, RolloutRow, RolloutStep, Surrogate,
};
use crate::stages::{CHECKPOINT, Epochs, LOG, Log, MODEL, StageError, evenly, shuffle, trained_on};

/// Keeps apart what is drawn for different purposes from one seed.
const PROGRAMS: u64 = 0x9f09;
const ORDER: u64 = 0x04de;
const CRITIC: u64 = 0xc417;
const VALIDATION: u64 = 0x7a11;
const RECORDED: u64 = 0x4ec0;

/// Reinforcement learning, ready to run on some device: [`on_device`](crate::network::on_device)
/// runs it.
pub struct ReinforcementRun<'a, O, G, P> {
    /// How.
    pub config: &'a ReinforcementConfig,
    /// The cases.
    pub dataset: &'a Dataset,
    /// The real matrices that recipes of the dataset are made of.
    pub real: &'a RealMatrices,
    /// Says what becomes of programs.
    pub outcomes: O,
    /// The policy to begin with, which is also the one that is not to be left too far.
    pub from: &'a ModelFile,
    /// Where the model, its checkpoint and its log are.
    pub folder: &'a Path,
    /// Whether to go on, asked before every iteration.
    pub go_on: G,
    /// Told after every iteration.
    pub observe: P,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Improved {
    /// Iterations made, in this run and before.
    pub step: u64,
    /// True when all were made and the model is there.
    pub complete: bool,
    /// The last iteration of this run; `None` when there was none.
    pub last: Option<Report>,
    /// The last validation of this run, if there is anything to validate on.
    pub validation: Option<Tally>,
    /// Where the model is, or the checkpoint.
    pub path: PathBuf,
}

/// A run could not go on: of its [`Outcomes`], with an `E`, or for one of the reasons below.
#[derive(Debug, thiserror::Error)]
pub enum ReinforcementError<E: fmt::Debug + fmt::Display> {
    /// As of any stage.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// No programs can be written.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// The programs of a case cannot be described for predicted speeds to be fitted to them.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// What becomes of programs cannot be found out.
    #[error("{0}")]
    Outcomes(E),
}

/// A line of the log beside those of iterations.
#[derive(Serialize)]
struct Validated {
    /// Iterations made.
    step: u64,
    /// Of programs for other families.
    validation: Tally,
}

/// What a checkpoint was made by.
#[derive(PartialEq, Serialize, Deserialize)]
struct Provenance {
    config: ReinforcementConfig,
    /// Its fingerprint.
    dataset: String,
    outcomes: String,
    /// Hash of the parameters that it began with, in hexadecimal.
    from: String,
}

impl<O, G, P> OnDevice for ReinforcementRun<'_, O, G, P>
where
    O: Outcomes,
    G: Fn() -> bool,
    P: FnMut(&Report),
{
    type Output = Result<Improved, ReinforcementError<O::Error>>;

    fn run<B: AutodiffBackend>(mut self, device: B::Device) -> Self::Output {
        let (config, folder) = (self.config, self.folder);
        let matrices = Matrices::new(self.dataset, self.real);
        let cases = Cases::new(&matrices);
        let (mut epochs, others) = self.places()?;
        let failed = |name: &str| {
            let path = folder.join(name);
            move |source| StageError::Write { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(""))?;
        let provenance = self.provenance();
        let text = serde_json::to_string(&provenance).map_err(|e| failed(CHECKPOINT)(e.into()))?;
        let mut state = self.begin::<B>(&provenance, &text, device, &mut epochs)?;
        if state.iterations == 0 && folder.join(LOG).exists() {
            // Of a run that was lost before its first checkpoint.
            fs::remove_file(folder.join(LOG)).map_err(failed(LOG))?;
        }
        let mut log = Log::open(&folder.join(LOG), state.iterations).map_err(failed(LOG))?;
        let (mut last, mut validation) = (None, None);
        if state.iterations == 0 && !others.is_empty() {
            let found = self.validate(&state, &cases, &others)?;
            log.write(&Validated { step: 0, validation: found }).map_err(failed(LOG))?;
        }
        while state.iterations < config.iterations {
            if !(self.go_on)() {
                self.outcomes.keep().map_err(ReinforcementError::Outcomes)?;
                let path = state.keep(&self.from.config, &text, folder, CHECKPOINT)?;
                let step = state.iterations;
                return Ok(Improved { step, complete: false, last, validation, path });
            }
            let places = epochs.some(state.iterations, config.cases);
            let report = self.iterate(&mut state, &cases, &places)?;
            let broken = [report.kl, report.entropy].iter().any(|number| number.is_infinite())
                || report.losses.is_some_and(|losses| !losses.total.is_finite())
                // Losses are those of before the last step.
                || !state.learner.is_finite();
            if broken {
                return Err(StageError::diverged(state.iterations).into());
            }
            log.write(&report).map_err(failed(LOG))?;
            let (step, is_last) = (state.iterations, state.iterations == config.iterations);
            if !others.is_empty() && (step.is_multiple_of(config.validate_every) || is_last) {
                let found = self.validate(&state, &cases, &others)?;
                log.write(&Validated { step, validation: found }).map_err(failed(LOG))?;
                validation = Some(found);
            }
            if step.is_multiple_of(config.keep_every) || is_last {
                // What a checkpoint has learned from is there when it is.
                self.outcomes.keep().map_err(ReinforcementError::Outcomes)?;
                state.keep(&self.from.config, &text, folder, CHECKPOINT)?;
            }
            (self.observe)(&report);
            last = Some(report);
        }
        let path = state.keep(&self.from.config, &text, folder, MODEL)?;
        Ok(Improved { step: state.iterations, complete: true, last, validation, path })
    }
}

impl<O: Outcomes, G, P> ReinforcementRun<'_, O, G, P> {
    /// The cases that are trained on, and those to validate on.
    fn places(&self) -> Result<(Epochs, Vec<usize>), StageError> {
        let (config, dataset) = (self.config, self.dataset);
        let roles = dataset.roles(&config.split)?;
        let is_taken = trained_on(&roles, config.matrices, config.seed);
        let target = self.outcomes.target();
        let fits = |place: &usize| {
            let case = &dataset.cases[*place];
            let small = |most| dataset.matrix(case).is_some_and(|matrix| matrix.nnz <= most);
            !case.programs.is_empty()
                && config.largest_nnz.is_none_or(small)
                && target.is_none_or(|target| target == case.target)
        };
        let matrix = |place: &usize| dataset.cases[*place].matrix as usize;
        let (taken, left): (Vec<usize>, Vec<usize>) =
            (0..dataset.cases.len()).filter(fits).partition(|place| is_taken[matrix(place)]);
        if taken.is_empty() {
            return Err(StageError::NoneFits);
        }
        let is_validation = |place: &usize| roles[matrix(place)] == Role::Validation;
        let others =
            evenly(left.into_iter().filter(is_validation).collect(), config.validation_cases);
        Ok((Epochs::new(taken, config.seed), others))
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            config: self.config.clone(),
            dataset: self.dataset.fingerprint(),
            outcomes: self.outcomes.description(),
            from: self.from.fingerprint(),
        }
    }

    /// Where the checkpoint ended, if there is one; or else with the policy to begin with, and a
    /// critic that is fitted to it.
    fn begin<B: AutodiffBackend>(
        &self,
        provenance: &Provenance,
        text: &str,
        device: B::Device,
        epochs: &mut Epochs,
    ) -> Result<State<B>, StageError> {
        let (config, path) = (self.config, self.folder.join(CHECKPOINT));
        let optimizer = config.optimizer;
        if !path.exists() {
            let mut state = State::begin(self.from, optimizer, device, config.kl.weight);
            if config.algorithm == Algorithm::Ppo {
                self.fit_critic(&mut state.learner, epochs)?;
            }
            return Ok(state);
        }
        State::resume(self.from, optimizer, device, &path, text, |of| {
            let of: Option<Provenance> = serde_json::from_str(of).ok();
            match of {
                Some(of) if of.dataset != provenance.dataset => "dataset",
                Some(of) if of.from != provenance.from => "network to begin with",
                Some(of) if of.outcomes != provenance.outcomes => "source of outcomes",
                _ => "configuration",
            }
        })
    }

    /// Fits the critic to the rewards of the speeds that the network finds within reach, on
    /// measured programs; nothing else of the network changes. A critic that knows nothing makes
    /// policies collapse before it has learned anything. What is within reach is more than a policy
    /// gets on average: that is the same for all programs of a group, and is corrected there
    /// ([`lessons`]).
    fn fit_critic<B: AutodiffBackend>(
        &self,
        learner: &mut Learner<B>,
        epochs: &mut Epochs,
    ) -> Result<(), StageError> {
        let config = self.config;
        let diverged = |step| StageError::Diverged { step, key: "critic.learning_rate" };
        let mut optimizer = AdamW::new(config.optimizer);
        for step in 0..config.critic.steps {
            let mut batch = RolloutBatch { cases: Vec::new(), rows: Vec::new() };
            for (number, place) in epochs.some(step, config.cases).into_iter().enumerate() {
                let case = &self.dataset.cases[place];
                let scaling = self.from.config.positions;
                let Some(inputs) = self.dataset.inputs(case, scaling) else { continue };
                let of_case = step * config.cases as u64 + number as u64;
                let mut random = SplitMix64::after(config.seed ^ CRITIC, of_case);
                let mut programs: Vec<_> = case.programs.iter().collect();
                shuffle(&mut programs, &mut random);
                let token = |&token: &u8| RolloutStep { token, ..RolloutStep::default() };
                let mut rows: Vec<RolloutRow> = programs
                    .into_iter()
                    .take(config.rollouts)
                    .map(|program| RolloutRow { steps: program.tokens.iter().map(token).collect() })
                    .collect();
                rows.resize(config.rollouts, RolloutRow::default());
                batch.cases.push((inputs, Modalities::ALL));
                batch.rows.extend(rows);
            }
            let reward = |speed| config.reward.of_speed(speed);
            let rate = config.critic.learning_rate;
            let error = learner.fit_critic(&mut optimizer, &batch, reward, rate);
            if !error.is_finite() {
                return Err(diverged(step + 1));
            }
        }
        if learner.is_finite() { Ok(()) } else { Err(diverged(config.critic.steps)) }
    }

    /// The policy as it is, to write programs with.
    fn policy<B: AutodiffBackend>(&self, state: &State<B>) -> NetworkPolicy<Processor> {
        let parameters = state.learner.network().parameters();
        let device = Default::default();
        NetworkPolicy::with(&parameters, &self.from.config, Modalities::ALL, device)
    }

    /// What becomes of programs for cases that nothing is learned from, drawn alike every time.
    fn validate<B: AutodiffBackend>(
        &mut self,
        state: &State<B>,
        cases: &Cases<'_>,
        places: &[usize],
    ) -> Result<Tally, ReinforcementError<O::Error>> {
        let ReinforcementConfig { decoding, rollouts, reward, seed, .. } = *self.config;
        let policy = self.policy(state);
        let groups = write_programs(&policy, cases, places, decoding, rollouts, seed ^ VALIDATION)?;
        let judgements = self.judge(cases, &groups).map_err(ReinforcementError::Outcomes)?;
        Ok(Tally::of(&groups, &judgements, &reward))
    }

    /// Writes programs, finds out what becomes of them, and learns from that.
    fn iterate<B: AutodiffBackend>(
        &mut self,
        state: &mut State<B>,
        cases: &Cases<'_>,
        places: &[usize],
    ) -> Result<Report, ReinforcementError<O::Error>> {
        let config = self.config;
        let of_iteration =
            |what: u64| SplitMix64::after(config.seed ^ what, state.iterations).bits();
        let begun = Instant::now();
        let policy = self.policy(state);
        let (mode, seed) = (config.decoding, of_iteration(PROGRAMS));
        let mut groups = write_programs(&policy, cases, places, mode, config.rollouts, seed)?;
        let written = begun.elapsed().as_secs_f64();

        let judgements = self.judge(cases, &groups).map_err(ReinforcementError::Outcomes)?;
        let judged = begun.elapsed().as_secs_f64();
        let mut report = Report {
            written: Tally::of(&groups, &judgements, &config.reward),
            kl_weight: state.kl_weight,
            learning_rate: config.learning_rate(state.iterations),
            ..Report::default()
        };

        (report.kl, report.entropy) = state.assess(&mut groups, config.minibatch);
        self.teach(&mut groups, &judgements);
        let objective = self.objective(state.kl_weight);
        let seeds = (config.seed, of_iteration(RECORDED));
        let measured = match config.fit.are_zero() {
            true => None,
            false => Some(fit::rows(cases, &groups, &judgements, seeds)?),
        };
        let weights = config.fit.losses();
        let mut learned = Vec::new();
        let mut order: Vec<usize> = (0..groups.len())
            .filter(|&place| groups[place].rollouts.iter().any(|r| !r.row.steps.is_empty()))
            .collect();
        let mut random = SplitMix64::new(of_iteration(ORDER));
        for _ in 0..config.epochs {
            shuffle(&mut order, &mut random);
            for some in order.chunks(config.minibatch) {
                let batch = batch(some.iter().map(|&place| &groups[place]));
                let fit = measured.as_ref().map(|rows| {
                    fit::batch(some.iter().map(|&place| (&groups[place], &rows[place])))
                });
                let fit = fit.as_ref().map(|batch| (batch, &weights));
                let rate = report.learning_rate;
                learned.push(state.learner.improve(&batch, &objective, fit, rate));
            }
        }
        let learned: Vec<Improvement> = learned.into_iter().map(|ask| ask()).collect();
        if !learned.is_empty() {
            let losses: Vec<PolicyLosses> = learned.iter().map(|step| step.policy).collect();
            report.losses = Some(PolicyLosses::mean(&losses));
            let fitted: Vec<Losses> = learned.iter().filter_map(|step| step.fit).collect();
            report.fit = (!fitted.is_empty()).then(|| Losses::mean(&fitted));
            let norms = learned.iter().map(|step| step.gradient_norm);
            report.gradient_norm = Some(norms.sum::<f32>() / learned.len() as f32);
        }
        if report.kl.is_finite() {
            state.kl_weight = config.kl.next_weight(state.kl_weight, report.kl);
        }
        state.iterations += 1;
        report.step = state.iterations;
        let whole = begun.elapsed().as_secs_f64();
        report.seconds = [written, judged - written, whole - judged];
        Ok(report)
    }

    /// What became of the programs of each group; of what is no program, that.
    fn judge(&mut self, cases: &Cases<'_>, groups: &[Group<'_>]) -> Result<Judgements, O::Error> {
        let requests: Vec<Request<'_>> = groups.iter().map(Group::request).collect();
        let found = self.outcomes.judge(cases, &requests)?;
        let of_group = |(group, found): (&Group<'_>, Vec<Option<Judgement>>)| {
            let mut found = found.into_iter();
            let of_rollout = |rollout: &super::Rollout| match rollout.program {
                Some(_) => found.next().flatten(),
                None => Some(Judgement::NOT_COMPILED),
            };
            group.rollouts.iter().map(of_rollout).collect()
        };
        Ok(groups.iter().zip(found).map(of_group).collect())
    }

    /// Notes at each token what is to be learned from it; programs of which nothing is known have
    /// no tokens any more.
    fn teach(&self, groups: &mut [Group<'_>], judgements: &Judgements) {
        for (group, judgements) in groups.iter_mut().zip(judgements) {
            for (rollout, judgement) in group.rollouts.iter_mut().zip(judgements) {
                if judgement.is_none() {
                    rollout.row.steps.clear();
                }
            }
            let known = group.rollouts.iter_mut().zip(judgements);
            let (mut rows, mut judged, mut distinct) = (Vec::new(), Vec::new(), Vec::new());
            let mut seen = BTreeSet::new();
            for (rollout, judgement) in known {
                let Some(judgement) = judgement else { continue };
                let steps = &mut rollout.row.steps;
                let values = steps.iter().map(|step| f64::from(step.value)).collect();
                let reward = f64::from(self.config.reward.of(judgement));
                let tokens: Vec<u8> = steps.iter().map(|step| step.token).collect();
                judged.push(Judged { reward, values });
                distinct.push(seen.insert(tokens));
                rows.push(steps);
            }
            for (steps, lesson) in rows.into_iter().zip(lessons(self.config, &judged, &distinct)) {
                let of_step = lesson.advantages.into_iter().zip(lesson.targets);
                for (step, (advantage, target)) in steps.iter_mut().zip(of_step) {
                    (step.advantage, step.target) = (advantage as f32, target as f32);
                }
            }
        }
    }

    fn objective(&self, kl_weight: f64) -> Objective {
        let ReinforcementConfig { algorithm, clip, .. } = self.config;
        let is_ppo = *algorithm == Algorithm::Ppo;
        Objective {
            surrogate: match algorithm {
                Algorithm::ExpertIteration => Surrogate::Likelihood,
                Algorithm::Ppo | Algorithm::Grpo | Algorithm::Rloo => {
                    Surrogate::Clipped { low: clip.low, high: clip.high }
                }
            },
            value_weight: if is_ppo { self.config.value_weight } else { 0.0 },
            value_clip: clip.value,
            entropy_weight: self.config.entropy_weight,
            illegality_weight: self.config.illegality_weight,
            kl_weight,
        }
    }
}
