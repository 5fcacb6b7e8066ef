//! `catraca completions` and `catraca man`: generated from the clap definitions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, roman};

use crate::args::{CliArgs, CompletionsArgs, ManArgs};
use crate::exit::Exit;
use crate::render::{StdoutPipe, count_noun};

/// Prints the completion script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CliArgs::command(), "catraca", &mut script);
    StdoutPipe::stdout().write_all(&script)?;
    Ok(Exit::Yes)
}

/// Prints the main page, or writes all pages to a directory.
pub fn man(args: &ManArgs) -> Result<Exit> {
    // `catraca help` would get a page per verb that repeats the verb's own.
    let mut command = CliArgs::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        StdoutPipe::stdout().write_all(&page(&command)?)?;
        return Ok(Exit::Yes);
    };
    let path = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot create {path}"))?;
    let pages = write(&command, folder).with_context(|| format!("cannot write to {path}"))?;
    writeln!(StdoutPipe::stdout(), "{} in {path}", count_noun(pages, "page", "pages"))?;
    Ok(Exit::Yes)
}

/// Writes a page for a command and each of its verbs; returns the number of pages.
fn write(command: &Command, folder: &Path) -> io::Result<usize> {
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    fs::write(folder.join(name), page(command)?)?;
    let verbs = command.get_subcommands();
    verbs.map(|verb| write(verb, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}

/// The page of a command, without hyphenation and justification, so that examples can be copied.
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
        after_help_page(&help.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// Converts the text below the options: examples and notes. Indented lines are kept verbatim.
fn after_help_page(help: &str) -> Roff {
    let mut roff = Roff::new();
    // The heading of the next text that is not an example; `None` once it is printed.
    let mut heading = Some("NOTES");
    let mut is_verbatim = false;
    for line in help.lines() {
        if line == "Example:" || line == "Examples:" {
            roff.control("SH", ["EXAMPLES"]);
            heading = Some("NOTES");
            continue;
        }
        let is_indented = line.starts_with(' ');
        if let Some(heading) = heading.take_if(|_| !is_indented && !line.is_empty()) {
            roff.control("SH", [heading]);
        }
        match (is_verbatim, is_indented) {
            (false, true) => drop(roff.control("nf", [])),
            (true, false) => drop(roff.control("fi", [])),
            _ => {}
        }
        is_verbatim = is_indented;
        match line {
            "" => drop(roff.control("PP", [])),
            line => drop(roff.text([roman(line)])),
        }
    }
    if is_verbatim {
        roff.control("fi", []);
    }
    roff
}
