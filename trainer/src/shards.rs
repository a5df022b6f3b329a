//! Work that any number of processes on any number of machines share through a folder.
//!
//! A shard is a number. Whoever works on it holds the file `NUMBER.claim`, made so that only one
//! can make it, with a random text in it that nobody else has, and makes `NUMBER.done` at the end.
//! A claim that was not renewed for the time of its lease belongs to a process that was lost, and
//! is taken over: a lost process loses what it had claimed and no more. Creating, reading, renaming
//! and the times of files are used, which network file systems offer as well. Hard links do no more
//! than put back a claim that another process made just as a lost one was taken over: where there
//! are none, that claim is gone, and the shard may be done twice, which does no harm.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use sparserl_core::regular_file;

/// The shards of one piece of work.
#[derive(Debug)]
pub struct Shards {
    folder: PathBuf,
    count: u64,
    lease: Duration,
    /// All before it were done when they were looked at.
    first_open: u64,
}

/// A shard that this process works on. Dropped without [`finish`](Claim::finish), it is free again.
#[derive(Debug)]
pub struct Claim {
    number: u64,
    path: PathBuf,
    /// What its file says: that of another process, which took the shard over, says something else.
    text: String,
    done: PathBuf,
    lease: Duration,
}

/// The folder of shards cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` to share work: {source}", path.display())]
pub struct ShardError {
    /// The folder or file.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

impl Shards {
    /// Shards 0 to `count` − 1, shared through `folder`, which is made if need be. A claim that is
    /// older than `lease` is taken over: it has to be longer than a shard may take.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path, count: u64, lease: Duration) -> Result<Self, ShardError> {
        fs::create_dir_all(folder)
            .map_err(|source| ShardError { path: folder.to_owned(), source })?;
        Ok(Self { folder: folder.to_owned(), count, lease, first_open: 0 })
    }

    /// A shard that is neither done nor claimed, the lowest number first; `None` when there is none
    /// at the moment.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn claim(&mut self) -> Result<Option<Claim>, ShardError> {
        let mut all_done_before = true;
        for number in self.first_open..self.count {
            let (path, done) = (self.path(number, "claim"), self.path(number, "done"));
            if done.exists() {
                if all_done_before {
                    self.first_open = number + 1;
                }
                continue;
            }
            all_done_before = false;
            let failed = |source| ShardError { path: path.clone(), source };
            if self.is_lost(&path).map_err(failed)? {
                self.take_over(number, &path).map_err(failed)?;
            }
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let text = format!("{:016x}", fastrand::u64(..));
                    if let Err(source) = file.write_all(text.as_bytes()) {
                        let _ = fs::remove_file(&path);
                        return Err(failed(source));
                    }
                    let claim = Claim { number, path, text, done, lease: self.lease };
                    // Finished by another between the two looks; the claim is given back.
                    if !claim.done.exists() {
                        return Ok(Some(claim));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(failed(source)),
            }
        }
        Ok(None)
    }

    /// Number of shards that are done.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn done(&self) -> Result<u64, ShardError> {
        let failed = |source| ShardError { path: self.folder.clone(), source };
        let mut done = 0;
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            done += u64::from(path.extension().is_some_and(|extension| extension == "done"));
        }
        Ok(done)
    }

    fn path(&self, number: u64, state: &str) -> PathBuf {
        self.folder.join(format!("{number:06}.{state}"))
    }

    fn is_lost(&self, path: &Path) -> io::Result<bool> {
        let renewed = match fs::metadata(path) {
            Ok(metadata) => metadata.modified()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // Clocks of machines differ; a claim from the future is a new one.
        let age = SystemTime::now().duration_since(renewed).unwrap_or_default();
        Ok(age > self.lease)
    }

    /// Takes a lost claim out of the way. Of several processes only one can rename it; what another
    /// one has made in its place meanwhile is put back, unless there is one again, or there are no
    /// hard links.
    fn take_over(&self, number: u64, path: &Path) -> io::Result<()> {
        let aside =
            self.path(number, &format!("lost-{}-{}", std::process::id(), fastrand::u64(..)));
        match fs::rename(path, &aside) {
            Ok(()) => {
                if !self.is_lost(&aside)? {
                    drop(fs::hard_link(&aside, path));
                }
                fs::remove_file(&aside)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Claim {
    /// The shard.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Says that this process is still at work.
    ///
    /// # Errors
    /// When the claim cannot be written.
    pub fn renew(&self) -> Result<(), ShardError> {
        if !self.is_held().map_err(|source| self.failed(source))? {
            // Both do the work then, which does no harm.
            return Ok(());
        }
        let now = SystemTime::now();
        let renewed =
            File::options().write(true).open(&self.path).and_then(|f| f.set_modified(now));
        match renewed {
            // Another process took it over in this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renewed => renewed.map_err(|source| self.failed(source)),
        }
    }

    /// Does something for which the claim is renewed, four times in the time of its lease.
    pub fn renew_while<T>(&self, work: impl FnOnce() -> T) -> T {
        let every = self.lease / 4;
        let (working, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    // One that cannot be renewed is lost to another process, which does no harm.
                    let _ = self.renew();
                }
            });
            let done = work();
            drop(working);
            done
        })
    }

    /// The shard is done, for good.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn finish(self) -> Result<(), ShardError> {
        File::create(&self.done).map_err(|source| self.failed(source))?;
        self.give_back().map_err(|source| self.failed(source))
    }

    /// Whether no other process has taken the shard over.
    fn is_held(&self) -> io::Result<bool> {
        match regular_file::read(&self.path, self.text.len() as u64) {
            Ok(written) => Ok(written == self.text.as_bytes()),
            // Given back, or longer than any claim.
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Removes the claim, unless it is another process's. One that is taken over between these two
    /// is removed all the same: a third process may claim the shard then, which does no harm.
    fn give_back(&self) -> io::Result<()> {
        if !self.is_held()? {
            return Ok(());
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn failed(&self, source: io::Error) -> ShardError {
        ShardError { path: self.path.clone(), source }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What remains is taken over when its lease has ended.
        let _ = self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    #[test]
    fn a_shard_is_claimed_once_and_done_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Shards::open(folder.path(), 3, LEASE).unwrap();
        let (mut one, mut other) = (open(), open());
        let first = one.claim().unwrap().unwrap();
        let second = other.claim().unwrap().unwrap();
        assert_eq!((first.number(), second.number()), (0, 1));
        first.finish().unwrap();
        // Given back.
        drop(second);
        assert_eq!(one.claim().unwrap().map(|claim| claim.number()), Some(1));
        let second = one.claim().unwrap().unwrap();
        let third = other.claim().unwrap().unwrap();
        assert!(one.claim().unwrap().is_none() && other.claim().unwrap().is_none());
        second.finish().unwrap();
        third.finish().unwrap();
        assert!(open().claim().unwrap().is_none());
        assert_eq!(one.done().unwrap(), 3);
    }

    #[test]
    fn what_a_lost_process_claimed_is_taken_over_after_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let lost = folder.path().join("000000.claim");
        File::create(&lost).unwrap();
        let mut shards = Shards::open(folder.path(), 1, LEASE).unwrap();
        assert!(shards.claim().unwrap().is_none());
        let old = SystemTime::now() - 2 * LEASE;
        File::options().write(true).open(&lost).unwrap().set_modified(old).unwrap();
        let claim = shards.claim().unwrap().unwrap();
        claim.renew().unwrap();
        assert!(Shards::open(folder.path(), 1, LEASE).unwrap().claim().unwrap().is_none());
        claim.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_process_that_was_taken_for_lost_leaves_the_claim_of_the_next_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Shards::open(folder.path(), 1, LEASE).unwrap();
        let path = folder.path().join("000000.claim");
        let age = || fs::metadata(&path).unwrap().modified().unwrap().elapsed().unwrap();
        let make_old = || {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - 2 * LEASE).unwrap();
        };
        let slow = open().claim().unwrap().unwrap();
        make_old();
        let next = open().claim().unwrap().unwrap();
        // It neither renews it, nor gives it back, nor ends it.
        make_old();
        slow.renew().unwrap();
        assert!(age() > LEASE);
        next.renew().unwrap();
        assert!(age() < LEASE);
        drop(slow);
        assert!(path.exists() && open().claim().unwrap().is_none());
        make_old();
        let last = open().claim().unwrap().unwrap();
        next.finish().unwrap();
        assert!(path.exists() && open().done().unwrap() == 1);
        last.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_claim_of_one_who_is_at_work_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Shards::open(folder.path(), 1, Duration::from_millis(200)).unwrap();
        let claim = open().claim().unwrap().unwrap();
        claim.renew_while(|| {
            thread::sleep(Duration::from_millis(500));
            assert!(open().claim().unwrap().is_none());
        });
        // Nobody renews it any more.
        thread::sleep(Duration::from_millis(500));
        assert!(open().claim().unwrap().is_some());
    }

    #[test]
    fn a_claim_that_another_process_made_anew_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = Shards::open(folder.path(), 1, LEASE).unwrap();
        let claim = other.claim().unwrap().unwrap();
        // It was a lost one when this process looked at it.
        let shards = Shards::open(folder.path(), 1, LEASE).unwrap();
        let path = folder.path().join("000000.claim");
        shards.take_over(0, &path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(path.exists());
        claim.finish().unwrap();
        assert_eq!(shards.done().unwrap(), 1);
    }

    /// What may lie where a claim does, in a folder that anybody can write to.
    #[cfg(unix)]
    fn put(path: &Path, kind: u8) {
        use std::os::unix::fs::symlink;
        match kind {
            1 => drop(File::create(path).unwrap()),
            2 => fs::create_dir(path).unwrap(),
            3 => symlink("/nonexistent", path).unwrap(),
            4 => symlink(path.file_name().unwrap(), path).unwrap(),
            5 => symlink("/dev/zero", path).unwrap(),
            6 => {
                let mut make = std::process::Command::new("mkfifo");
                assert!(make.arg(path).status().unwrap().success());
            }
            _ => {}
        }
    }

    #[cfg(unix)]
    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_lies_in_the_folder_a_line_says_what_cannot_be_used(
            kinds in proptest::collection::vec([0_u8..7, 0..7], 1..4),
        ) {
            let folder = tempfile::tempdir().unwrap();
            for (number, kinds) in kinds.iter().enumerate() {
                for (state, &kind) in ["claim", "done"].into_iter().zip(kinds) {
                    put(&folder.path().join(format!("{number:06}.{state}")), kind);
                }
            }
            // All claims are of processes that were lost.
            let mut shards = Shards::open(folder.path(), 4, Duration::ZERO).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            for _ in 0..8 {
                let used = shards.claim().and_then(|claim| match claim {
                    Some(claim) => claim.renew().and_then(|()| claim.finish()),
                    None => Ok(()),
                });
                if let Err(error) = used {
                    let line = error.to_string();
                    proptest::prop_assert_eq!(line.lines().count(), 1, "{}", line);
                }
            }
            shards.done().unwrap();
        }
    }

    #[test]
    fn threads_that_claim_at_the_same_time_share_all_shards() {
        let folder = tempfile::tempdir().unwrap();
        let work = || {
            let mut shards = Shards::open(folder.path(), 200, LEASE).unwrap();
            let mut numbers = Vec::new();
            while let Some(claim) = shards.claim().unwrap() {
                numbers.push(claim.number());
                claim.finish().unwrap();
            }
            numbers
        };
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
}
