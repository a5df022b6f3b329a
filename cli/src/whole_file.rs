//! Files that are whole at every moment.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::interrupt;

/// Writes a file under another name beside `path`, then gives it its name. An interruption waits
/// until that is done.
///
/// # Errors
/// When the file cannot be written; then what was there is still there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let _uninterrupted = interrupt::watch();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".part");
    // Temporary files are private by default; this one becomes an ordinary file, under the umask.
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    let written = builder.tempfile_in(folder).and_then(|file| {
        fs::write(file.path(), bytes)?;
        // The name must not outlive a crash of the machine that the content does not.
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    });
    written.with_context(|| format!("{}: cannot write", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("results.json");
        for text in ["a long first version", "short"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(write(&place.path().join("missing/results.json"), b"x").is_err());
        // A folder of that name cannot be replaced, and the attempt leaves nothing.
        fs::create_dir_all(place.path().join("folder/inner")).unwrap();
        assert!(write(&place.path().join("folder"), b"x").is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
