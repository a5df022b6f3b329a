//! Of files of datasets that are damaged, that lie, or for which the disk has no room.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use sparserl_core::structure::IndexScaling;

use super::*;
use crate::corpus::Split;
use crate::stages::tests::dataset;

/// A whole file, and what is compressed in it.
static WHOLE: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    dataset().write(&path).unwrap();
    (std::fs::read(&path).unwrap(), postcard::to_stdvec(dataset()).unwrap())
});

/// A file of this content with a right checksum.
fn compressed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(MAGIC.to_vec(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    std::fs::write(&path, bytes).unwrap();
    Dataset::read(&path).map_err(|error| error.to_string())
}

/// Bytes that are written over others.
type Edit = (Index, Vec<u8>);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..4),
        // The longest number that a length can be.
        Just([&[0xff; 9][..], &[0x01]].concat()),
    ];
    prop::collection::vec((any::<Index>(), bytes), 1..5)
}

fn edit(bytes: &mut [u8], edits: &[Edit]) {
    for (at, by) in edits {
        let at = at.index(bytes.len());
        bytes.iter_mut().skip(at).zip(by).for_each(|(byte, by)| *byte = *by);
    }
}

/// All that is done with a dataset before a network is given any of it.
fn look_through(dataset: &Dataset) {
    let _ = dataset.roles(&Split::NoReal);
    for case in &dataset.cases {
        let _ = dataset.inputs(case, IndexScaling::default());
        case.programs.iter().for_each(|program| drop(program.program(case.task)));
        let _ = case.best(0);
    }
}

proptest! {
    #[test]
    fn a_damaged_dataset_is_one_line(cut in prop::option::of(any::<Index>()), edits in edits()) {
        let mut bytes = WHOLE.0.clone();
        edit(&mut bytes, &edits);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match read(&bytes) {
            // A byte of the header of gzip that means nothing here.
            Ok(found) => prop_assert!(found == *dataset()),
            Err(line) => prop_assert_eq!(line.lines().count(), 1, "{}", line),
        }
    }

    #[test]
    fn a_dataset_that_lies_is_one_line_or_can_be_looked_through(edits in edits()) {
        let mut content = WHOLE.1.clone();
        edit(&mut content, &edits);
        match read(&compressed(&content)) {
            Ok(found) => look_through(&found),
            Err(line) => prop_assert_eq!(line.lines().count(), 1, "{}", line),
        }
    }
}

#[test]
fn a_dataset_that_decompresses_without_end_fills_no_memory() {
    let bomb = compressed(&vec![0; 64 << 20]);
    assert!(bomb.len() < 1 << 20, "{} bytes", bomb.len());
    let error = read(&bomb).unwrap_err();
    assert!(error.contains("is damaged or cut short"), "{error}");
    let (file, content) = &*WHOLE;
    assert!(
        content.len() as u64 * 4 < file.len() as u64 * MOST_EXPANSION,
        "a whole one is far below"
    );
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = bytes.len().min(self.0);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_as_one_wherever_the_dataset_ends() {
    let whole = WHOLE.0.len();
    for room in [0, MAGIC.len(), MAGIC.len() + 10, whole / 2, whole - 1] {
        let error = dataset().encode(Disk(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}: {error}");
    }
    dataset().encode(Disk(whole)).unwrap();
}
