//! Shared libraries in files that may be cut, as by a disk that was full or a copy that was
//! interrupted.
//!
//! The loader maps a file without a look at its length, and the first touch of what lies behind its
//! end ends the process by a signal. Nothing in this process can prevent that once the file is
//! mapped, so that its length is compared before.

use std::fs::File;
use std::path::{Path, PathBuf};

use libloading::Library;
use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

/// A library cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The file ends before what the loader would map of it.
    #[error("the file was cut: it has {length} of at least {needed} bytes; install it anew")]
    Cut {
        /// Bytes that there are.
        length: u64,
        /// Bytes that are mapped.
        needed: u64,
    },
    /// The loader's reason, in one line.
    #[error("{0}")]
    Loader(String),
}

/// Opens the library at `path`, or under that name in the loader's search path when it has no
/// folder.
///
/// # Safety
/// The library's initialisers run with the rights of this process: it has to be one that the user
/// trusts.
pub(crate) unsafe fn open(path: &Path) -> Result<Library, OpenError> {
    if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty()) {
        check_length(path)?;
    }
    // SAFETY: the caller's promise.
    let library = unsafe { Library::new(path) };
    library.map_err(|error| OpenError::Loader(error.to_string().replace('\n', " ")))
}

/// The first file of one of these names where the loader looks, if that one is cut. What an
/// administrator has added to the loader's folders is not looked at.
pub(crate) fn cut_in_search_path(names: &[&str]) -> Option<(PathBuf, OpenError)> {
    /// Where distributions install the driver.
    const FOLDERS: [&str; 4] =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let searched = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&searched).chain(FOLDERS.map(PathBuf::from));
    let folders: Vec<_> = folders.collect();
    let mut files = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    let first = files.find(|file| file.is_file())?;
    let error = check_length(&first).err()?;
    Some((first, error))
}

/// Refuses a file that is shorter than what its own headers have mapped. What cannot be read, or is
/// no library of this kind, is the loader's to refuse.
fn check_length(path: &Path) -> Result<(), OpenError> {
    let Some((length, needed)) = lengths(path) else { return Ok(()) };
    if length < needed { Err(OpenError::Cut { length, needed }) } else { Ok(()) }
}

/// The length of a library's file, and where the last of its segments ends.
fn lengths(path: &Path) -> Option<(u64, u64)> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let file = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?.iter();
    let mapped = segments.filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = mapped.map(|segment| segment.p_offset(endian).checked_add(segment.p_filesz(endian)));
    Some((metadata.len(), ends.map(|end| end.unwrap_or(u64::MAX)).max()?))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_cut_library_is_told_from_a_whole_one_without_being_opened() {
        // Whatever program runs this test is in the same format.
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let (_, needed) = lengths(&std::env::current_exe().unwrap()).unwrap();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("libcut.so");
        let mut refused = 0;
        for part in 0..=16 {
            let length = whole.len() * part / 16;
            std::fs::write(&path, &whole[..length]).unwrap();
            let is_cut = check_length(&path).is_err();
            // Without its headers it is no library, which the loader says.
            assert_eq!(is_cut, part > 0 && (length as u64) < needed, "{length} of {needed}");
            refused += u32::from(is_cut);
        }
        assert!(refused > 0);
        std::fs::write(&path, &whole[..whole.len() / 16]).unwrap();
        // SAFETY: it is refused before anything in it runs.
        let error = unsafe { open(&path) }.unwrap_err();
        assert!(error.to_string().starts_with("the file was cut: it has "), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
