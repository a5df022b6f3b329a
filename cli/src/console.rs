//! What goes to standard output and to standard error.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// Writes a result to standard output. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(harmless(text, &['\n', '\t']).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("writing to standard output"))
        }
        _ => Ok(()),
    }
}

/// A text without what might tell a terminal something: names of files and what they hold may be
/// anything.
fn harmless(text: &str, kept: &[char]) -> String {
    text.chars().map(|c| if c.is_control() && !kept.contains(&c) { '?' } else { c }).collect()
}

/// How a message begins, and in which colour.
const KINDS: [(&str, AnsiColor); 3] =
    [("error:", AnsiColor::Red), ("warning:", AnsiColor::Yellow), ("note:", AnsiColor::Cyan)];

/// Writes a message to standard error, in one line even when a file name in it holds a line break.
/// That standard error is closed cannot be told to anyone.
pub(crate) fn say(message: &str) {
    let line = harmless(&message.replace(['\n', '\r'], " "), &[]);
    let kind =
        KINDS.iter().find_map(|&(kind, color)| Some((kind, color, line.strip_prefix(kind)?)));
    let mut stderr = anstream::stderr().lock();
    let _ = match kind {
        Some((kind, color, rest)) => {
            let style = Style::new().fg_color(Some(color.into())).bold();
            writeln!(stderr, "{style}{kind}{style:#}{rest}")
        }
        None => writeln!(stderr, "{line}"),
    };
}

/// Says when messages are coloured: those of this program, and those on its command line.
pub(crate) fn set_color(when: clap::ColorChoice) {
    match when {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_tell_a_terminal_anything() {
        let name = "a\x1b[31m\u{9b}b\tc\n";
        assert_eq!(harmless(name, &['\n', '\t']), "a?[31m?b\tc\n");
        assert_eq!(harmless("größer → ≥", &[]), "größer → ≥");
    }
}
