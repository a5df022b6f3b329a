//! `completions` and `man`: what shells and readers of manuals are given, made from the command
//! line itself.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::{console, whole_file};

/// Begins the section of a page that follows the options.
const EXTRA: &str = ".SH EXTRA\n";

pub(crate) fn complete(shell: Shell) -> anyhow::Result<()> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    console::print(&String::from_utf8_lossy(&text))
}

/// Writes a page for the program and one for each of its commands.
pub(crate) fn write_pages(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let mut program = Cli::command();
    program.build();
    let name = program.get_name().to_owned();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands = commands.filter(|command| command.get_name() != "help");
    let pages = commands.map(|command| {
        let title = format!("{name}-{}", command.get_name());
        (title.clone(), command.clone().name(title))
    });
    let pages: Vec<_> = pages.chain([(name.clone(), program.clone())]).collect();
    for (title, command) in pages {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text).context("the page cannot be made")?;
        // What follows the options has lines of its own, and columns.
        let text = String::from_utf8_lossy(&text).replacen(EXTRA, &format!("{EXTRA}.nf\n"), 1);
        whole_file::write(&folder.join(format!("{title}.1")), text.as_bytes())?;
    }
    Ok(())
}
