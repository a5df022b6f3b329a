//! Archives: recordings in little space, which are read like others where the feature `archives` is
//! on.

use std::fs;
use std::io;
use std::path::Path;

use parquet::basic::{BrotliLevel, Compression};
use sparserl_core::outcome::{Evaluation, Outcome, Samples, Timing};

use super::{Recording, RecordingError, Recordings, part};

/// Evaluations in one part of an archive: the larger parts are, the more often they say the same.
const ARCHIVED_TOGETHER: usize = 4096;

/// Of brotli, whose highest is 11.
const LEVEL: u32 = 9;

impl Recordings {
    /// Adds all to a store in little space, for training: of the samples of a time only the median
    /// is kept, and of numbers what single precision holds, which is finer than what is measured.
    ///
    /// # Errors
    /// When the folder cannot be made or a part cannot be written.
    pub fn archive(&self, folder: impl AsRef<Path>) -> Result<(), RecordingError> {
        let folder = folder.as_ref();
        let failed = |source| RecordingError::Write { folder: folder.into(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let level = BrotliLevel::try_new(LEVEL).map_err(|error| failed(io::Error::other(error)))?;
        let compression = Compression::BROTLI(level);
        for recordings in self.0.chunks(ARCHIVED_TOGETHER) {
            let recordings: Vec<Recording> = recordings.iter().map(Recording::condensed).collect();
            part::write(folder, &recordings, compression).map_err(failed)?;
        }
        Ok(())
    }
}

impl Recording {
    /// With medians in the place of samples, in single precision.
    fn condensed(&self) -> Self {
        let mut condensed = self.clone();
        let Evaluation { outcomes, baselines, copy_bandwidth } = &mut condensed.evaluation;
        for outcome in outcomes {
            match outcome {
                Outcome::Measured(measurement) => {
                    measurement.worst_ratio = in_single(measurement.worst_ratio);
                    condense(&mut measurement.timing);
                }
                Outcome::Verified(verification) => {
                    verification.worst_ratio = in_single(verification.worst_ratio);
                }
                _ => {}
            }
        }
        for baseline in baselines {
            if let Ok(timing) = &mut baseline.timing {
                condense(timing);
            }
        }
        *copy_bandwidth = copy_bandwidth.map(in_single);
        condensed
    }
}

fn condense(timing: &mut Timing) {
    for samples in [&mut timing.cold, &mut timing.warm, &mut timing.back_to_back] {
        // A time above 0 stays above 0.
        let median = samples.as_ref().map(|samples| in_single(samples.median()));
        *samples = median.and_then(|median| Samples::try_from(vec![median]).ok());
    }
}

fn in_single(number: f64) -> f64 {
    f64::from(number as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::recording::row::tests::recording;

    #[test]
    fn an_archive_keeps_medians_in_single_precision() {
        let times = |times: Vec<f64>| {
            let mut recording = recording();
            for outcome in &mut recording.evaluation.outcomes {
                if let Outcome::Measured(measurement) = outcome {
                    measurement.timing.warm = Some(times.clone().try_into().unwrap());
                }
            }
            recording
        };
        let folder = tempfile::tempdir().unwrap();
        Recordings(vec![times(vec![3e-5, 1e-5, 2e-5])]).archive(folder.path()).unwrap();
        let kept = Recordings::read(folder.path()).unwrap();
        assert_eq!(kept.as_slice(), [times(vec![f64::from(2e-5_f32)])]);
    }
}
