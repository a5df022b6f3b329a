//! Files that are there whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use sparserl_gpu::store::whole_file::WholeFile;

/// Writes a file under a temporary name of its own, and then gives it `path`.
///
/// # Errors
/// When it cannot be written; what was at `path` is then still there.
pub fn write_whole(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(WholeFile::begin(path)?);
    contents(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Writes a result as JSON for people and programs.
///
/// # Errors
/// As [`write_whole`].
pub fn write_json(path: &Path, result: &impl Serialize) -> io::Result<()> {
    write_whole(path, |file| {
        serde_json::to_writer_pretty(&mut *file, result)?;
        writeln!(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        write_json(&path, &[1, 2]).unwrap();
        let before = std::fs::read_to_string(&path).unwrap();
        let failed = write_whole(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
