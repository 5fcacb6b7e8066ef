//! `catraca blocklist import`: a file of entries, one per line.
//!
//! Everything is read, and the server asked what it thinks of it, before anything is put in; all
//! that is wrong is said at once, by line. Must not leave a list half changed without saying so.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;

use super::super::show;
use super::what::What;
use super::{List, entry, imported};
use crate::args::{Output, Terms};
use crate::client::{Client, Reply, Trouble};
use crate::exit::Exit;
use crate::render::{counted, tell};

/// Entries and bytes of one call, well within what a server takes.
const CALL_ENTRIES_MAX: usize = 1_000;
const CALL_BYTES_MAX: usize = 512 << 10;

/// A file as it was read.
#[derive(Debug, Default)]
struct Import {
    /// The entries with their lines, counted from one.
    entries: Vec<(usize, What)>,
    /// Lines that say what a line before them said.
    twice: usize,
    wrong: Vec<(usize, String)>,
}

/// Reads, sends and sums up.
pub fn run(
    client: &Client,
    output: Output,
    list: List,
    file: &Path,
    terms: &Terms,
) -> Result<Exit> {
    let name = file.display().to_string();
    let import = Import::read(&text(file)?);
    let entries: Vec<(usize, Value)> =
        import.entries.iter().map(|(line, what)| (*line, entry(what, terms))).collect();
    let wrong = wrong(client, list, &import, &entries)?;
    if !wrong.is_empty() {
        let lines = counted(wrong.len(), "line is", "lines are");
        bail!("{lines} wrong, and nothing was put in:\n{}", shown(&name, &wrong));
    }
    let (mut done, mut fresh, mut durable) = (0, 0, true);
    for call in calls(&entries) {
        let body = call.iter().map(|(_, entry)| entry.clone()).collect();
        let reply = client.post(list.path, &Value::Array(body));
        let reply = reply.map_err(|error| failed(error, &name, list, call, done))?;
        done += call.len();
        let told = reply.json["entries"].as_array().map_or(&[][..], Vec::as_slice);
        fresh += told.iter().filter(|entry| entry["before"].is_null()).count();
        durable &= reply.json["durable"] == true;
    }
    let json = imported(list, done, import.twice, fresh, durable);
    let reply = Reply { text: json.to_string(), json };
    show(output, &reply, |_| words(list, done, import.twice, fresh))?;
    Ok(Exit::Yes)
}

/// Every wrong line: those that nobody can read, and those that the server would refuse.
fn wrong(
    client: &Client,
    list: List,
    import: &Import,
    entries: &[(usize, Value)],
) -> Result<Vec<(usize, String)>> {
    let mut wrong = import.wrong.clone();
    for call in calls(entries) {
        let body = call.iter().map(|(_, entry)| entry.clone()).collect();
        let asked = client.post(&format!("{}?dry_run=true", list.path), &Value::Array(body));
        let Err(error) = asked else { continue };
        let by_line = by_line(&error, call);
        // A trouble of another kind is told by itself, unless there are lines to mend first.
        if by_line.is_empty() && wrong.is_empty() {
            return Err(error);
        }
        wrong.extend(by_line);
    }
    wrong.sort();
    Ok(wrong)
}

/// What the server says of entries, by the lines that they came from.
fn by_line(error: &Error, call: &[(usize, Value)]) -> Vec<(usize, String)> {
    let told = error.downcast_ref::<Trouble>().map_or(&[][..], |trouble| &trouble.entries);
    let line = |(place, why): &(usize, String)| {
        let (line, _) = call.get(place.checked_sub(1)?)?;
        Some((*line, why.clone()))
    };
    told.iter().filter_map(line).collect()
}

fn text(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

impl Import {
    fn read(text: &str) -> Self {
        let (mut import, mut seen) = (Self::default(), HashSet::new());
        for (place, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let entry = without_comment(line);
            if entry.is_empty() {
                continue;
            }
            match What::read(entry) {
                Ok(what) if seen.insert(what.clone()) => import.entries.push((place + 1, what)),
                Ok(_) => import.twice += 1,
                Err(why) => import.wrong.push((place + 1, why)),
            }
        }
        import
    }
}

/// A comment begins a line or follows a blank, so that a value may hold the sign.
fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| *at == 0 || line[..*at].ends_with([' ', '\t']);
    let end = line.match_indices('#').find(begins).map_or(line.len(), |(at, _)| at);
    line[..end].trim()
}

/// Cuts entries into calls of a size that a server takes.
fn calls(entries: &[(usize, Value)]) -> Vec<&[(usize, Value)]> {
    let (mut calls, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (place, (_, entry)) in entries.iter().enumerate() {
        let size = entry.to_string().len() + 1;
        if place - from == CALL_ENTRIES_MAX || bytes + size > CALL_BYTES_MAX && place > from {
            calls.push(&entries[from..place]);
            (from, bytes) = (place, 0);
        }
        bytes += size;
    }
    if from < entries.len() {
        calls.push(&entries[from..]);
    }
    calls
}

/// What went wrong, by line, and how far it had come.
fn failed(error: Error, name: &str, list: List, call: &[(usize, Value)], done: usize) -> Error {
    let lines = (call[0].0, call[call.len() - 1].0);
    let wrong = by_line(&error, call);
    let unsure = error.downcast_ref::<Trouble>().is_some_and(|trouble| trouble.code.is_none());
    if !wrong.is_empty() {
        tell(format_args!("{}", shown(name, &wrong)));
    }
    let fate = if unsure { "may or may not be" } else { "are not" };
    let before = counted(done, "entry of the lines before is", "entries of the lines before are");
    tell(format_args!(
        "catraca: {before} on the {}; those of lines {} to {} {fate}, and what follows is not. \
         Import the file again once that is mended: what is there already is not put in twice",
        list.name, lines.0, lines.1
    ));
    error
}

fn shown(name: &str, wrong: &[(usize, String)]) -> String {
    let lines = wrong.iter().map(|(line, why)| format!("  {name}:{line}: {why}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn words(list: List, done: usize, twice: usize, fresh: usize) -> String {
    let entries = counted(done, "entry", "entries");
    let twice = match twice {
        0 => String::new(),
        twice => format!("; {} more than once", counted(twice, "line is there", "lines are there")),
    };
    format!("{entries} put on the {}: {fresh} new, {} renewed{twice}", list.name, done - fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_with_its_comments_and_all_its_mistakes() {
        let text = "\u{feff}# ours\n203.0.113.0/24  # scanners\n\n  customer=c#1\r\n300.1.1.1\nx=\n\
                    203.0.113.0/24\n";
        let import = Import::read(text);
        let value = What::Value("customer".to_owned(), "c#1".to_owned());
        assert_eq!(import.entries, [(2, What::Range("203.0.113.0/24".to_owned())), (4, value)]);
        assert_eq!(import.twice, 1);
        let lines: Vec<usize> = import.wrong.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 6]);
    }

    #[test]
    fn calls_hold_no_more_than_a_server_takes() {
        let entries = |count: usize, text: &str| -> Vec<(usize, Value)> {
            (0..count).map(|line| (line, Value::from(text))).collect()
        };
        let sizes = |entries: &[(usize, Value)]| -> Vec<usize> {
            calls(entries).iter().map(|call| call.len()).collect()
        };
        assert_eq!(sizes(&entries(0, "x")), [0; 0]);
        assert_eq!(sizes(&entries(2_001, "x")), [1_000, 1_000, 1]);
        let long = "x".repeat(CALL_BYTES_MAX / 2);
        assert_eq!(sizes(&entries(3, &long)), [1, 1, 1]);
    }
}
