//! How kernels are judged.

use std::time::Duration;

use clap::Args;
use sparserl_gpu::isolate::worker::Protocol;

/// Longer than any kernel is worth waiting for.
const MOST_SECONDS: f64 = 86_400.0;

/// How kernels are judged.
#[derive(Args, Debug)]
pub(crate) struct JudgingArgs {
    /// Number of the GPU
    #[arg(long, value_name = "D", default_value_t = 0)]
    pub(crate) device: u32,
    /// How long a kernel may take for its checks, before an allowance for the size of the matrix
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    deadline: Duration,
    /// Measure no cuSPARSE algorithms beside it
    #[arg(long)]
    no_baselines: bool,
}

impl JudgingArgs {
    /// The full protocol, as far as it was asked for.
    pub(crate) fn protocol(&self) -> Protocol {
        Protocol { deadline: self.deadline, baselines: !self.no_baselines, ..Protocol::full() }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected seconds, above 0 and at most {MOST_SECONDS}");
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if !(seconds > 0.0 && seconds <= MOST_SECONDS) {
        return Err(expected());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_time() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "-1", "inf", "NaN", "1e99", "soon", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
