//! `catraca completions` and `catraca man`: made from the command line itself, so that they cannot
//! say anything else.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::args::{Args, Completions, Man};
use crate::exit::Exit;
use crate::render::{Outlet, counted};

/// Prints a shell's completion script.
pub fn completions(args: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "catraca", &mut script);
    Outlet::stdout().write_all(&script)?;
    Ok(Exit::Yes)
}

/// Prints the first page, or writes all of them.
pub fn man(args: &Man) -> Result<Exit> {
    let mut command = Args::command();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        Outlet::stdout().write_all(&page)?;
        return Ok(Exit::Yes);
    };
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot make {shown}"))?;
    command.build();
    let pages = write(&command, folder).with_context(|| format!("cannot write to {shown}"))?;
    writeln!(Outlet::stdout(), "{} in {shown}", counted(pages, "page", "pages"))?;
    Ok(Exit::Yes)
}

/// A page for a command and each of its verbs; `help` says what the pages say. How many there are.
fn write(command: &Command, folder: &Path) -> io::Result<usize> {
    clap_mangen::Man::new(command.clone()).generate_to(folder)?;
    let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    verbs.map(|verb| write(verb, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}
