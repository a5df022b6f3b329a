//! Messages on a stream of bytes.
//!
//! ```text
//! magic, u64 header length, u64 number of blobs, u64 length of each, header (postcard), blobs
//! ```
//!
//! Numbers are little-endian. Blobs may be gigabytes: they are written from the caller's slices and
//! read into vectors of their exact size.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8; 8] = b"SPRLFRM\x01";

/// Lengths above these come from a damaged stream. No memory is taken on the word of a length
/// alone.
const MOST_HEADER: u64 = 1 << 30;
const MOST_BLOBS: u64 = 1 << 16;
const MOST_BLOB: u64 = 1 << 40;

/// How much is read before more memory is touched.
const CHUNK: usize = 1 << 20;

/// What follows a message.
pub(crate) type Blobs = Vec<Vec<u8>>;

/// A message was not written or not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The stream's error. A stream that ends within a frame is [`ErrorKind::UnexpectedEof`].
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// The bytes are no frame.
    #[error("malformed message: {0}")]
    Malformed(String),
}

/// Writes `header` and `blobs` as one frame.
pub(super) fn write<T: Serialize>(
    stream: &mut impl Write,
    header: &T,
    blobs: &[&[u8]],
) -> Result<(), FrameError> {
    let header = postcard::to_stdvec(header)
        .map_err(|error| malformed(format!("the header does not encode: {error}")))?;
    let lengths = || blobs.iter().map(|blob| blob.len() as u64);
    let (header_length, count) = (header.len() as u64, blobs.len() as u64);
    check(header_length, count)?;
    lengths().try_for_each(check_blob)?;

    let mut start = MAGIC.to_vec();
    for number in [header_length, count].into_iter().chain(lengths()) {
        start.extend(number.to_le_bytes());
    }
    start.extend(header);
    stream.write_all(&start)?;
    for blob in blobs {
        stream.write_all(blob)?;
    }
    Ok(stream.flush()?)
}

/// Reads one frame. `None` when the stream ends before it.
pub(super) fn read<T: DeserializeOwned>(
    stream: &mut impl Read,
) -> Result<Option<(T, Blobs)>, FrameError> {
    let Some(magic) = read_magic(stream)? else { return Ok(None) };
    if magic != *MAGIC {
        return Err(malformed("it does not start as one".to_owned()));
    }
    let (header_length, count) = (read_number(stream)?, read_number(stream)?);
    check(header_length, count)?;
    let lengths = (0..count).map(|_| read_number(stream)).collect::<Result<Vec<_>, _>>()?;
    lengths.iter().try_for_each(|&length| check_blob(length))?;

    let header = read_bytes(stream, header_length)?;
    let (header, rest) = postcard::take_from_bytes(&header)
        .map_err(|error| malformed(format!("the header does not decode: {error}")))?;
    if !rest.is_empty() {
        return Err(malformed(format!("{} bytes follow the header", rest.len())));
    }
    let blobs =
        lengths.into_iter().map(|length| read_bytes(stream, length)).collect::<Result<_, _>>()?;
    Ok(Some((header, blobs)))
}

/// `None` when the stream ends before the first byte.
fn read_magic(stream: &mut impl Read) -> io::Result<Option<[u8; MAGIC.len()]>> {
    let mut magic = [0; MAGIC.len()];
    let (first, rest) = magic.split_at_mut(1);
    loop {
        match stream.read(first) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.read_exact(rest)?;
    Ok(Some(magic))
}

fn read_number(stream: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_bytes(stream: &mut impl Read, length: u64) -> Result<Vec<u8>, FrameError> {
    let no_memory = || io::Error::from(ErrorKind::OutOfMemory);
    let length = usize::try_from(length).map_err(|_| no_memory())?;
    let mut bytes = Vec::new();
    // Address space only: memory is taken chunk by chunk as the bytes arrive.
    bytes.try_reserve_exact(length).map_err(|_| no_memory())?;
    while bytes.len() < length {
        let read = bytes.len();
        bytes.resize(length.min(read.saturating_add(CHUNK)), 0);
        let (_, chunk) = bytes.split_at_mut(read);
        stream.read_exact(chunk)?;
    }
    Ok(bytes)
}

fn check(header: u64, blobs: u64) -> Result<(), FrameError> {
    if header > MOST_HEADER {
        return Err(malformed(format!("a header of {header} bytes")));
    }
    if blobs > MOST_BLOBS {
        return Err(malformed(format!("{blobs} blobs")));
    }
    Ok(())
}

fn check_blob(length: u64) -> Result<(), FrameError> {
    if length > MOST_BLOB {
        return Err(malformed(format!("a blob of {length} bytes")));
    }
    Ok(())
}

fn malformed(reason: String) -> FrameError {
    FrameError::Malformed(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Header = (String, Option<u64>);

    fn encoded(header: &Header, blobs: &[Vec<u8>]) -> Vec<u8> {
        let slices: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        write(&mut bytes, header, &slices).unwrap();
        bytes
    }

    fn decoded(mut bytes: &[u8]) -> Result<Option<(Header, Blobs)>, FrameError> {
        read(&mut bytes)
    }

    #[test]
    fn a_blob_larger_than_a_chunk_comes_back_in_a_vector_of_its_size() {
        let blobs = [(0..CHUNK + 3).map(|i| i as u8).collect(), vec![], vec![7]];
        let read = decoded(&encoded(&("a".into(), None), &blobs)).unwrap().unwrap().1;
        assert_eq!(read, blobs);
        assert_eq!(read[0].capacity(), CHUNK + 3);
    }

    #[test]
    fn absurd_lengths_are_errors() {
        let frame = encoded(&("a".into(), None), &[vec![1]]);
        for at in [8, 16, 24] {
            for length in [u64::MAX, 1 << 62, 1 << 41] {
                let mut damaged = frame.clone();
                damaged[at..at + 8].copy_from_slice(&length.to_le_bytes());
                let error = decoded(&damaged).unwrap_err();
                assert!(matches!(error, FrameError::Malformed(_)), "{at}, {length}: {error}");
            }
        }
        // Believable, but more than there is.
        let mut damaged = frame;
        damaged[24..32].copy_from_slice(&(1u64 << 39).to_le_bytes());
        let error = decoded(&damaged).unwrap_err();
        assert!(matches!(error, FrameError::Stream(_)), "{error}");
    }

    #[test]
    fn bytes_after_the_header_are_noticed() {
        let mut bytes = Vec::new();
        write(&mut bytes, &("abc".to_owned(), None::<u64>, 1u8), &[]).unwrap();
        assert!(matches!(decoded(&bytes), Err(FrameError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn frames_come_back_one_after_the_other(
            frames in vec((any::<Header>(), vec(vec(any::<u8>(), 0..40), 0..6)), 0..4),
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(h, blobs)| encoded(h, blobs)).collect();
            let mut stream = bytes.as_slice();
            for frame in &frames {
                prop_assert_eq!(&read::<Header>(&mut stream).unwrap().unwrap(), frame);
            }
            prop_assert!(read::<Header>(&mut stream).unwrap().is_none());
        }

        #[test]
        fn cut_frames_are_errors(
            header: Header,
            blobs in vec(vec(any::<u8>(), 0..40), 0..6),
            cut: prop::sample::Index,
        ) {
            let bytes = encoded(&header, &blobs);
            let cut = 1 + cut.index(bytes.len() - 1);
            match decoded(&bytes[..cut]) {
                Err(FrameError::Stream(e)) => prop_assert_eq!(e.kind(), ErrorKind::UnexpectedEof),
                other => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn damaged_frames_do_no_harm(
            header: Header,
            blobs in vec(vec(any::<u8>(), 0..40), 0..6),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let mut bytes = encoded(&header, &blobs);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            // Damage within the payload goes unnoticed, in the structure it is an error; it never
            // panics.
            if let Ok(read) = decoded(&bytes) {
                prop_assert!(read.is_some());
            }
        }

        #[test]
        fn arbitrary_bytes_are_no_frame(bytes in vec(any::<u8>(), 1..100)) {
            prop_assume!(!bytes.starts_with(MAGIC));
            prop_assert!(decoded(&bytes).is_err());
            prop_assert!(decoded(&[MAGIC, bytes.as_slice()].concat()).is_err());
        }
    }
}
