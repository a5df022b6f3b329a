//! NVIDIA's wheel: a ZIP archive with the libraries in it.

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use zip::ZipArchive;

/// Begin the names of the libraries that are installed. The .alt. variants are left out: the same
/// compiler, built with another allocator.
const LIBRARIES: [&str; 2] = ["libnvrtc.so.", "libnvrtc-builtins.so."];
/// Begin the names of the licences that come with them.
const LICENCES: [&str; 2] = ["License", "LICENSE"];
/// No library is larger.
const MOST_BYTES: u64 = 1 << 30;

/// Refuses what is not the wheel with this hash.
pub(super) fn check(bytes: &[u8], sha256: &str) -> anyhow::Result<()> {
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found != sha256 {
        bail!("is not the expected wheel: its SHA-256 is {found}, not {sha256}; fetch it again");
    }
    Ok(())
}

/// Unpacks the libraries and their licences into a new folder.
pub(super) fn unpack(wheel: Vec<u8>, folder: &Path) -> anyhow::Result<()> {
    let mut archive = ZipArchive::new(Cursor::new(wheel)).context("is no wheel")?;
    fs::create_dir(folder).with_context(|| format!("{}: cannot create", folder.display()))?;
    let mut found = [false; LIBRARIES.len()];
    for index in 0..archive.len() {
        let entry = archive.by_index(index).context("is damaged")?;
        let name = entry.name().rsplit('/').next().unwrap_or_default().to_owned();
        let begins = |start: &str| name.starts_with(start);
        let library = LIBRARIES.iter().position(|start| begins(start));
        if !entry.is_file() || library.is_none() && !LICENCES.iter().any(|start| begins(start)) {
            continue;
        }
        if let Some(found) = library.and_then(|library| found.get_mut(library)) {
            *found = true;
        }
        let path = folder.join(&name);
        let copy = |mut file: File| std::io::copy(&mut entry.take(MOST_BYTES), &mut file);
        File::create(&path)
            .and_then(copy)
            .with_context(|| format!("{name}: cannot unpack into {}", folder.display()))?;
    }
    for (name, found) in LIBRARIES.iter().zip(found) {
        if !found {
            bail!("holds no {name}*");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn wheel(names: &[&str]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(name.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn libraries_and_licences_are_unpacked_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("12");
        let names = [
            "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9",
            "nvidia/cuda_nvrtc/include/nvrtc.h",
            "x.dist-info/License.txt",
            "../../libnvrtc.so.outside",
        ];
        unpack(wheel(&names), &folder).unwrap();
        let mut found: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        let expected =
            ["License.txt", "libnvrtc-builtins.so.12.9", "libnvrtc.so.12", "libnvrtc.so.outside"];
        assert_eq!(found, expected);
        assert_eq!(fs::read_to_string(folder.join("libnvrtc.so.12")).unwrap(), names[0]);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing lies outside");
    }

    #[test]
    fn what_lacks_a_library_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let error = unpack(wheel(&["lib/libnvrtc.so.12"]), &place.path().join("12")).unwrap_err();
        assert_eq!(error.to_string(), "holds no libnvrtc-builtins.so.*");
        let error = unpack(b"<html>".to_vec(), &place.path().join("13")).unwrap_err();
        assert_eq!(error.to_string(), "is no wheel");
    }

    #[test]
    fn another_file_is_refused_by_its_hash() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        check(b"", empty).unwrap();
        let error = check(b"x", empty).unwrap_err().to_string();
        assert!(error.starts_with("is not the expected wheel") && error.contains(empty), "{error}");
    }
}
