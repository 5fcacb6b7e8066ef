//! `catraca completions` and `catraca man`: made from the command line itself, so that they cannot
//! say anything else.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, roman};

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
    // `catraca help VERB` says what the pages say, and has none of its own.
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        Outlet::stdout().write_all(&page(&command)?)?;
        return Ok(Exit::Yes);
    };
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot make {shown}"))?;
    let pages = write(&command, folder).with_context(|| format!("cannot write to {shown}"))?;
    writeln!(Outlet::stdout(), "{} in {shown}", counted(pages, "page", "pages"))?;
    Ok(Exit::Yes)
}

/// A page for a command and each of its verbs. How many there are.
fn write(command: &Command, folder: &Path) -> io::Result<usize> {
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    fs::write(folder.join(name), page(command)?)?;
    let verbs = command.get_subcommands();
    verbs.map(|verb| write(verb, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}

/// A command's page. Lines are not stretched and words not broken: what is shown may be copied.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let man = man.source(concat!("Catraca ", env!("CARGO_PKG_VERSION"))).manual("Catraca");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    let mut plain = Roff::new();
    plain.control("nh", []).control("ad", ["l"]);
    plain.to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(help) = command.get_after_help() {
        below(&help.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// What stands below the options of a help: the examples, and what is to be noted. Indented lines
/// stay as they are.
fn below(help: &str) -> Roff {
    let mut roff = Roff::new();
    let (mut heading, mut kept) = (Some("NOTES"), false);
    for line in help.lines() {
        if line == "Example:" || line == "Examples:" {
            roff.control("SH", ["EXAMPLES"]);
            heading = Some("NOTES");
            continue;
        }
        let keep = line.starts_with(' ');
        if let Some(heading) = heading.take_if(|_| !keep && !line.is_empty()) {
            roff.control("SH", [heading]);
        }
        match (kept, keep) {
            (false, true) => drop(roff.control("nf", [])),
            (true, false) => drop(roff.control("fi", [])),
            _ => {}
        }
        kept = keep;
        match line {
            "" => drop(roff.control("PP", [])),
            line => drop(roff.text([roman(line)])),
        }
    }
    if kept {
        roff.control("fi", []);
    }
    roff
}
