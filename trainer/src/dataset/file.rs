//! Datasets in files: compressed, with a checksum, and with the signature of the version that they
//! are for.

use std::io::{self, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sparserl_core::regular_file;
use sparserl_onnx_models::signature::SignatureMismatch;

use super::Dataset;
use crate::whole_file::write_whole;

/// Begins every file; the number is raised when the format changes.
const MAGIC: &[u8; 20] = b"sparserl dataset  3\n";

/// A dataset is so many times as long as its file, at most. A file that repeats one byte is a
/// thousand times as long, and would fill the memory.
const MOST_EXPANSION: u64 = 100;

/// A dataset could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be read.
    #[error("cannot read the dataset `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the dataset `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It does not begin like a dataset of this version.
    #[error("`{}` is no dataset of this version: remove it, and prepare it anew", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not what was written.
    #[error("the dataset `{}` is damaged or cut short: remove it, and prepare it anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// It was made for another version.
    #[error("the dataset `{}` was {source}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The difference.
        source: SignatureMismatch,
    },
}

impl Dataset {
    /// Reads a dataset that this version can use.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or was made for another version.
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Read { path: path.into(), source };
        let damaged = || DatasetError::Damaged { path: path.into() };
        let file = regular_file::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::new(file);
        let mut magic = [0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Ok(()) if magic == *MAGIC => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(failed(error));
            }
            Ok(()) | Err(_) => return Err(DatasetError::Foreign { path: path.into() }),
        }
        let mut bytes = Vec::new();
        // The checksum of gzip is over all that is decoded, and is looked at where it ends.
        let most = length.saturating_mul(MOST_EXPANSION);
        GzDecoder::new(file).take(most).read_to_end(&mut bytes).map_err(|_| damaged())?;
        if bytes.len() as u64 == most {
            return Err(damaged());
        }
        // The signature comes first: of another version, the rest may mean anything.
        let (signature, _) =
            postcard::take_from_bytes::<sparserl_onnx_models::signature::Signature>(&bytes)
                .map_err(|_| damaged())?;
        signature
            .check()
            .map_err(|source| DatasetError::Signature { path: path.into(), source })?;
        let dataset: Self = postcard::from_bytes(&bytes).map_err(|_| damaged())?;
        let count = dataset.matrices.len();
        let whole = dataset.cases.iter().all(|case| (case.matrix as usize) < count);
        if whole { Ok(dataset) } else { Err(damaged()) }
    }

    /// Writes the dataset, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DatasetError> {
        let written = write_whole(path, |file| self.encode(file));
        written.map_err(|source| DatasetError::Write { path: path.into(), source })
    }

    fn encode(&self, mut to: impl Write) -> io::Result<()> {
        // By way of memory, as it is read: `postcard::to_io` forgets why a writer failed.
        let bytes = postcard::to_stdvec(self).map_err(io::Error::other)?;
        to.write_all(MAGIC)?;
        let mut encoder = GzEncoder::new(to, Compression::fast());
        encoder.write_all(&bytes)?;
        encoder.finish().map(|_| ())
    }
}

#[cfg(test)]
mod tests;
