//! The child's end of a connection.

use std::io;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::channel::ChildEnd;
use super::frame::{self, Blobs, FrameError};

/// Takes requests of `Q` and gives answers of `A`.
pub(crate) struct Connection<Q, A> {
    stream: ChildEnd,
    kinds: PhantomData<fn(A) -> Q>,
}

impl<Q: DeserializeOwned, A: Serialize> Connection<Q, A> {
    /// Takes over the connection that the parent left. From now on this process dies with its
    /// parent, where the system has that.
    ///
    /// # Errors
    /// When there is none, as when the program was started by hand.
    pub(crate) fn inherited() -> io::Result<Self> {
        Ok(Self::over(ChildEnd::inherited()?))
    }

    fn over(stream: ChildEnd) -> Self {
        Self { stream, kinds: PhantomData }
    }

    /// The next request with its blobs; `None` when there are no more.
    ///
    /// # Errors
    /// When the connection breaks, or when what arrives is no request
    /// ([`io::ErrorKind::InvalidData`]).
    pub(crate) fn receive(&mut self) -> io::Result<Option<(Q, Blobs)>> {
        Ok(frame::read(&mut self.stream)?)
    }

    /// Answers.
    ///
    /// # Errors
    /// When the connection breaks, or when the answer does not encode.
    pub(crate) fn send(&mut self, answer: &A, blobs: &[&[u8]]) -> io::Result<()> {
        Ok(frame::write(&mut self.stream, answer, blobs)?)
    }
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Stream(error) => error,
            FrameError::Malformed(_) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn requests_are_answered_until_the_stream_ends() {
        let (mut parent, child) = ChildEnd::pair().unwrap();
        let mut client = Connection::<u32, String>::over(child);
        frame::write(&mut parent, &7u32, &[b"seven", b""]).unwrap();
        assert_eq!(client.receive().unwrap(), Some((7, vec![b"seven".to_vec(), vec![]])));
        client.send(&"seven".to_owned(), &[b"7"]).unwrap();
        let answer = frame::read::<String>(&mut parent).unwrap();
        assert_eq!(answer, Some(("seven".to_owned(), vec![b"7".to_vec()])));
        drop(parent);
        assert_eq!(client.receive().unwrap(), None);
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        let (mut parent, child) = ChildEnd::pair().unwrap();
        parent.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let error = Connection::<u32, String>::over(child).receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
