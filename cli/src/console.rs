//! What goes to standard output and to standard error.

use std::io::{self, Write};

/// Writes a result to standard output. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("writing to standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes a message to standard error, in one line even when a file name in it holds a line break.
/// That standard error is closed cannot be told to anyone.
pub(crate) fn say(message: &str) {
    let line = message.replace(['\n', '\r'], " ");
    let _ = writeln!(io::stderr(), "{line}");
}
