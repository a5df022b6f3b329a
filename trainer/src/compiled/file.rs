//! Compiled programs in files, beside the recordings that the programs are of: a line of JSON for
//! each, compressed.

use std::fs;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use sparserl_core::regular_file;

use super::{CompiledProgram, CompiledPrograms};
use crate::whole_file::write_whole;

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
    /// The compiled programs of a folder of recordings; none where nothing was compiled.
    ///
    /// # Errors
    /// When their file cannot be read, is damaged, or holds something else.
    pub fn read(folder: &Path) -> Result<Self, CompiledFileError> {
        let path = folder.join(COMPILED);
        let file = match fs::exists(&path)
            .and_then(|there| there.then(|| regular_file::open(&path)).transpose())
        {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Self::default()),
            Err(source) => return Err(CompiledFileError::Read { path, source }),
        };
        let text = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
        let mut all = Self::default();
        for compiled in serde_json::Deserializer::from_reader(text).into_iter::<CompiledProgram>() {
            match compiled {
                Ok(compiled) => all.insert(compiled),
                Err(source) => return Err(CompiledFileError::Damaged { path, source }),
            }
        }
        Ok(all)
    }

    /// Writes them to their file in a folder of recordings, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), CompiledFileError> {
        let path = folder.join(COMPILED);
        let written = write_whole(&path, |file| {
            let mut encoder = GzEncoder::new(file, Compression::best());
            for compiled in self.iter() {
                serde_json::to_writer(&mut encoder, compiled)?;
                writeln!(encoder)?;
            }
            encoder.finish().map(|_| ())
        });
        written.map_err(|source| CompiledFileError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of_registers;
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(CompiledPrograms::read(folder.path()).unwrap().is_empty());
        let mut all = CompiledPrograms::default();
        for registers in 16..80 {
            all.insert(of_registers(&format!("sparserl 6\nspmv f32\n{registers}\n"), registers));
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
}
