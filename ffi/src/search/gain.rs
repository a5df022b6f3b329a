//! What programs are predicted to gain over plain CSR.

use sparserl_core::decode::{Choice, PolicyError};
use sparserl_core::language::Program;
use sparserl_core::layout::CostModel;
use sparserl_onnx_models::OpenedChoices;
use sparserl_onnx_models::speeds::mean;

use super::OBJECTIVE;

/// What a program that is not measured has to gain over plain CSR, in log2, where there is a GPU:
/// less does not pay for what packing takes, and predictions are not that exact. Plans that are
/// made for later cost nobody's time.
const LEAST_GAIN: f64 = 0.05;

/// Those of some choices that their chooser predicts to be faster than plain CSR: what is not
/// measured takes its place only then. Their scores are the gain over it, in log2.
pub(super) fn gaining(
    offered: &mut OpenedChoices<'_>,
    costs: &CostModel<'_>,
    csr: &Program,
    choices: Vec<Choice>,
) -> Result<Vec<Choice>, PolicyError> {
    let chosen = choices.into_iter().map(|choice| choice.program);
    let programs: Vec<Program> = [csr.clone()].into_iter().chain(chosen).collect();
    let speeds: Vec<f64> = match offered.speeds(&programs)? {
        Some(speeds) => speeds.iter().map(|speeds| mean(speeds, OBJECTIVE).into()).collect(),
        None => programs.iter().map(|program| -costs.cost(program).seconds.log2()).collect(),
    };
    let of_csr = speeds.first().copied().unwrap_or(f64::INFINITY);
    let gains = programs.into_iter().zip(speeds).skip(1);
    let gains = gains.map(|(program, speed)| Choice { program, score: speed - of_csr });
    Ok(gains.filter(|choice| choice.score > 0.0).collect())
}

/// Whether a program gains enough over plain CSR where there is a GPU.
pub(super) fn pays(choice: &Choice) -> bool {
    choice.score >= LEAST_GAIN
}

#[cfg(test)]
mod tests {
    use sparserl_core::decode::{Choices as _, PolicyInput};
    use sparserl_core::matrix::generate;
    use sparserl_core::structure::MatrixStats;
    use sparserl_core::target::Target;
    use sparserl_core::task::{Dtype, Operation, Task};
    use sparserl_onnx_models::{Engine, OpenedPolicy, PolicySource};

    use std::sync::Arc;

    use super::super::{CHOSEN, SPARE};
    use super::*;
    use crate::plain::plain_csr;

    #[test]
    fn what_is_chosen_has_to_gain_over_plain_csr() {
        let matrix = generate::stencil5(60, 60);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        let costs = CostModel::new(Arc::clone(&stats), task, Target::H200);
        let (csr, seconds) = plain_csr(&costs, task).next().unwrap();
        for source in [PolicySource::Cost, PolicySource::Learned] {
            let policy = OpenedPolicy::open(&source, &Engine::Embedded).unwrap();
            let mut offered = policy.choices(&input, OBJECTIVE);
            let choices = offered.first(CHOSEN + SPARE).unwrap();
            let found = gaining(&mut offered, &costs, &csr, choices.clone()).unwrap();
            let best = found.first().unwrap();
            assert!(best.program == choices[0].program && pays(best), "{source:?}: {best:?}");
            if source == PolicySource::Cost {
                let gain = (seconds / costs.cost(&best.program).seconds).log2();
                assert!((best.score - gain).abs() < 1e-9, "{} instead of {gain}", best.score);
            }
            // Nothing gains over itself.
            let same = gaining(&mut offered, &costs, &best.program, vec![best.clone()]).unwrap();
            assert_eq!(same, []);
            let worse = Choice { program: csr.clone(), score: 9.0 };
            assert_eq!(gaining(&mut offered, &costs, &best.program, vec![worse]).unwrap(), []);
        }
        let choice = |score| Choice { program: csr.clone(), score };
        assert!(pays(&choice(0.051)) && !pays(&choice(0.049)));
    }
}
