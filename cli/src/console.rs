//! What goes to standard output and to standard error.

use std::io::{self, Write};
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use log::LevelFilter;

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

/// How a message begins, and in which colour.
const KINDS: [(&str, AnsiColor); 3] = [
    ("error:", AnsiColor::Red),
    ("warning:", AnsiColor::Yellow),
    ("note:", AnsiColor::Cyan),
];

/// Writes a message to standard error, in one line even when a file name in it holds a line break.
/// That standard error is closed cannot be told to anyone.
pub(crate) fn say(message: &str) {
    let line = message.replace(['\n', '\r'], " ");
    let kind = KINDS.iter().find_map(|&(kind, color)| Some((kind, color, line.strip_prefix(kind)?)));
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

/// Names what is logged, by modules and levels.
const LOG_VARIABLE: &str = "SPARSERL_LOG";

/// Has what is done said on standard error, as verbosely as was asked for.
pub(crate) fn log(verbosity: u8) {
    let level = match verbosity {
        0 => LevelFilter::Off,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    let start = Instant::now();
    let mut logger = env_logger::Builder::new();
    logger.filter_level(level).parse_env(LOG_VARIABLE);
    logger.format(move |line, record| {
        writeln!(line, "{:8.3} s  {}", start.elapsed().as_secs_f64(), record.args())
    });
    logger.init();
}
