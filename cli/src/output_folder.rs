//! A folder that appears whole or not at all.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::file_names;
use crate::interrupt::{self, Pending};
use crate::whole_file;

/// Begins the `format` of every file by which a folder is known as ours.
pub(crate) const FORMAT_PREFIX: &str = "sparserl ";
/// Bytes of a folder's name that its temporary one has, too: file systems have names of up to 255.
const MOST_OF_NAME: usize = 200;
/// Folders that lie beside one that must not be replaced, at most.
const MOST_BESIDE: u32 = 1000;
/// The files by which a folder is known as ours.
const MARKS: [&str; 2] = [file_names::PLAN, file_names::CANDIDATES];
/// The files of a folder of ours. One that holds anything else is not replaced.
const OURS: [&str; 11] = [
    file_names::SOURCE,
    file_names::PROGRAM,
    file_names::PLAN,
    file_names::CUBIN,
    file_names::PACKED,
    file_names::HOST,
    file_names::MAKEFILE,
    file_names::PYTHON,
    file_names::EXPECTED,
    file_names::HOST_PROGRAM,
    file_names::CANDIDATES,
];

/// What becomes of a kernel that somebody edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    Keep,
    Replace,
}

/// Where a folder was written, since its own name could not be had.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// The folder that it is.
    pub(crate) path: PathBuf,
    /// Why the other one could not be replaced.
    pub(crate) refusal: anyhow::Error,
}

/// A folder in the making, under another name beside the one it will have. When it is dropped
/// unfinished or the run is interrupted, nothing of it stays; when the process is killed, a hidden
/// folder does.
pub(crate) struct OutputFolder {
    /// The target as it was named, perhaps by a link.
    asked: PathBuf,
    target: PathBuf,
    edited: Edited,
    /// Absent once it is finished.
    work: Option<Pending>,
}

impl OutputFolder {
    /// Refuses a target that must not be written: anything but a folder that an earlier run wrote,
    /// with kernels that nobody has edited since, an empty one or none at all.
    pub(crate) fn check(target: &Path, edited: Edited) -> anyhow::Result<()> {
        let shown = target.display();
        if target.file_name().is_none() {
            bail!("{shown}: cannot be replaced; give the output folder a name of its own");
        }
        match fs::read_dir(target).map(Iterator::count) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                bail!("{shown}: is not a folder; choose another with --output")
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                bail!("{shown}: is too long a name for a folder; choose another with --output")
            }
            Err(error) => {
                Err(error).with_context(|| format!("{shown}: cannot look into the folder"))
            }
            Ok(0) => Ok(()),
            Ok(_) => match foreign(target, true) {
                Ok(None) if is_marked(target) => match edited_kernel(target) {
                    Some(kernel) if edited == Edited::Keep => bail!(
                        "{}: was edited since it was written; move it away, choose another folder \
                         with --output, or give --force to replace it",
                        kernel.display()
                    ),
                    _ => Ok(()),
                },
                Ok(None) => bail!(
                    "{shown}: holds other files (no plan.json of ours); empty it or choose another \
                     folder with --output"
                ),
                Ok(Some(name)) => bail!(
                    "{shown}: holds {}, which no run wrote; move it away or choose another folder \
                     with --output",
                    name.display()
                ),
                Err(error) => {
                    Err(error).with_context(|| format!("{shown}: cannot look into the folder"))
                }
            },
        }
    }

    /// Begins a folder that will be `target`.
    pub(crate) fn begin(target: &Path, edited: Edited) -> anyhow::Result<Self> {
        Self::check(target, edited)?;
        Self::begin_unchecked(target, edited)
    }

    /// Begins a folder for what must not be lost: it will be `target`, or lie beside it
    /// ([`finish_beside`](Self::finish_beside)).
    pub(crate) fn begin_unchecked(target: &Path, edited: Edited) -> anyhow::Result<Self> {
        let asked = target.to_owned();
        // A link to a folder stays a link: what it leads to is replaced.
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        let parent = parent(&target);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{}.", beginning(&name));
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        // Temporary folders are private by default; this one becomes an ordinary one, under the
        // umask.
        #[cfg(unix)]
        builder
            .permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777));
        let mut pending = interrupt::watch();
        let mut work = Pending { folder: target.clone(), made: interrupt::missing(parent) };
        match fs::create_dir_all(parent).and_then(|()| builder.tempdir_in(parent)) {
            // From now on `Self` removes it: after it got its name it must not be.
            Ok(folder) => work.folder = folder.keep(),
            Err(error) => {
                work.remove_made();
                return Err(error)
                    .with_context(|| format!("{}: cannot create the folder", target.display()));
            }
        }
        *pending = Some(work.clone());
        Ok(Self { asked, target, edited, work: Some(work) })
    }

    /// Where files are written until it is finished.
    fn work(&self) -> &Path {
        self.work.as_ref().map_or(&self.target, |work| &work.folder)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(
        &self,
        name: impl AsRef<Path>,
        bytes: impl AsRef<[u8]>,
    ) -> anyhow::Result<()> {
        self.write_with(name, |path| Ok(fs::write(path, bytes)?))
    }

    /// Has `write` fill a file, and makes the folders above it.
    pub(crate) fn write_with(
        &self,
        name: impl AsRef<Path>,
        write: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let _pending = interrupt::watch();
        let path = self.work().join(&name);
        fs::create_dir_all(parent(&path))
            .map_err(anyhow::Error::new)
            .and_then(|()| write(&path))
            .with_context(|| format!("{}: cannot write", self.target.join(&name).display()))
    }

    /// Gives the folder its name, or where something has that name that must not be replaced, the
    /// name with the first number that is free. Gives the refusal of the former.
    pub(crate) fn finish_beside(mut self) -> anyhow::Result<Option<Elsewhere>> {
        let Err(refusal) = Self::check(&self.target, self.edited) else {
            return self.finish().map(|()| None);
        };
        let name = self.target.file_name().unwrap_or_default().to_owned();
        let numbered = |number: u32| {
            let mut name = name.clone();
            name.push(format!("-{number}"));
            name
        };
        let is_free =
            |name: &OsString| Self::check(&self.target.with_file_name(name), Edited::Keep).is_ok();
        let Some(name) = (2..=MOST_BESIDE).map(numbered).find(is_free) else {
            return Err(refusal);
        };
        self.target.set_file_name(&name);
        self.edited = Edited::Keep;
        // As it was asked for, unless that is a link to another place.
        let asked = self.asked.with_file_name(&name);
        let is_there = parent(&asked).canonicalize().ok().as_deref() == self.target.parent();
        let path = if is_there { asked } else { self.target.clone() };
        self.finish()?;
        Ok(Some(Elsewhere { path, refusal }))
    }

    /// Gives the folder its name, in one step.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let mut pending = interrupt::watch();
        // Someone may have put something there meanwhile.
        Self::check(&self.target, self.edited)?;
        let failed = || format!("{}: cannot create the folder", self.target.display());
        // Takes the place of an empty folder, but of no other.
        let Some(work) = &mut self.work else { return Ok(()) };
        match fs::rename(&work.folder, &self.target) {
            Ok(()) => {}
            // What was there has the temporary name now, and is removed.
            Err(error) if is_occupied(&error) => {
                exchange(&work.folder, &self.target).with_context(failed)?;
                let _ = fs::remove_dir_all(&work.folder);
            }
            Err(error) => return Err(error).with_context(failed),
        }
        self.work = None;
        *pending = None;
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        let Some(unfinished) = self.work.take() else { return };
        let mut pending = interrupt::watch();
        unfinished.remove();
        *pending = None;
    }
}

/// As much of a name as leaves room for what is added to it.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(MOST_OF_NAME)]
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name in a folder that we do not write; in the numbered subfolders too where `numbered`.
fn foreign(folder: &Path, numbered: bool) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, file_name) = (entry.file_type()?, entry.file_name());
        let name = file_name.to_string_lossy();
        if kind.is_file() && OURS.contains(&&*name) {
            continue;
        }
        if kind.is_dir() && numbered && name.bytes().all(|byte| byte.is_ascii_digit()) {
            if let Some(inner) = foreign(&entry.path(), false)? {
                return Ok(Some(Path::new(&file_name).join(inner)));
            }
            continue;
        }
        return Ok(Some(file_name.into()));
    }
    Ok(None)
}

/// The source of a kernel that was edited, in a folder of ours or a numbered one in it.
fn edited_kernel(folder: &Path) -> Option<PathBuf> {
    let subfolders = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = subfolders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut folders = std::iter::once(folder.to_owned()).chain(folders);
    Some(folders.find(|folder| is_edited(folder))?.join(file_names::SOURCE))
}

fn is_marked(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        format: String,
    }
    MARKS.iter().any(|mark| {
        let text = whole_file::read(&folder.join(mark)).unwrap_or_default();
        serde_json::from_slice::<Marked>(&text).is_ok_and(|m| m.format.starts_with(FORMAT_PREFIX))
    })
}

fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// Swaps two folders, at no moment without one of either name where the system can.
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
            // Some file systems cannot.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            result => return Ok(result?),
        }
    }
    let aside = TempDir::with_prefix_in(".old.", parent(b))?;
    let old = aside.path().join("old");
    fs::rename(b, &old)?;
    fs::rename(a, b).and_then(|()| fs::rename(&old, a)).inspect_err(|_| {
        // Back to where it was, if that is possible.
        let _ = fs::rename(&old, b);
    })
}

/// Whether the source in a kernel's folder is another than its plan knows. Plans of earlier
/// versions do not tell.
pub(crate) fn is_edited(folder: &Path) -> bool {
    let hash = || {
        let plan = whole_file::read(&folder.join(file_names::PLAN)).ok()?;
        let plan: Value = serde_json::from_slice(&plan).ok()?;
        let written = plan.get("kernel")?.get("blake3")?.as_str()?;
        let source = whole_file::read(&folder.join(file_names::SOURCE)).ok()?;
        Some(blake3::hash(&source).to_hex().as_str() != written)
    };
    hash().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"format": "sparserl plan 1"}"#;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(target: &Path, text: &str) -> anyhow::Result<()> {
        let folder = OutputFolder::begin(target, Edited::Keep)?;
        folder.write("plan.json", PLAN)?;
        folder.write("1/kernel.cu", text)?;
        folder.finish()
    }

    #[test]
    fn a_folder_appears_whole_and_is_replaced_whole() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("deep/er/out");
        write(&target, "old").unwrap();
        fs::write(target.join("kernel.cubin"), "stale").unwrap();
        write(&target, "new").unwrap();
        assert_eq!(fs::read_to_string(target.join("1/kernel.cu")).unwrap(), "new");
        assert_eq!(names(&target), ["1", "plan.json"]);
        assert_eq!(names(target.parent().unwrap()), ["out"], "nothing is left behind");
    }

    #[test]
    fn an_empty_folder_is_filled() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        fs::create_dir(&target).unwrap();
        write(&target, "x").unwrap();
        assert_eq!(names(&target), ["1", "plan.json"]);
    }

    #[test]
    fn an_unfinished_folder_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = OutputFolder::begin(&place.path().join("out"), Edited::Keep).unwrap();
        folder.write("plan.json", PLAN).unwrap();
        drop(folder);
        assert_eq!(names(place.path()), [""; 0]);
        // Nor do the folders that were made for it.
        drop(OutputFolder::begin(&place.path().join("deep/er/out"), Edited::Keep).unwrap());
        assert_eq!(names(place.path()), [""; 0]);
    }

    #[test]
    fn what_is_not_ours_is_refused_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        fs::create_dir(&target).unwrap();
        for (name, text) in [("thesis.tex", "years"), ("plan.json", r#"{"format": "terraform"}"#)] {
            fs::write(target.join(name), text).unwrap();
            assert!(write(&target, "x").is_err());
            assert_eq!(fs::read_to_string(target.join(name)).unwrap(), text);
            fs::remove_file(target.join(name)).unwrap();
        }
        fs::write(place.path().join("file"), "").unwrap();
        for name in ["file", ".."] {
            assert!(OutputFolder::check(&place.path().join(name), Edited::Keep).is_err());
        }
        assert!(OutputFolder::check(Path::new("."), Edited::Keep).is_err());
    }

    #[test]
    fn a_folder_of_ours_with_a_file_of_someone_else_is_refused_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        for (name, named) in [
            ("input.mtx", "input.mtx"),
            ("1/notes.txt", "1/notes.txt"),
            ("x/kernel.cu", "x"),
            ("1/2/kernel.cu", "1/2"),
            ("kernel.cu/x", "kernel.cu"),
        ] {
            write(&target, "old").unwrap();
            let file = target.join(name);
            fs::create_dir_all(parent(&file)).unwrap();
            fs::write(&file, "years").unwrap();
            let error = write(&target, "new").unwrap_err().to_string();
            assert!(error.contains(&format!("holds {named}, ")), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "years");
            assert_eq!(fs::read_to_string(target.join("1/kernel.cu")).unwrap(), "old");
            fs::remove_dir_all(&target).unwrap();
        }
    }

    #[test]
    fn what_comes_meanwhile_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let folder = OutputFolder::begin(&target, Edited::Keep).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("other"), "").unwrap();
        assert!(folder.finish().is_err());
        assert_eq!(names(&target), ["other"]);
    }

    #[test]
    fn what_must_not_be_lost_comes_to_lie_beside_what_must_not_be_replaced() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let finish = |edited| {
            let folder = OutputFolder::begin_unchecked(&target, edited).unwrap();
            folder.write("plan.json", PLAN).unwrap();
            folder.finish_beside().unwrap()
        };
        assert!(finish(Edited::Keep).is_none());
        assert!(finish(Edited::Keep).is_none(), "what a run wrote is replaced");
        fs::write(target.join("notes.txt"), "years").unwrap();
        for _ in 0..2 {
            let Elsewhere { path, refusal } = finish(Edited::Replace).unwrap();
            assert_eq!(path, place.path().join("out-2"));
            assert!(refusal.to_string().contains("holds notes.txt, "), "{refusal}");
        }
        fs::write(place.path().join("out-2/notes.txt"), "years").unwrap();
        assert_eq!(finish(Edited::Keep).unwrap().path, place.path().join("out-3"));
        assert_eq!(names(&target), ["notes.txt", "plan.json"]);
        assert_eq!(names(place.path()), ["out", "out-2", "out-3"], "nothing is left behind");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(real.join("1/kernel.cu")).unwrap(), "new");
    }
}
