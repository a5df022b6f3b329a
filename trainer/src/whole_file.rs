//! Files that are there whole or not at all.
//!
//! Until it is finished a file has another name, `.part-…`, which a process that is killed leaves
//! behind. It is locked as long as its process lives, also for other machines that see the folder,
//! so whoever writes there next can tell, and removes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sparserl_gpu::store::whole_file::{UNFINISHED, WholeFile};

/// A file that was written to so recently is not looked at: it may have just been made, and not
/// been locked yet, or be of somebody who takes no lock.
const NEW: Duration = Duration::from_secs(600);

/// Writes a file under a temporary name of its own, and then gives it `path`.
///
/// # Errors
/// When it cannot be written; what was at `path` is then still there.
pub fn write_whole(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<()>,
) -> io::Result<()> {
    let write = || {
        let file = WholeFile::begin(path)?;
        let _alive = lock(file.temporary_path());
        let temporary = file.temporary_path();
        if let Some(folder) = temporary.parent() {
            remove_lost(folder, temporary.extension());
        }
        let mut file = BufWriter::new(file);
        contents(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    };
    write().map_err(in_words)
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

/// Writes results in little space: a line of JSON for each, compressed by gzip.
///
/// # Errors
/// As [`write_whole`].
pub fn write_json_lines<T: Serialize>(
    path: &Path,
    results: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write_whole(path, |file| {
        let mut encoder = GzEncoder::new(file, Compression::best());
        for result in results {
            serde_json::to_writer(&mut encoder, &result)?;
            writeln!(encoder)?;
        }
        encoder.finish().map(|_| ())
    })
}

/// What [`write_json_lines`] wrote to a file that is open.
///
/// # Errors
/// When it is damaged, or holds something else.
pub(crate) fn read_json_lines<T: DeserializeOwned>(
    file: File,
) -> Result<Vec<T>, serde_json::Error> {
    let text = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
    serde_json::Deserializer::from_reader(text).into_iter().collect()
}

/// Removes from a folder what processes left there that were killed while they wrote a file of this
/// ending: what is locked by nobody, and was not written to for a time that is longer than anyone
/// who takes no lock would need. What cannot be removed takes some space and does no other harm.
pub fn remove_lost(folder: &Path, ending: Option<&OsStr>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        if is_unfinished && path.extension() == ending && is_lost(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_lost(path: &Path) -> bool {
    // Elsewhere than on Unix no other handle can write what is locked, so nothing is.
    if cfg!(not(unix)) {
        return false;
    }
    // Whoever opens a pipe waits for its other end.
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let Ok(written) = metadata.modified() else { return false };
    // Clocks of machines differ; a file from the future is a new one.
    let age = SystemTime::now().duration_since(written).unwrap_or_default();
    metadata.is_file() && age > NEW && lock(path).is_some()
}

/// Holds a file until this is dropped, or its process ends in whatever way; `None` if another
/// process does, or where files cannot be held.
fn lock(path: &Path) -> Option<File> {
    if cfg!(not(unix)) {
        return None;
    }
    // Over a network only who may write a file may lock it.
    let file = File::options().write(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// A full disk is the user's to make room on.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            io::Error::new(kind, format!("the disk is full ({kind}): make room on it"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_was_there_stays_until_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        write_json(&path, &[1, 2]).unwrap();
        let before = std::fs::read_to_string(&path).unwrap();
        let failed = write_whole(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let error = failed.unwrap_err().to_string();
        assert!(error.starts_with("the disk is full") && error.lines().count() == 1, "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let leave = |name: &str, age: u64| -> PathBuf {
            let file = File::create(path(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            path(name)
        };
        let left = [leave(".part-killed.json", 3600), leave(".part-two.json", 601)];
        let others = [
            leave(".part-just.json", 1),
            leave(".part-another.parquet", 3600),
            leave(".part-ending", 3600),
            leave("part-name.json", 3600),
        ];
        let pipe = path(".part-pipe.json");
        let mut make = std::process::Command::new("mkfifo");
        assert!(make.arg(&pipe).status().unwrap().success());
        let alive = leave(".part-alive.json", 3600);
        let of_another = lock(&alive).unwrap();
        write_json(&path("result.json"), &1).unwrap();
        assert!(left.iter().all(|path| !path.exists()));
        assert!(others.iter().all(|path| path.exists()) && pipe.exists() && alive.exists());
        // Nor is what is being written, however slowly.
        write_whole(&path("slow.json"), |file| {
            file.flush()?;
            let temporary = file.get_ref().temporary_path().to_owned();
            let old = SystemTime::now() - Duration::from_secs(3600);
            File::options().write(true).open(&temporary)?.set_modified(old)?;
            write_json(&path("result.json"), &2)?;
            assert!(temporary.exists());
            Ok(())
        })
        .unwrap();
        drop(of_another);
        write_json(&path("result.json"), &3).unwrap();
        assert!(!alive.exists());
        remove_lost(folder.path(), Some("parquet".as_ref()));
        assert!(!others[1].exists() && others[0].exists());
    }
}
