//! What is done, said on standard error: `--verbose`, and the variable `SPARSERL_LOG`.
//!
//! `SPARSERL_LOG=info` or `=debug` says how much, `sparserl_gpu=debug` for one crate or module
//! only; several stand between commas, of which the last that fits a message decides. What other
//! crates do is said where one is named.

use std::io::Write as _;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::anyhow;
use log::{LevelFilter, Log, Metadata, Record};

const VARIABLE: &str = "SPARSERL_LOG";
/// What the names of our crates begin with.
const OURS: &str = "sparserl";

static LOGGER: OnceLock<Logger> = OnceLock::new();

/// Writes messages with the time since it began.
struct Logger {
    start: Instant,
    rules: Vec<Rule>,
}

/// How much is said of what.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// What the modules' paths begin with.
    modules: String,
    most: LevelFilter,
}

/// Begins to say what is done, as verbosely as the command line and the variable ask for.
///
/// # Errors
/// When the variable cannot be read.
pub(crate) fn begin(verbosity: u8) -> anyhow::Result<()> {
    let most = match verbosity {
        0 => LevelFilter::Off,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    let mut rules = vec![Rule { modules: OURS.to_owned(), most }];
    rules.extend(parse(&std::env::var(VARIABLE).unwrap_or_default())?);
    let all = rules.iter().map(|rule| rule.most).max().unwrap_or(LevelFilter::Off);
    let logger = LOGGER.get_or_init(|| Logger { start: Instant::now(), rules });
    // Somebody else's logger would be as good.
    let _ = log::set_logger(logger);
    log::set_max_level(all);
    Ok(())
}

fn parse(text: &str) -> anyhow::Result<Vec<Rule>> {
    let rule = |rule: &str| {
        let (modules, level) = rule.rsplit_once('=').unwrap_or((OURS, rule));
        let most = level.trim().parse().map_err(|_| {
            anyhow!(
                "{VARIABLE}: `{rule}` is none of off, error, warn, info, debug and trace, nor one of \
                 them after MODULE="
            )
        })?;
        Ok(Rule { modules: modules.trim().to_owned(), most })
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(rule).collect()
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let fits = |rule: &&Rule| metadata.target().starts_with(&rule.modules);
        self.rules.iter().rev().find(fits).is_some_and(|rule| metadata.level() <= rule.most)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let seconds = self.start.elapsed().as_secs_f64();
            let line = record.args().to_string().replace(['\n', '\r'], " ");
            // That standard error is closed cannot be told to anyone.
            let _ = writeln!(std::io::stderr(), "{seconds:8.3} s  {line}");
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use log::Level;

    use super::*;

    fn says(rules: &str, target: &str, level: Level) -> bool {
        let logger = Logger { start: Instant::now(), rules: parse(rules).unwrap() };
        logger.enabled(&Metadata::builder().target(target).level(level).build())
    }

    #[test]
    fn the_last_rule_that_fits_decides() {
        assert!(says("info", "sparserl_cli::generate", Level::Info));
        assert!(!says("info", "sparserl_cli::generate", Level::Debug));
        let rules = "info, sparserl_gpu=debug,sparserl_gpu::judge=off";
        assert!(says(rules, "sparserl_gpu::compile", Level::Debug));
        assert!(!says(rules, "sparserl_gpu::judge", Level::Error));
        assert!(!says(rules, "sparserl_cli", Level::Debug));
        assert!(!says("sparserl_gpu=debug", "sparserl_cli", Level::Error));
        assert!(!says("debug", "hyper::client", Level::Warn));
        assert!(says("hyper=debug", "hyper::client", Level::Debug));
    }

    #[test]
    fn what_is_no_level_is_said() {
        let error = parse("sparserl_gpu=loud").unwrap_err().to_string();
        assert!(error.contains("`sparserl_gpu=loud` is none of off, error, "), "{error}");
        assert_eq!(parse("").unwrap(), []);
    }
}
