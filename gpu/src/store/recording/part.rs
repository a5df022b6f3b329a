//! Parts of a store: files named after the hash of their content.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::Hasher;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use sparserl_core::regular_file;

use super::row::{self, Row};
use super::{Recording, RecordingError};
use crate::panics;
use crate::store::whole_file::WholeFile;

/// Adds a part with these recordings to a store; `folder` must exist.
pub(super) fn write(
    folder: &Path,
    recordings: &[Recording],
    compression: Compression,
) -> io::Result<PathBuf> {
    let bytes = encode(recordings, compression).map_err(io::Error::other)?;
    let path = folder.join(name(&blake3::hash(&bytes)));
    let mut file = WholeFile::begin(&path)?;
    file.write_all(&bytes)?;
    file.finish()?;
    Ok(path)
}

/// Reads a part.
pub(super) fn read(path: &Path) -> Result<Vec<Recording>, RecordingError> {
    let failed = |source| RecordingError::Read { path: path.into(), source };
    let foreign = |reason| RecordingError::Foreign { path: path.into(), reason };
    let file = regular_file::open(path).map_err(failed)?;
    let hash = Hasher::new().update_reader(&file).map_err(failed)?.finalize();
    if path.file_name().is_none_or(|found| found != name(&hash).as_str()) {
        return Err(RecordingError::Damaged { path: path.into() });
    }
    // Metadata that contradicts itself makes the Parquet reader panic, in many places.
    let rows = panics::caught(|| decode(file))
        .ok_or_else(|| foreign("its metadata contradicts itself".into()))?
        .map_err(|e| foreign(e.to_string().replace('\n', " ")))?;
    row::recordings(rows).map_err(|e| foreign(e.to_string()))
}

fn name(hash: &blake3::Hash) -> String {
    format!("part-{}.parquet", hash.to_hex())
}

fn encode(recordings: &[Recording], compression: Compression) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
    let rows: Vec<Row> = recordings.iter().flat_map(row::rows).collect();
    let mut group = writer.next_row_group()?;
    Row::write(&rows, &mut group)?;
    group.close()?;
    writer.into_inner()
}

fn decode(file: File) -> Result<Vec<Row>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    if reader.metadata().file_metadata().schema() != schema()?.as_ref() {
        return Err(ParquetError::General("its columns are others".into()));
    }
    let mut rows = Vec::new();
    for group in 0..reader.num_row_groups() {
        rows.extend(Row::read(reader.get_row_group(group)?.as_ref())?);
    }
    Ok(rows)
}

fn schema() -> Result<Arc<Type>, ParquetError> {
    parse_message_type(&Row::schema()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use sparserl_core::language::grammar_hash;

    use super::*;
    use crate::store::recording::row::tests::recording;
    use crate::store::recording::{RecordedLanguage, Recordings};

    #[test]
    fn recordings_in_another_grammar_are_read_and_can_be_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let language = RecordedLanguage { version: 7, grammar_hash: !grammar_hash() };
        let old = Recording { language, ..recording() };
        write(folder.path(), &[recording(), old.clone()], Compression::SNAPPY).unwrap();
        let mut recordings = Recordings::read(folder.path()).unwrap();
        assert_eq!(recordings.as_slice(), [recording(), old]);
        recordings.retain(|recording| recording.language.grammar_hash == grammar_hash());
        assert_eq!(recordings.as_slice(), [recording()]);
    }

    #[test]
    fn whole_parquet_with_other_columns_is_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let schema = Arc::new(parse_message_type("message other { required int64 a; }").unwrap());
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let bytes = writer.into_inner().unwrap();
        let path = folder.path().join(name(&blake3::hash(&bytes)));
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("columns"), "{error}");
    }
}
