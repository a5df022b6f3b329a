//! Calibrations as people read them.

use std::fmt;

use super::super::text::table;
use super::{Calibration, Errors};

/// One line for each of some calibrations.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationTable<'c>(pub &'c [Calibration]);

/// A number of doublings that has a direction.
fn signed(number: f64) -> String {
    // What is rounded to 0 has none.
    let number = if number.abs() < 5e-4 { 0.0 } else { number };
    format!("{number:+.3}")
}

fn number(number: f64) -> String {
    format!("{number:.3}")
}

impl fmt::Display for CalibrationTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table([
            "task",
            "cache",
            "chooser",
            "programs",
            "log2 rms",
            "bias",
            "between cases",
            "within",
            "members' deviation",
            "its rank correlation",
        ]);
        for Calibration { chooser, task, regime, all, deviation_and_error, .. } in self.0 {
            let disagrees = deviation_and_error.is_some();
            table.add_row([
                task.clone(),
                regime.name().to_owned(),
                chooser.clone(),
                all.programs.to_string(),
                number(all.rms),
                signed(all.bias),
                number(all.between),
                number(all.within),
                if disagrees { number(all.deviation) } else { String::new() },
                deviation_and_error.map_or_else(String::new, number),
            ]);
        }
        write!(f, "{table}")
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chooser, task, regime, .. } = self;
        writeln!(f, "{chooser}, {task}, {} cache:\n", regime.name())?;
        let mut table = table([
            "by",
            "programs of",
            "number",
            "cases",
            "log2 rms",
            "bias",
            "between cases",
            "within",
            "within, bias",
            "members' deviation",
            "predicted below best",
            "measured below best",
        ]);
        let all = std::slice::from_ref(&self.all);
        let groups = [
            ("", all),
            ("deviation", &self.by_deviation),
            ("predicted speed", &self.by_speed),
            ("layout", &self.by_layout),
            ("layout, near fastest", &self.near_fastest),
            ("size", &self.by_size),
        ];
        for (by, errors) in groups {
            for row in errors {
                let Errors { of, programs, cases, .. } = row;
                table.add_row([
                    by.to_owned(),
                    of.clone(),
                    programs.to_string(),
                    cases.to_string(),
                    number(row.rms),
                    signed(row.bias),
                    number(row.between),
                    number(row.within),
                    signed(row.within_bias),
                    number(row.deviation),
                    number(row.below_predicted),
                    number(row.below_measured),
                ]);
            }
        }
        write!(f, "{table}")
    }
}
