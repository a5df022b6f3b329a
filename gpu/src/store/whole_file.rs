//! Files that are there whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Bytes of an ending that the temporary name has, too: that name must not be too long where the
/// file's own is not.
const MOST_OF_ENDING: usize = 16;

/// What the names of files begin with that are not finished, or whose process was killed.
pub const UNFINISHED: &str = ".part-";

/// A file that has another name beside its own until it is finished. Dropped before, it leaves
/// nothing, and what was at its place is still there.
#[derive(Debug)]
pub struct WholeFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl WholeFile {
    /// Begins the file that is to be at `path`. Whoever may read files of this user may read it.
    ///
    /// # Errors
    /// When its folder cannot be written to, or when there is something else than a file at `path`.
    pub fn begin(path: &Path) -> io::Result<Self> {
        // A device would be replaced by a file.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::other("it is no regular file"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // What draws a picture goes by the ending.
        let mut ending = OsString::new();
        let is_ending = |extension: &&OsStr| extension.len() <= MOST_OF_ENDING;
        if let Some(extension) = path.extension().filter(is_ending) {
            ending.push(".");
            ending.push(extension);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED).suffix(&ending);
        // Temporary files are private by default; this one becomes an ordinary file, under the
        // umask.
        #[cfg(unix)]
        builder.permissions(
            <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666),
        );
        let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Where it is until it is finished.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name. It takes the place of what was there.
    ///
    /// # Errors
    /// When it cannot be written, or when a folder has the name.
    pub fn finish(self) -> io::Result<()> {
        // The name must not outlive a crash of the machine that the content does not.
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path)?;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = WholeFile::begin(path)?;
        file.write_all(bytes)?;
        file.finish()
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("results.json");
        for text in ["a long first version", "short"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        // As long as names may be.
        for name in [format!("a.{}", "b".repeat(253)), "c".repeat(255)] {
            let path = place.path().join(name);
            write(&path, b"x").unwrap();
            fs::remove_file(&path).unwrap();
        }
        let mut half = WholeFile::begin(&path).unwrap();
        half.write_all(b"half").unwrap();
        assert_eq!(half.temporary_path().extension(), path.extension());
        drop(half);
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
        assert!(write(&place.path().join("missing/results.json"), b"x").is_err());
        assert!(write(Path::new("/dev/null"), b"x").is_err(), "devices are not replaced");
        // A folder of that name cannot be replaced, and the attempt leaves nothing.
        fs::create_dir_all(place.path().join("folder/inner")).unwrap();
        assert!(write(&place.path().join("folder"), b"x").is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
