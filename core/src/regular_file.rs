//! Reading files that others named: neither what has no end nor what is too long is read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::vec::Vec;

/// Opens a file to read it.
///
/// # Errors
/// When it cannot be opened, or is no regular one: a pipe would be waited for, and a device has no
/// end.
pub fn open(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file; name one"));
    }
    File::open(path)
}

/// All bytes of a file that has at most so many.
///
/// # Errors
/// When the file cannot be read, is longer, or is no regular one.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    let too_long = || {
        let message = std::format!("it has more than {most} bytes, as no such file has");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if metadata.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile, and some say that they are empty and are not.
    let mut file = file.take(most.saturating_add(1));
    bytes.try_reserve_exact(usize::try_from(metadata.len()).unwrap_or(usize::MAX))?;
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_has_no_end_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read(place.path(), 5).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(
            read(&place.path().join("none"), 5).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        #[cfg(unix)]
        for endless in ["/dev/zero", "/dev/null"] {
            let error = read(Path::new(endless), 5).unwrap_err();
            assert_eq!(std::format!("{error}"), "it is no regular file; name one");
        }
    }
}
