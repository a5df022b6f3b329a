//! Trials of epilogues that found nothing wrong, kept on disk: a trial compiles several kernels to
//! PTX and emulates them, and would find the same in every run of a program.
//!
//! A trial depends on nothing but what its [`TrialKey`] hashes, the sources of this program among
//! it: its inputs are the same in every run. Only what is right at all places is kept, and an entry
//! that is damaged is as good as none. Whoever can write to the folder could also write the machine
//! code that lies beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::{Hash, Hasher};
use sparserl_core::codegen::{CudaSource, Ending, Epilogue};
use sparserl_core::layout::Packed;
use sparserl_core::regular_file;
use sparserl_core::task::Task;

use super::endings::{EndingSources, ptx_options, sources};
use super::{EmulatorError, EmulatorEvaluator, PtxCompiler};
use crate::compile::cache::keep;
use crate::compile::pool::PoolCompileError;

/// Of all that the judge, the emulator and generated kernels are made of: a trial by other sources
/// may find wrong what these have found right.
const SOURCES: &str = env!("SPARSERL_SOURCES");
/// Bytes of an entry, at most.
const MOST_KEPT: u64 = 1 << 10;

/// Hash of all that the trial of an epilogue depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialKey(Hash);

/// A folder of trials that found nothing wrong.
#[derive(Clone, Debug)]
pub struct FoundRight {
    folder: PathBuf,
}

impl FoundRight {
    /// A folder of them, which is made when something is first kept in it.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Whether this trial has found nothing wrong before.
    #[must_use]
    pub fn contains(&self, key: TrialKey) -> bool {
        let kept = regular_file::read(&self.path(key), MOST_KEPT);
        kept.is_ok_and(|bytes| bytes == key.entry().as_bytes())
    }

    /// Keeps that this trial has found nothing wrong, if that is possible: it only takes as long
    /// again.
    pub fn keep(&self, key: TrialKey) {
        let path = self.path(key);
        if let Err(error) = self.write(&path, &key.entry()) {
            log::debug!("{}: {error}", path.display());
        }
    }

    fn write(&self, path: &Path, entry: &str) -> io::Result<()> {
        keep(&self.folder, path, entry.as_bytes())
    }

    fn path(&self, TrialKey(hash): TrialKey) -> PathBuf {
        self.folder.join(hash.to_hex().as_str())
    }
}

impl TrialKey {
    /// What an entry holds: neither an empty file nor that of another trial is one.
    fn entry(self) -> String {
        format!("sparserl epilogue found right\n{}\n", self.0.to_hex())
    }
}

/// What a key is made of, each part with its length: moving a byte from one to the next changes the
/// hash.
struct Parts(Hasher);

impl Parts {
    fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn add_source(&mut self, source: &CudaSource) {
        self.add(source.text.as_bytes());
        self.add(source.kernel.as_bytes());
    }

    fn key(&self) -> TrialKey {
        TrialKey(self.0.finalize())
    }
}

impl EmulatorEvaluator {
    /// All that [`judge_ending`](Self::judge_ending) depends on.
    ///
    /// # Errors
    /// When there are no sources, or when there is no compiler.
    pub fn key_of_ending(
        &self,
        packed: &Arc<Packed>,
        ending: &Ending,
    ) -> Result<TrialKey, EmulatorError> {
        let EndingSources { plain, all } = sources(packed, ending)?;
        let mut parts = self.parts("within a kernel")?;
        for source in &all {
            parts.add_source(source);
        }
        let Packed { program, rows, cols, .. } = &**packed;
        parts.add(format!("{program}\n{rows} {cols} {:?} {ending:?}", plain.launch).as_bytes());
        for (name, array) in packed.arguments() {
            parts.add(name.as_bytes());
            parts.add(array.data.bytes());
        }
        Ok(parts.key())
    }

    /// All that [`judge_epilogue`](Self::judge_epilogue) depends on.
    ///
    /// # Errors
    /// As [`key_of_ending`](Self::key_of_ending).
    pub fn key_of_epilogue(
        &self,
        epilogue: &Epilogue,
        task: Task,
        size: (usize, usize),
    ) -> Result<TrialKey, EmulatorError> {
        let mut parts = self.parts("by itself")?;
        parts.add_source(&epilogue.at_places(task)?);
        parts.add(format!("{task} {size:?} {epilogue:?}").as_bytes());
        Ok(parts.key())
    }

    /// What all trials of one kind depend on.
    fn parts(&self, kind: &str) -> Result<Parts, EmulatorError> {
        let Self { compiler, nvrtc, architecture, options } = self;
        let build = match compiler {
            PtxCompiler::Pool(compiler) => compiler.build()?,
            PtxCompiler::Here(compilers) => {
                let build = compilers.for_arch(*architecture)?.build();
                build.map_err(PoolCompileError::from)?.to_owned()
            }
        };
        let mut parts = Parts(Hasher::new());
        let compiled = ptx_options();
        let common = (SOURCES, kind, build, nvrtc, architecture, options, compiled);
        parts.add(format!("{common:?}").as_bytes());
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_whole_and_of_this_trial_counts() {
        let folder = tempfile::tempdir().unwrap();
        let found = FoundRight::at(folder.path().join("epilogues"));
        let [one, other] = ["one", "other"].map(|text| TrialKey(blake3::hash(text.as_bytes())));
        assert!(!found.contains(one));
        found.keep(one);
        assert!(found.contains(one) && !found.contains(other));

        fs::copy(found.path(one), found.path(other)).unwrap();
        assert!(!found.contains(other));
        let entry = one.entry();
        for damage in ["", &entry[1..], &entry[..entry.len() - 1], &format!("{entry}x")] {
            fs::write(found.path(one), damage).unwrap();
            assert!(!found.contains(one), "{damage}");
            found.keep(one);
            assert!(found.contains(one));
        }
        assert_eq!(fs::read_dir(folder.path().join("epilogues")).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_lost_where_nothing_can_be_kept() {
        let found = FoundRight::at("/dev/null/epilogues");
        let key = TrialKey(blake3::hash(b"one"));
        found.keep(key);
        assert!(!found.contains(key));
    }

    #[test]
    fn the_borders_of_parts_count() {
        let key = |all: &[&str]| {
            let mut parts = Parts(Hasher::new());
            all.iter().for_each(|part| parts.add(part.as_bytes()));
            parts.key()
        };
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab", ""]), key(&["ab"]));
    }
}
