//! The log of a stage: lines of JSON, which a run that goes on from a checkpoint continues from its
//! step.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Lines of JSON, one for every so many steps; each has a `step`.
#[derive(Debug)]
pub(crate) struct Log {
    file: fs::File,
    start: Instant,
}

impl Log {
    /// Goes on with what was logged up to a step: what came after it is not of the checkpoint.
    pub(crate) fn open(path: &Path, step: u64) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Step {
            step: u64,
        }
        let known = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let is_of = |line: &&str| {
            serde_json::from_str::<Step>(line).is_ok_and(|logged| logged.step <= step)
        };
        let kept: String = known.lines().filter(is_of).flat_map(|line| [line, "\n"]).collect();
        fs::write(path, kept)?;
        Ok(Self { file: OpenOptions::new().append(true).open(path)?, start: Instant::now() })
    }

    /// Since it was opened.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(crate) fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(line)?;
        writeln!(self.file, "{text}")
    }
}
