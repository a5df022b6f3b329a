//! Draws the batches of a stage from a dataset: which cases and programs, what of them is imitated,
//! and what is hidden from the network.

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::Features;
use sparserl_onnx_models::inputs::Inputs;
use sparserl_onnx_models::speeds::{ENSEMBLE, REGIMES};

use super::{Epochs, Hidden, StageConfig, evenly, shuffle, trained_on};
use crate::configuration::Stage;
use crate::corpus::{RecipeError, Role};
use crate::dataset::{Dataset, DatasetCase, DatasetProgram};
use crate::network::{Batch, Modalities, Row};

type Speeds = [Option<f32>; REGIMES.len()];

/// Draws batches of a dataset.
#[derive(Debug)]
pub struct Sampler<'d> {
    dataset: &'d Dataset,
    stage: Stage,
    config: &'d StageConfig,
    /// Places of the cases that are trained on.
    training: Epochs,
    validation: Vec<usize>,
}

impl<'d> Sampler<'d> {
    /// A sampler of what the split of the configuration trains on.
    ///
    /// # Errors
    /// When the dataset has a matrix without a recipe.
    pub fn new(
        dataset: &'d Dataset,
        stage: Stage,
        config: &'d StageConfig,
    ) -> Result<Self, RecipeError> {
        let roles = dataset.roles(&config.split)?;
        let is_taken = trained_on(&roles, config.matrices, config.seed);
        let cases = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            let fits =
                |case: &DatasetCase| !case.programs.is_empty() && wanted(case.matrix as usize);
            let found = dataset.cases.iter().enumerate().filter(|(_, case)| fits(case));
            found.map(|(place, _)| place).collect()
        };
        let training = Epochs::new(cases(&|matrix| is_taken[matrix]), config.seed);
        let validation = cases(&|matrix| roles[matrix] == Role::Validation);
        let validation = evenly(validation, config.validation_cases);
        Ok(Self { dataset, stage, config, training, validation })
    }

    /// Number of cases that are trained on.
    #[must_use]
    pub fn training_cases(&self) -> usize {
        self.training.count()
    }

    /// The cases to validate on.
    #[must_use]
    pub fn validation_cases(&self) -> &[usize] {
        &self.validation
    }

    /// The batch of a step.
    pub fn batch(&mut self, step: u64) -> Batch {
        let places = self.training.some(step, self.config.cases);
        let first = step * places.len() as u64;
        let number =
            |i: usize| SplitMix64::after(self.config.seed ^ 0xba7c, first + i as u64).bits();
        let drawn: Vec<_> = places
            .par_iter()
            .enumerate()
            .filter_map(|(i, &place)| self.draw(place, &mut SplitMix64::new(number(i))))
            .collect();
        let mut batch = Batch { cases: Vec::new(), rows: Vec::new() };
        for (case, rows) in drawn {
            batch.cases.push(case);
            batch.rows.extend(rows);
        }
        batch
    }

    fn draw(
        &self,
        place: usize,
        random: &mut SplitMix64,
    ) -> Option<((Inputs, Modalities), Vec<Row>)> {
        let case = self.dataset.cases.get(place)?;
        let mut inputs = self.dataset.inputs(case, self.config.network.positions)?;
        let shown = hide(&mut inputs, &self.config.hidden, random);
        let rows = Rows::new(self, case).draw(random);
        Some(((inputs, shown), rows))
    }

    /// A batch of some cases with all their programs, and with nothing hidden but what always is.
    #[must_use]
    pub fn whole(&self, places: &[usize]) -> (Batch, Vec<Range<usize>>) {
        let cases: Vec<&DatasetCase> =
            places.iter().filter_map(|&place| self.dataset.cases.get(place)).collect();
        let most = cases.iter().map(|case| case.programs.len()).max().unwrap_or(0);
        let Hidden { features, grids, positions, .. } = self.config.hidden;
        let shown =
            Modalities { features: features < 1.0, grids: grids < 1.0, positions: positions < 1.0 };
        let of = |case: &&DatasetCase| {
            let inputs = self.dataset.inputs(case, self.config.network.positions)?;
            let rows = Rows::new(self, case);
            let mut rows: Vec<Row> =
                (0..case.programs.len()).filter_map(|place| rows.measured(place)).collect();
            let count = rows.len();
            rows.resize(most, Row::default());
            Some((inputs, rows, count))
        };
        let made: Vec<_> = cases.par_iter().filter_map(of).collect();
        let mut batch = Batch { cases: Vec::new(), rows: Vec::new() };
        let mut ranges = Vec::new();
        for (inputs, rows, count) in made {
            batch.cases.push((inputs, shown));
            ranges.push(batch.rows.len()..batch.rows.len() + count);
            batch.rows.extend(rows);
        }
        (batch, ranges)
    }
}

/// How much each member of the ensemble learns from a matrix: a Bayesian bootstrap (Rubin, 1981) by
/// matrix, since programs of one matrix are alike.
pub(crate) fn bootstrap_weights(seed: u64, matrix: u32) -> [f32; ENSEMBLE] {
    std::array::from_fn(|member| {
        let number = u64::from(matrix) * ENSEMBLE as u64 + member as u64;
        let even = SplitMix64::after(seed ^ 0xb007, number).uniform();
        -(1.0 - even).max(1e-9).ln() as f32
    })
}

/// Hides what is to be hidden; what is left is shown.
fn hide(inputs: &mut Inputs, hidden: &Hidden, random: &mut SplitMix64) -> Modalities {
    let mut shows = |share: f64| random.uniform() >= share;
    let shown = Modalities {
        features: shows(hidden.features),
        grids: shows(hidden.grids),
        positions: shows(hidden.positions),
    };
    for feature in inputs.scalars.iter_mut().take(Features::COUNT) {
        *feature += (hidden.noise * (2.0 * random.uniform() - 1.0)) as f32;
    }
    let left_out = hidden.single_positions * random.uniform();
    if left_out > 0.0 {
        let width = inputs.config.token_width();
        let kept = inputs.tokens.chunks_exact(width).filter(|_| random.uniform() >= left_out);
        inputs.tokens = kept.flatten().copied().collect();
    }
    shown
}

/// What the programs of a case are drawn by.
struct Rows<'s> {
    stage: Stage,
    config: &'s StageConfig,
    case: &'s DatasetCase,
    members: [f32; ENSEMBLE],
    /// Of the beginnings of measured programs, the highest speeds.
    reach: HashMap<&'s [u8], Speeds>,
    /// How much each measured program is imitated, where only those near the best are.
    near: Vec<f32>,
}

impl<'s> Rows<'s> {
    fn new(sampler: &Sampler<'s>, case: &'s DatasetCase) -> Self {
        let mut reach: HashMap<&[u8], Speeds> = HashMap::new();
        for program in &case.programs {
            let speeds: Speeds = std::array::from_fn(|regime| program.speed(regime));
            for end in 0..=program.tokens.len() {
                let known = reach.entry(&program.tokens[..end]).or_default();
                for (known, speed) in known.iter_mut().zip(speeds) {
                    *known = [*known, speed].into_iter().flatten().reduce(f32::max);
                }
            }
        }
        let (stage, config) = (sampler.stage, sampler.config);
        let members = bootstrap_weights(config.seed, case.matrix);
        let near = near_the_best(case, config);
        Self { stage, config, case, members, reach, near }
    }

    fn draw(&self, random: &mut SplitMix64) -> Vec<Row> {
        let count = self.config.programs;
        let share = |share: f64| (share * count as f64) as usize;
        let mut rows = Vec::with_capacity(count);
        let drawn = &self.case.drawn;
        for (programs, wanted, valid) in [
            (&drawn.legal, share(self.config.shares.legal), true),
            (&drawn.illegal, share(self.config.shares.illegal), false),
        ] {
            let mut places: Vec<usize> = (0..programs.len()).collect();
            shuffle(&mut places, random);
            let chosen = places.into_iter().take(wanted).filter_map(|place| programs.get(place));
            rows.extend(chosen.map(|tokens| self.unmeasured(tokens, valid)));
        }
        let mut by_speed: Vec<usize> = (0..self.case.programs.len()).collect();
        let mut places: Vec<usize> = by_speed.clone();
        let best = |place: usize| {
            let programs = &self.case.programs;
            let speeds = (0..REGIMES.len()).filter_map(|regime| programs[place].speed(regime));
            speeds.reduce(f32::max).unwrap_or(f32::NEG_INFINITY)
        };
        by_speed.sort_by(|&a, &b| best(b).total_cmp(&best(a)));
        places.sort_by(|&a, &b| self.near[b].total_cmp(&self.near[a]));
        let mut taken = vec![false; places.len()];
        for place in places.into_iter().take(share(self.config.shares.best)) {
            if self.near[place] > 0.0 {
                taken[place] = true;
                rows.extend(self.measured(place));
            }
        }
        // The rest evenly; where speeds are learned, the faster the more often.
        let skew = if self.stage == Stage::Pretrain { 1.0 } else { 1.5 };
        let mut left: Vec<usize> = by_speed.into_iter().filter(|&place| !taken[place]).collect();
        while rows.len() < count && !left.is_empty() {
            let at = (random.uniform().powf(skew) * left.len() as f64) as usize;
            rows.extend(self.measured(left.remove(at)));
        }
        rows.resize(count, Row::default());
        rows
    }

    /// A row of a program that nobody measured.
    fn unmeasured(&self, tokens: &[u8], valid: bool) -> Row {
        // Whoever learns the syntax learns it from all programs that are legal.
        let imitate = if self.stage == Stage::Pretrain && valid { 1.0 } else { 0.0 };
        Row { tokens: tokens.to_vec(), imitate, valid: Some(valid), ..Row::default() }
    }

    fn measured(&self, place: usize) -> Option<Row> {
        let DatasetProgram { tokens, right, terms, resources, .. } =
            self.case.programs.get(place)?;
        let program = self.case.programs.get(place)?;
        let imitate = match self.stage {
            Stage::Pretrain => f32::from(u8::from(*right)),
            Stage::Sft | Stage::Value => self.near.get(place).copied().unwrap_or(0.0),
        };
        let reach = |end: usize| self.reach.get(&tokens[..end]).copied().unwrap_or_default();
        Some(Row {
            tokens: tokens.clone(),
            imitate,
            terms: Some(*terms),
            resources: *resources,
            speeds: std::array::from_fn(|regime| program.speed(regime)),
            members: self.members,
            reach: (0..=tokens.len()).map(reach).collect(),
            valid: Some(*right),
        })
    }
}

/// Weights of the programs near the best of a case, those of each regime together as much as those
/// of the other; 1 in all if there are any.
fn near_the_best(case: &DatasetCase, config: &StageConfig) -> Vec<f32> {
    let mut weights = vec![0.0; case.programs.len()];
    for regime in 0..REGIMES.len() {
        let Some(best) = case.best(regime) else { continue };
        let best = f64::from(best);
        let weight = |program: &DatasetProgram| {
            let behind = best - f64::from(program.speed(regime)?);
            let longer = program.tokens.len() as i32;
            let near = behind <= (1.0 + config.near).log2();
            near.then(|| {
                (-behind / config.temperature).exp() * (1.0 - config.shortness).powi(longer)
            })
        };
        let of_regime: Vec<f64> =
            case.programs.iter().map(|program| weight(program).unwrap_or(0.0)).collect();
        let sum: f64 = of_regime.iter().sum();
        for (weight, of_regime) in weights.iter_mut().zip(of_regime) {
            *weight += of_regime / sum.max(f64::MIN_POSITIVE);
        }
    }
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| (weight / sum.max(f64::MIN_POSITIVE)) as f32).collect()
}
