//! Of calibrations, by numbers that are computed by hand.

use sparserl_core::task::{Dtype, Operation};

use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// A program whose speed is predicted and was measured so, alike in both regimes.
fn program(layout: Word, mean: f32, measured: f32, deviation: f32) -> PredictedProgram {
    let speed = PredictedSpeed { mean, deviation, measured };
    PredictedProgram { layout, is_split: false, speeds: [speed; REGIMES.len()] }
}

fn case(chooser: &str, nnz: u64, programs: Vec<PredictedProgram>) -> PredictedCase {
    let task = Task::new(Operation::SpMV, Dtype::F32);
    PredictedCase { chooser: chooser.to_owned(), task, nnz, programs }
}

#[test]
fn the_mean_square_falls_into_bias_between_and_within() {
    // Residuals 3 and 1, whose mean is 2; −2, −2 and 2, whose mean is −2/3.
    let first =
        case("it", 10, vec![program(Word::Csr, 3.0, 0.0, 0.2), program(Word::Sell, 2.0, 1.0, 0.1)]);
    let second = case(
        "it",
        1_000_000,
        vec![
            program(Word::Csr, 0.0, 2.0, 0.4),
            program(Word::Csr, 0.0, 2.0, 0.4),
            program(Word::Sell, 3.0, 1.0, 0.3),
        ],
    );
    let found = Calibration::all([&first, &second]);
    assert_eq!(found.iter().map(|c| c.regime).collect::<Vec<_>>(), REGIMES);
    let Calibration { all, by_layout, by_size, .. } = &found[0];
    assert_eq!((all.programs, all.cases), (5, 2));
    // Their sum is 2, that of their squares 22.
    assert!(near(all.bias, 0.4) && near(all.rms, (22.0_f64 / 5.0).sqrt()));
    // Of the first case ±1, of the second −4/3, −4/3 and 8/3: 2 + 96/9.
    assert!(near(all.within, ((2.0 + 96.0 / 9.0) / 5.0_f64).sqrt()) && near(all.within_bias, 0.0));
    // Twice 2 − 0.4, three times −2/3 − 0.4.
    let between = (2.0 * 1.6_f64.powi(2) + 3.0 * (16.0 / 15.0_f64).powi(2)) / 5.0;
    assert!(near(all.between, between.sqrt()));
    let sum = all.bias.powi(2) + all.between.powi(2) + all.within.powi(2);
    assert!(near(sum, all.rms.powi(2)));
    // (0.04 + 0.01 + 0.16 + 0.16 + 0.09) / 5.
    assert!(near(all.deviation, 0.092_f64.sqrt()));
    // Below 3 by 0, 1, 3, 3, 0; below 1 by 1, 0, and below 2 by 0, 0, 1.
    assert!(near(all.below_predicted, 7.0 / 5.0) && near(all.below_measured, 2.0 / 5.0));

    let [csr, sell] = &by_layout[..] else { panic!("{by_layout:?}") };
    assert_eq!((csr.of.as_str(), csr.programs, sell.of.as_str()), ("csr", 3, "sell"));
    // 1, −4/3 and −4/3 beside the others of their cases; −1 and 8/3.
    assert!(near(csr.within_bias, -5.0 / 9.0) && near(sell.within_bias, 5.0 / 6.0));
    assert!(near(csr.bias, -1.0 / 3.0) && near(sell.bias, 1.5));
    // Each of the programs that are predicted fastest was measured 1 below another one.
    let [csr, sell] = &found[0].near_fastest[..] else { panic!("{found:?}") };
    assert_eq!((csr.programs, csr.cases, sell.programs, sell.cases), (1, 1, 1, 1));
    assert!(near(csr.below_measured, 1.0) && near(sell.below_measured, 1.0));
    let [small, large] = &by_size[..] else { panic!("{by_size:?}") };
    assert_eq!((small.of.as_str(), large.of.as_str()), (SIZES[0].0, SIZES[2].0));
    assert!(near(small.bias, 2.0) && near(small.between, 0.0) && near(small.within, 1.0));
    assert!(CalibrationTable(&found).to_string().contains("+0.400"));
    assert!(found[0].to_string().starts_with("it, spmv f32, cold cache:\n"));
}

#[test]
fn tenths_are_in_order_and_disagreement_that_tells_errors_is_told() {
    // The members disagree by as much as the mean is off, upwards and downwards in turn.
    let programs = (1..=20_u8).map(|place| {
        let off = f32::from(place.div_ceil(2)) / 10.0;
        let residual = if place % 2 == 0 { off } else { -off };
        program(Word::Ell, -f32::from(place), -f32::from(place) - residual, off)
    });
    let known = case("it", 10, programs.collect());
    let mut is_split = known.clone();
    is_split.programs.iter_mut().for_each(|program| program.is_split = true);
    let found = Calibration::all([&known]);
    let Calibration { deviation_and_error, by_deviation, by_speed, .. } = &found[0];
    // Equal ones may be a rounding apart.
    assert!(deviation_and_error.unwrap() > 0.99);
    assert_eq!((by_deviation.len(), by_speed.len()), (10, 10));
    for (tenth, errors) in (1_u8..).zip(by_deviation) {
        let off = f64::from(tenth) / 10.0;
        assert_eq!((errors.of.as_str(), errors.programs), (&*format!("tenth {tenth}"), 2));
        assert!(near(errors.rms, off) && near(errors.deviation, off) && near(errors.bias, 0.0));
    }
    // Of programs 1 to 20 the first is predicted fastest, and was measured so, 0.9 below 0.
    assert!(near(by_speed[0].below_predicted, 0.5) && near(by_speed[9].below_predicted, 18.5));
    assert!(near(by_speed[9].below_measured, 19.5 - 0.9));
    assert_eq!(Calibration::all([&is_split])[0].by_layout[0].of, "ell, split");
}

#[test]
fn one_model_has_no_disagreement_and_choosers_are_apart() {
    let of = |chooser| case(chooser, 10, vec![program(Word::Csr, 1.0, 0.0, 0.0)]);
    let (one, other) = (of("one"), of("other"));
    let nothing = case("nothing", 10, Vec::new());
    let found = Calibration::all([&one, &other, &nothing]);
    let named: Vec<_> = found.iter().map(|c| (c.chooser.as_str(), c.regime)).collect();
    let [cold, warm] = REGIMES;
    assert_eq!(named, [("one", cold), ("other", cold), ("one", warm), ("other", warm)]);
    for calibration in &found {
        assert_eq!(calibration.deviation_and_error, None);
        assert!(calibration.by_deviation.is_empty() && calibration.by_speed.len() == 1);
        assert_eq!(calibration.by_speed[0].of, "tenth 10");
    }
    let members = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 5.0]];
    // One member of five says 5, the others 0: the mean is 1, the variance (16 + 4) / 5 = 4.
    let speed = PredictedSpeed::of_members(&members, 1, 3.0);
    assert_eq!(speed, PredictedSpeed { mean: 1.0, deviation: 2.0, measured: 3.0 });
    for same in [0.1, 1.0 / 3.0, -7.3e-5] {
        let speed = PredictedSpeed::of_members(&[[same; REGIMES.len()]; ENSEMBLE], 0, 3.0);
        assert_eq!((speed.mean, speed.deviation), (same, 0.0));
    }
}
