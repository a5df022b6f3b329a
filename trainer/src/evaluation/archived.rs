//! The results of all cases of an evaluation in one file, from which its table can be made again:
//! a line of JSON for each case, compressed.

use std::io;
use std::path::Path;

use sparserl_core::regular_file;

use super::{CaseResult, ResultError};
use crate::whole_file::{read_json_lines, write_json_lines};

/// What the file is called in a folder of recordings.
pub const ARCHIVED: &str = "cases.json.gz";

/// Writes the results of cases to a file, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn archive_cases(cases: &[CaseResult], path: &Path) -> io::Result<()> {
    write_json_lines(path, cases)
}

/// The results of cases in a file that [`archive_cases`] wrote.
///
/// # Errors
/// When the file cannot be read, is damaged, or holds something else.
pub fn read_archived(path: &Path) -> Result<Vec<CaseResult>, ResultError> {
    let failed = |source| ResultError::Read { path: path.to_owned(), source };
    let file = regular_file::open(path).map_err(failed)?;
    let cases = read_json_lines(file);
    cases.map_err(|source| ResultError::Damaged { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::super::{Oracle, TimedProgram};
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_what_is_cut_short_is_not_read() {
        let timed =
            |seconds| TimedProgram { program: "a\nb".to_owned(), cold: Some(seconds), warm: None };
        let case = |seconds: f64| CaseResult {
            recipe: "real/heet".to_owned(),
            family: "heet".to_owned(),
            task: "spmv f32".to_owned(),
            choosers: Vec::new(),
            oracle: Oracle { cold: timed(seconds), warm: timed(seconds / 3.0) },
            searched: 7,
        };
        let cases: Vec<CaseResult> = (1..40).map(|place| case(0.1 / f64::from(place))).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ARCHIVED);
        archive_cases(&cases, &path).unwrap();
        assert_eq!(read_archived(&path).unwrap(), cases);
        let bytes = std::fs::read(&path).unwrap();
        for length in [bytes.len() - 1, bytes.len() / 2, 3] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let error = read_archived(&path).unwrap_err();
            assert!(matches!(error, ResultError::Damaged { .. }), "{length}: {error}");
        }
        std::fs::write(&path, "{}").unwrap();
        assert!(read_archived(&path).unwrap_err().to_string().contains(ARCHIVED));
    }
}
