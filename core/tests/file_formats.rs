//! One matrix in every format and compression that is read, as other programs wrote it.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sparserl_core::matrix::file::{
    self, Limits, Loaded, MatrixFileError, MatrixFileErrorKind, Options, load, load_stream,
    load_with,
};
use sparserl_core::matrix::{Csr, Duplicates, generate, npz};

/// Written by bzip2, xz, zstd, Python's tarfile, and SciPy 1.17.
const FILES: [&str; 6] = [
    "stencil.mtx.bz2",
    "stencil.mtx.xz",
    "stencil.mtx.zst",
    "stencil.tar.gz",
    "stencil.rsa",
    "stencil.npz",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn expected() -> Csr<f64> {
    generate::stencil5(2, 2)
}

fn options() -> Options<'static> {
    Options::new(Duplicates::Refuse)
}

#[test]
fn every_format_gives_the_same_matrix_from_a_file_and_from_a_stream() {
    for name in FILES {
        let loaded: Loaded<f64> = load_with(&path(name), &options()).unwrap();
        assert_eq!((loaded.matrix, loaded.summed), (expected(), 0), "{name}");
        assert!(!loaded.is_pattern, "{name}");
        let stream: Loaded<f64> = load_stream(File::open(path(name)).unwrap(), &options()).unwrap();
        assert_eq!(stream.matrix, expected(), "{name}");
        assert_eq!(file::stem(name), Some("stencil"));
    }
    assert_eq!(file::stem("a/b.x.TGZ"), Some("a/b.x"));
    assert_eq!(file::stem("notes.txt.gz"), None);
}

#[test]
fn the_matrix_in_an_archive_is_chosen_and_the_others_are_named() {
    let archive = path("stencil.tar.gz");
    let loaded: Loaded<f64> = load_with(&archive, &options()).unwrap();
    let member = loaded.member.unwrap();
    assert_eq!(member.name, "stencil/stencil.mtx");
    assert_eq!(member.others, ["stencil/stencil_b.mtx"]);

    let asked = Options { member: Some("stencil_b.mtx"), ..options() };
    let other: Loaded<f64> = load_with(&archive, &asked).unwrap();
    assert_eq!((other.matrix.rows(), other.matrix.cols()), (4, 1));
    let missing = Options { member: Some("c.mtx"), ..options() };
    let error = load_with::<f64>(&archive, &missing).unwrap_err().to_string();
    let says = "holds no `c.mtx`, but stencil/stencil_b.mtx, stencil/stencil.mtx";
    assert!(error.ends_with(says), "{error}");
}

/// Callers have other options than each other.
#[test]
fn errors_name_no_option_of_a_program() {
    let limits = Limits { always: 64, ratio: 0, most: 64 };
    let asked = Options { member: Some("c.mtx"), ..options() };
    let short = Options { limits, ..options() };
    for (path, options, says) in [
        (
            path("several.tar.gz"),
            options(),
            "holds several matrices: a.mtx, b.mtx; choose one, or unpack it",
        ),
        (path("stencil.npz"), asked, "is no archive, so that it has no `c.mtx`"),
        (path("stencil.npz"), short, "if it is genuine, decompress it first or raise the limit"),
    ] {
        let error = load_with::<f64>(&path, &options).unwrap_err().to_string();
        assert!(error.ends_with(says), "{error}");
    }
    let bytes = fs::read(path("stencil.npz")).unwrap();
    let error = npz::parse::<f64>(&bytes, Duplicates::Refuse, 64).unwrap_err().to_string();
    let says = "decompresses to more than 64 bytes; if it is genuine, raise the limit";
    assert_eq!(error, says);
    let memory = MatrixFileErrorKind::Memory.to_string();
    assert!(memory.ends_with("take a smaller matrix or raise the limit"), "{memory}");
}

#[test]
fn no_compression_is_read_past_the_limit_or_its_end() {
    for name in &FILES[..4] {
        let limits = Limits { always: 64, ratio: 0, most: 64 };
        let error = load_with::<f64>(&path(name), &Options { limits, ..options() }).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::TooLong { limit: 64 }), "{error}");

        let bytes = fs::read(path(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(name);
        for kept in 0..bytes.len() {
            fs::write(&place, &bytes[..kept]).unwrap();
            let loaded: Result<Csr<f64>, MatrixFileError> = load(&place, Duplicates::Refuse);
            // Some end in a checksum that decoders do without.
            if kept + 16 < bytes.len() {
                loaded.as_ref().unwrap_err();
            }
            assert!(loaded.is_err() || loaded.unwrap() == expected(), "{name} cut to {kept}");
        }
        let rubbish = [bytes.as_slice(), b"rubbish"].concat();
        fs::write(&place, rubbish).unwrap();
        let error = load::<f64>(&place, Duplicates::Refuse).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::TrailingBytes { bytes: 7 }), "{error}");
        // Streams one after the other are one text, here of a matrix and too much.
        fs::write(&place, [bytes.as_slice(), &bytes].concat()).unwrap();
        if !name.contains("tar") {
            let error = load::<f64>(&place, Duplicates::Refuse).unwrap_err();
            assert!(matches!(error.kind, MatrixFileErrorKind::Market(_)), "{error}");
        }
    }
}

#[test]
fn frames_of_zstandard_without_text_are_skipped() {
    let bytes = fs::read(path("stencil.mtx.zst")).unwrap();
    let note = b"\x5a\x2a\x4d\x18\x04\0\0\0note";
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("stencil.mtx.zst");
    for parts in [[&note[..], &bytes, b""], [&bytes, note, note], [note, note, &bytes]] {
        fs::write(&place, parts.concat()).unwrap();
        let loaded: Csr<f64> = load(&place, Duplicates::Refuse).unwrap();
        assert_eq!(loaded, expected());
        let stream: Loaded<f64> = load_stream(parts.concat().as_slice(), &options()).unwrap();
        assert_eq!(stream.matrix, expected());
    }
    for cut in [4, 7, 11] {
        fs::write(&place, [&bytes, &note[..cut]].concat()).unwrap();
        let error = load::<f64>(&place, Duplicates::Refuse).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::Decompress(_)), "{error}");
    }
}

#[test]
fn a_text_that_is_not_that_of_its_checksum_is_refused() {
    let mut bytes = fs::read(path("stencil.mtx.zst")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("stencil.mtx.zst");
    fs::write(&place, &bytes).unwrap();
    let error = load::<f64>(&place, Duplicates::Refuse).unwrap_err();
    assert!(matches!(error.kind, MatrixFileErrorKind::Decompress(_)), "{error}");
    let error = load_stream::<f64>(bytes.as_slice(), &options()).unwrap_err();
    assert!(matches!(error.kind, MatrixFileErrorKind::Decompress(_)), "{error}");
}

#[test]
fn what_may_have_no_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("device.mtx");
    std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
    let pipe = folder.path().join("pipe.mtx.gz");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for place in [place, pipe] {
        let error = load::<f64>(&place, Duplicates::Refuse).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::NotAFile), "{error}");
    }
    let limits = Limits { most: 1 << 20, ..Limits::default() };
    // What begins as no matrix does is not read on, whatever the limits are.
    let zeros = File::open("/dev/zero").unwrap();
    let error = load_stream::<f64>(zeros, &options()).unwrap_err();
    assert!(matches!(error.kind, MatrixFileErrorKind::Unknown), "{error}");
    let begun =
        b"%%MatrixMarket matrix coordinate real general\n%".as_slice().chain(std::io::repeat(b'x'));
    let error = load_stream::<f64>(begun, &Options { limits, ..options() }).unwrap_err();
    assert!(matches!(error.kind, MatrixFileErrorKind::TooLong { .. }), "{error}");
}

#[test]
fn a_stream_that_is_no_matrix_is_refused() {
    for bytes in [&b""[..], b"<html>", b"\x1f\x8b", b"PK", b"%%MatrixMarket"] {
        load_stream::<f64>(bytes, &options()).unwrap_err();
    }
}
