//! How kernels are judged.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use sparserl_gpu::compare::{Opponents, lacks_cusparse};
use sparserl_gpu::worker::Protocol;

/// Longer than any kernel is worth waiting for.
const MOST_SECONDS: f64 = 86_400.0;

/// How kernels are judged.
#[derive(Args, Debug)]
pub(crate) struct JudgingArgs {
    /// Number of the GPU
    #[arg(long, value_name = "D", default_value_t = 0)]
    pub(crate) device: u32,
    /// How long a kernel may take for its checks, before an allowance for the size of the matrix
    /// [default: 10]; with --emulate, for compiling it and emulating it [default: no end]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Measure no opponents beside it
    #[arg(long)]
    no_baselines: bool,
    #[command(flatten)]
    pub(crate) opponents: OpponentArgs,
}

/// Which libraries kernels are measured against.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OpponentArgs {
    /// cuSPARSE to measure against, of any version: the library, or the folder that it lies in; a
    /// libnvJitLink beside it is used with it [default: the one that the loader finds]
    #[arg(long, value_name = "PATH")]
    cusparse: Option<PathBuf>,
    /// Another library to measure against, one with the C interface of gpu/opponents/opponent.h;
    /// may be given several times
    #[arg(long = "opponent", value_name = "LIB.so")]
    libraries: Vec<PathBuf>,
}

impl OpponentArgs {
    /// What has an opponent's algorithm run that did not, for this reason.
    pub(crate) fn hint(reason: &str) -> Option<&'static str> {
        lacks_cusparse(reason).then_some("--cusparse PATH names one")
    }

    /// The libraries, by full paths: they are opened by another process.
    ///
    /// # Errors
    /// When one that was named is not there. What it is shows when it is opened.
    pub(crate) fn opponents(&self) -> anyhow::Result<Opponents> {
        let full = |path: &PathBuf| {
            std::fs::canonicalize(path).with_context(|| path.display().to_string())
        };
        Ok(Opponents {
            cusparse: self.cusparse.as_ref().map(full).transpose()?,
            libraries: self.libraries.iter().map(full).collect::<anyhow::Result<_>>()?,
        })
    }
}

impl JudgingArgs {
    /// The full protocol, as far as it was asked for.
    pub(crate) fn protocol(&self) -> Protocol {
        let full = Protocol::full();
        let deadline = self.deadline.unwrap_or(full.deadline);
        Protocol { deadline, baselines: !self.no_baselines, ..full }
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
