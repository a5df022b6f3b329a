//! Compiled programs in files, beside the recordings that the programs are of: a line of JSON for
//! each, compressed.

use std::io;
use std::path::{Path, PathBuf};

use sparserl_core::regular_file;

use super::{CompiledProgram, CompiledPrograms};
use crate::whole_file::{read_json_lines, write_json_lines};

/// What the file is called in a folder of recordings.
pub const COMPILED: &str = "compiled.json.gz";

/// A file of compiled programs could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CompiledFileError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is damaged, or holds something else.
    #[error(
        "`{}` is damaged, or no file of compiled programs: {source}; remove it, and `compile` anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// It cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl CompiledPrograms {
    /// The compiled programs of a folder of recordings, as far as they would be compiled to the
    /// same today: those of layouts whose kernels have changed since are left out. None where
    /// nothing was compiled.
    ///
    /// # Errors
    /// When their file cannot be read, is damaged, or holds something else.
    pub fn read(folder: &Path) -> Result<Self, CompiledFileError> {
        let path = folder.join(COMPILED);
        let file = match regular_file::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(CompiledFileError::Read { path, source }),
        };
        let compiled: Vec<CompiledProgram> =
            read_json_lines(file).map_err(|source| CompiledFileError::Damaged { path, source })?;
        let mut all = Self::default();
        compiled
            .into_iter()
            .filter_map(CompiledProgram::of_today)
            .for_each(|compiled| all.insert(compiled));
        Ok(all)
    }

    /// Writes them to their file in a folder of recordings, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), CompiledFileError> {
        let path = folder.join(COMPILED);
        write_json_lines(&path, self.iter())
            .map_err(|source| CompiledFileError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sparserl_core::language::LANGUAGE_VERSION;

    use super::super::tests::of_registers;
    use super::*;

    fn text(lanes: u32) -> String {
        format!(
            "sparserl {LANGUAGE_VERSION}\nspmv f32\nblock 128\nkeep csr index=u32 values=plain \
             cache=cached vector=1 lanes={lanes} unroll=1\n"
        )
    }

    #[test]
    fn what_is_read_is_what_was_written_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(CompiledPrograms::read(folder.path()).unwrap().is_empty());
        let mut all = CompiledPrograms::default();
        for lanes in [1, 2, 4, 8, 16, 32] {
            all.insert(of_registers(&text(lanes), 16 + lanes));
        }
        all.write(folder.path()).unwrap();
        assert_eq!(CompiledPrograms::read(folder.path()).unwrap(), all);
        let path = folder.path().join(COMPILED);
        let bytes = fs::read(&path).unwrap();
        for length in [bytes.len() - 1, bytes.len() / 2, 3] {
            fs::write(&path, &bytes[..length]).unwrap();
            let error = CompiledPrograms::read(folder.path()).unwrap_err();
            assert!(matches!(error, CompiledFileError::Damaged { .. }), "{length}: {error}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
        fs::write(&path, "{}").unwrap();
        let error = CompiledPrograms::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(COMPILED), "{error}");
    }

    #[test]
    fn programs_of_other_versions_are_read_as_those_of_today_or_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let today = text(8);
        let version = format!("sparserl {LANGUAGE_VERSION}");
        let older = of_registers(&today.replace(&version, "sparserl 3"), 24);
        let mut unknown = of_registers(&text(16), 32);
        unknown.grammar_hash = !unknown.grammar_hash;
        let mut all = CompiledPrograms::default();
        for compiled in
            [older, unknown, of_registers(&format!("{version}\nspmv f32\nno program\n"), 40)]
        {
            all.insert(compiled);
        }
        all.write(folder.path()).unwrap();
        let read = CompiledPrograms::read(folder.path()).unwrap();
        let texts: Vec<&str> = read.iter().map(|compiled| compiled.program.as_str()).collect();
        assert_eq!(texts, [today]);
    }
}
