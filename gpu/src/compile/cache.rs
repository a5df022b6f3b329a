//! Compiled kernels on disk.
//!
//! An entry is one file, named after the hash of everything that the machine code depends on: the
//! source (a translation unit stands alone, so its headers are in it), the kernel's name, the
//! compiler's command line with the architecture, its exact build, and this format's version.
//! Entries get their name once they are whole, so that any number of processes can share a folder
//! and one that is killed leaves nothing behind; one that is damaged fails its checksum and is made
//! anew.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::compile::nvrtc::{CompileError, CompileOptions, Cubin, CubinParts, Nvrtc};
use sparserl_core::regular_file;
use sparserl_core::target::Architecture;

/// Environment variable with the folder to use instead of the user's cache folder.
pub const DIRECTORY_VARIABLE: &str = "SPARSERL_CACHE_DIR";

/// Changes whenever entries written before must not be read any more.
const FORMAT: u32 = 1;
/// Bytes of an entry, at most.
const MOST_KEPT: u64 = 256 << 20;

/// `magic`, checksum of the rest, length of the header, header (JSON), cubin.
const MAGIC: &[u8; 8] = b"SPRLCUB\0";
const CHECKSUM: usize = blake3::OUT_LEN;
const HEADER_LENGTH: usize = size_of::<u64>();

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct CubinCache {
    directory: PathBuf,
}

/// A kernel and where it came from.
#[derive(Debug)]
pub struct Fetched {
    /// The kernel.
    pub cubin: Cubin,
    /// Whether it had to be compiled.
    pub origin: Origin,
}

/// How a cubin was come by.
#[derive(Debug)]
pub enum Origin {
    /// Read from the cache.
    Cache,
    /// Compiled, and kept for the next time.
    Compiled,
    /// Compiled, but the cache did not take it: all is well except that the next time costs as
    /// much.
    NotKept(CacheError),
}

impl CubinCache {
    /// The folder that [`DIRECTORY_VARIABLE`] names, else `sparserl/cubin` in the user's cache
    /// folder.
    ///
    /// # Errors
    /// When there is neither.
    pub fn open() -> Result<Self, CacheError> {
        if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE).filter(|d| !d.is_empty()) {
            return Ok(Self::at(directory));
        }
        let base = etcetera::choose_base_strategy().map_err(|_| CacheError::NoHome)?;
        Ok(Self::at(base.cache_dir().join("sparserl/cubin")))
    }

    /// Uses `directory`, which is made when something is first kept in it.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The folder.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// [`Nvrtc::compile`], unless the result is here already.
    ///
    /// # Errors
    /// Those of [`Nvrtc::compile`]. Failures are not kept. A cache that cannot be read or written
    /// is no error: see
    /// [`Origin::NotKept`].
    pub fn compile(
        &self,
        nvrtc: &Nvrtc,
        source: &str,
        kernel: &str,
        architecture: Architecture,
        options: &CompileOptions,
    ) -> Result<Fetched, CompileError> {
        let arguments = options.cubin_arguments(architecture);
        let key = Key { source, kernel, arguments: &arguments, build: nvrtc.build()? };
        self.fetch(&key, || nvrtc.compile(source, kernel, architecture, options))
    }

    /// What `compile` makes of what `key` describes, unless it is here already.
    pub(crate) fn fetch<E>(
        &self,
        key: &Key<'_>,
        compile: impl FnOnce() -> Result<Cubin, E>,
    ) -> Result<Fetched, E> {
        let name = key.hash().to_hex();
        // Two levels, because a training run leaves hundreds of thousands of entries.
        let folder = self.directory.join(&name.as_str()[..2]);
        let path = folder.join(format!("{name}.cubin"));

        let kept = regular_file::read(&path, MOST_KEPT).ok().and_then(|bytes| decode(&bytes));
        if let Some(cubin) = kept.filter(|cubin| cubin.kernel() == key.kernel) {
            return Ok(Fetched { cubin, origin: Origin::Cache });
        }
        let cubin = compile()?;
        let kept = encode(&cubin).and_then(|bytes| keep(&folder, &path, &bytes));
        let origin = match kept {
            Ok(()) => Origin::Compiled,
            Err(source) => Origin::NotKept(CacheError::Write { path, source }),
        };
        Ok(Fetched { cubin, origin })
    }
}

/// Everything that machine code depends on.
pub(crate) struct Key<'a> {
    pub(crate) source: &'a str,
    pub(crate) kernel: &'a str,
    /// The compiler's command line, which has the architecture.
    pub(crate) arguments: &'a [String],
    /// [`Nvrtc::build`].
    pub(crate) build: &'a str,
}

impl Key<'_> {
    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&FORMAT.to_le_bytes());
        let arguments = self.arguments.iter().map(String::as_str);
        for part in [self.source, self.kernel, self.build].into_iter().chain(arguments) {
            // With its length, so that moving a character from one part to the next changes the
            // hash.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

/// Writes a file in such a way that no reader ever sees half of it.
pub(crate) fn keep(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(target_os = "linux")]
    if keep_unnamed(folder, path, bytes).is_ok() {
        return Ok(());
    }
    // A process that is killed in these lines leaves the temporary file.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Writes a file that has no name before it is whole. Not every file system can.
#[cfg(target_os = "linux")]
fn keep_unnamed(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use rustix::io::Errno;

    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = fs::File::from(open(folder, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    let name = || linkat(CWD, &unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW);
    match name() {
        // It is damaged, or another process was faster: a reader takes none for one to be made.
        Err(Errno::EXIST) => {
            fs::remove_file(path)?;
            Ok(name()?)
        }
        done => Ok(done?),
    }
}

/// A kernel as the bytes of an entry, with a checksum.
///
/// # Errors
/// When what is known of it cannot be written as JSON.
pub fn encode(cubin: &Cubin) -> io::Result<Vec<u8>> {
    let header = serde_json::to_vec(cubin.parts())?;
    let length = (header.len() as u64).to_le_bytes();
    let body = [&length, header.as_slice(), cubin.bytes()].concat();
    Ok([MAGIC, blake3::hash(&body).as_bytes().as_slice(), &body].concat())
}

/// The kernel of an [entry](encode). `None` when it is damaged in any way, or speaks of what is not
/// there: then it is as good as absent.
#[must_use]
pub fn decode(entry: &[u8]) -> Option<Cubin> {
    let (checksum, body) = entry.strip_prefix(MAGIC)?.split_at_checked(CHECKSUM)?;
    if blake3::hash(body) != *<&[u8; CHECKSUM]>::try_from(checksum).ok()? {
        return None;
    }
    let (length, rest) = body.split_first_chunk::<HEADER_LENGTH>()?;
    let (header, bytes) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let parts: CubinParts = serde_json::from_slice(header).ok()?;
    // Whoever writes a file can write its checksum.
    Some(Cubin::new(CubinParts { bytes: bytes.to_vec(), ..parts })).filter(Cubin::is_whole)
}

/// The cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// There is no home folder to keep it in.
    #[error("no folder for compiled kernels: there is no home folder; set {DIRECTORY_VARIABLE}")]
    NoHome,
    /// An entry could not be written.
    #[error("cannot keep a compiled kernel in `{}`: {source}", path.display())]
    Write {
        /// The entry.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::nvrtc::{Resources, Version};

    /// The header of an ELF file without sections, and something behind it.
    fn cubin() -> Cubin {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        (bytes[16], bytes[18], bytes[20], bytes[52]) = (2, 190, 1, 64);
        bytes.extend(0..=255);
        Cubin::new(CubinParts {
            bytes,
            kernel: "k".into(),
            architecture: Architecture::Sm90,
            version: Version { major: 12, minor: 9 },
            arguments: vec!["--std=c++17".into()],
            resources: Resources { registers: 32, shared: 1024, ..Resources::default() },
            log: "a\n\"b\"".into(),
        })
    }

    #[cfg(unix)]
    #[test]
    fn what_can_be_no_entry_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
        std::fs::File::create(path("huge")).unwrap().set_len(MOST_KEPT + 1).unwrap();
        std::fs::write(path("entry"), "x").unwrap();
        let kept = ["device", "huge", "missing", "entry"]
            .map(|name| regular_file::read(&path(name), MOST_KEPT).ok());
        assert_eq!(kept, [None, None, None, Some(b"x".to_vec())]);
    }

    #[test]
    fn an_entry_reads_back() {
        assert_eq!(decode(&encode(&cubin()).unwrap()), Some(cubin()));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let entry = encode(&cubin()).unwrap();
        for length in 0..entry.len() {
            assert_eq!(decode(&entry[..length]), None, "cut to {length}");
        }
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn the_key_depends_on_every_part_and_on_their_borders() {
        let arguments = ["-a".to_owned(), "-b".to_owned()];
        let joined = ["-a-b".to_owned()];
        let key = Key { source: "s", kernel: "k", arguments: &arguments, build: "v" };
        let others = [
            Key { source: "t", ..key },
            Key { kernel: "l", ..key },
            Key { build: "w", ..key },
            Key { arguments: &joined, ..key },
            Key { arguments: &arguments[..1], ..key },
            Key { source: "sk", kernel: "", ..key },
        ];
        assert!(others.iter().all(|other| other.hash() != key.hash()));
    }
}
