//! `catraca blocklist import`: adds the entries of a file, one per line.
//!
//! The whole file is parsed, and validated by the server with a dry run, before anything is added;
//! all errors are reported at once, by line. A failure between two calls leaves the list partly
//! changed, and the message says which lines were added.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;

use super::super::show;
use super::entry_subject::EntrySubject;
use super::{ListEndpoint, entry, import_json};
use crate::args::{ListEntryArgs, Output};
use crate::client::{Client, ClientError, Reply};
use crate::exit::Exit;
use crate::render::{count_noun, eprint_line};

/// Entries and bytes of one call, well within the server's limits.
const CALL_ENTRIES_MAX: usize = 1_000;
const CALL_BYTES_MAX: usize = 512 << 10;

/// A parsed file.
#[derive(Debug, Default)]
struct Import {
    /// The entries with their line numbers, from one.
    entries: Vec<(usize, EntrySubject)>,
    /// Lines that repeat an earlier one.
    twice: usize,
    wrong: Vec<(usize, String)>,
}

/// Parses a file, and adds its entries.
pub fn run(
    client: &Client,
    output: Output,
    list: ListEndpoint,
    file: &Path,
    terms: &ListEntryArgs,
) -> Result<Exit> {
    let import = Import::read(&read_file(file)?);
    let entries = import.entries.iter().map(|(line, what)| (*line, entry(what, terms))).collect();
    let file = file.display().to_string();
    let Import { twice, wrong, .. } = import;
    send(client, output, list, &ParsedEntries { file: &file, entries, twice, wrong })
}

/// Entries to add, as JSON with their lines.
pub struct ParsedEntries<'a> {
    /// The file, for messages.
    pub file: &'a str,
    pub entries: Vec<(usize, Value)>,
    /// Lines that repeat an earlier one.
    pub twice: usize,
    /// Lines that cannot be parsed.
    pub wrong: Vec<(usize, String)>,
}

/// Validates, sends and prints a summary.
pub fn send(
    client: &Client,
    output: Output,
    list: ListEndpoint,
    parsed: &ParsedEntries<'_>,
) -> Result<Exit> {
    let ParsedEntries { file: name, entries, twice, .. } = parsed;
    let wrong = invalid_lines(client, list, parsed)?;
    if !wrong.is_empty() {
        let lines = count_noun(wrong.len(), "line is", "lines are");
        bail!("{lines} invalid, and nothing was added:\n{}", errors_text(name, &wrong));
    }
    let mut done = 0;
    let mut fresh = 0;
    let mut durable = true;
    for call in calls(entries) {
        let body = call.iter().map(|(_, entry)| entry.clone()).collect();
        let reply = client.post(list.path, &Value::Array(body));
        let reply = reply.map_err(|error| report_failure(error, name, list, call, done))?;
        done += call.len();
        let added = reply.json["entries"].as_array().map_or(&[][..], Vec::as_slice);
        fresh += added.iter().filter(|entry| entry["before"].is_null()).count();
        durable &= reply.json["durable"] == true;
    }
    let json = import_json(list, done, *twice, fresh, durable);
    let reply = Reply { text: json.to_string(), json };
    show(output, &reply, |_| summary_text(list, done, *twice, fresh))?;
    Ok(Exit::Yes)
}

/// All invalid lines: those that cannot be parsed, and those that the server rejects in a dry run.
fn invalid_lines(
    client: &Client,
    list: ListEndpoint,
    parsed: &ParsedEntries<'_>,
) -> Result<Vec<(usize, String)>> {
    let mut wrong = parsed.wrong.clone();
    for call in calls(&parsed.entries) {
        let body = call.iter().map(|(_, entry)| entry.clone()).collect();
        let result = client.post(&format!("{}?dry_run=true", list.path), &Value::Array(body));
        let Err(error) = result else { continue };
        let by_line = by_line(&error, call);
        // An error that names no entry (such as an unknown key) is returned, unless there are
        // invalid lines to report first.
        if by_line.is_empty() && wrong.is_empty() {
            return Err(error);
        }
        wrong.extend(by_line);
    }
    wrong.sort();
    Ok(wrong)
}

/// The server's errors about entries, by line number.
fn by_line(error: &Error, call: &[(usize, Value)]) -> Vec<(usize, String)> {
    let entry_errors = error.downcast_ref::<ClientError>().map_or(&[][..], |error| &error.entries);
    let line = |(number, why): &(usize, String)| {
        let (line, _) = call.get(number.checked_sub(1)?)?;
        Some((*line, why.clone()))
    };
    entry_errors.iter().filter_map(line).collect()
}

fn read_file(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

impl Import {
    fn read(text: &str) -> Self {
        let mut import = Self::default();
        let mut seen = HashSet::new();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let entry = without_comment(line);
            if entry.is_empty() {
                continue;
            }
            match EntrySubject::parse(entry) {
                Ok(what) if seen.insert(what.clone()) => import.entries.push((index + 1, what)),
                Ok(_) => import.twice += 1,
                Err(why) => import.wrong.push((index + 1, why)),
            }
        }
        import
    }
}

/// Removes a comment. `#` starts one only at the start of a line or after a blank, so that a value
/// may contain it.
fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| *at == 0 || line[..*at].ends_with([' ', '\t']);
    let end = line.match_indices('#').find(begins).map_or(line.len(), |(at, _)| at);
    line[..end].trim()
}

/// Splits entries into calls within the limits of size and number.
fn calls(entries: &[(usize, Value)]) -> Vec<&[(usize, Value)]> {
    let mut calls = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (index, (_, entry)) in entries.iter().enumerate() {
        let size = entry.to_string().len() + 1;
        // An entry beyond the size limit is sent alone.
        let is_full = index - start == CALL_ENTRIES_MAX;
        if is_full || bytes + size > CALL_BYTES_MAX && index > start {
            calls.push(&entries[start..index]);
            start = index;
            bytes = 0;
        }
        bytes += size;
    }
    if start < entries.len() {
        calls.push(&entries[start..]);
    }
    calls
}

/// Prints which lines were added before a call failed, and returns its error.
fn report_failure(
    error: Error,
    name: &str,
    list: ListEndpoint,
    call: &[(usize, Value)],
    done: usize,
) -> Error {
    let lines = (call[0].0, call[call.len() - 1].0);
    let wrong = by_line(&error, call);
    let is_unknown = error.downcast_ref::<ClientError>().is_some_and(|error| error.code.is_none());
    if !wrong.is_empty() {
        eprint_line(format_args!("{}", errors_text(name, &wrong)));
    }
    let fate = if is_unknown { "may or may not be" } else { "are not" };
    let before =
        count_noun(done, "entry of the lines before is", "entries of the lines before are");
    eprint_line(format_args!(
        "catraca: {before} on the {}; those of lines {} to {} {fate}, and later ones are not. \
         Import the file again when the error is fixed: existing entries are not added twice",
        list.name, lines.0, lines.1
    ));
    error
}

fn errors_text(name: &str, wrong: &[(usize, String)]) -> String {
    let lines = wrong.iter().map(|(line, why)| format!("  {name}:{line}: {why}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn summary_text(list: ListEndpoint, done: usize, twice: usize, fresh: usize) -> String {
    let entries = count_noun(done, "entry", "entries");
    let twice = match twice {
        0 => String::new(),
        twice => {
            format!("; {} repeated", count_noun(twice, "line is", "lines are"))
        }
    };
    format!("{entries} added to the {}: {fresh} new, {} renewed{twice}", list.name, done - fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_with_its_comments_and_all_its_mistakes() {
        let text = "\u{feff}# ours\n203.0.113.0/24  # scanners\n\n  customer=c#1\r\n300.1.1.1\nx=\n\
                    203.0.113.0/24\n";
        let import = Import::read(text);
        let value = EntrySubject::Value("customer".to_owned(), "c#1".to_owned());
        assert_eq!(
            import.entries,
            [(2, EntrySubject::Range("203.0.113.0/24".to_owned())), (4, value)]
        );
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
