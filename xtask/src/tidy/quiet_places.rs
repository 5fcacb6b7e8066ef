//! `docs/quiet-failures.md`: its table counts the places at which an error is dropped or a default
//! takes the place of a value, by folder. The counts must be those of the sources, so that a new
//! place is read by its author and the page.
//!
//! Counts texts, without comments, strings and tests. Must not judge a place.

use std::collections::BTreeMap;

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;
use super::mask::mask;
use super::source::code_lines;

const DOCUMENT: &str = "docs/quiet-failures.md";
const HEADING: &str = "\n## The places\n";
const CRATES: [&str; 4] = ["catraca-core", "catraca-replay", "catraca", "catraca-server"];
/// What a place in Rust looks like, with single spaces.
const RUST: [&str; 10] = [
    ".unwrap_or_default(",
    ".unwrap_or(",
    ".unwrap_or_else(|_|",
    ".ok()",
    ".is_ok()",
    "Err(_)",
    "let _ =",
    "let Ok(",
    ".map_err(|_|",
    ".flatten()",
];
/// The clients: a folder, the ending of its files, and what a place looks like.
const CLIENTS: [(&str, &str, &[&str]); 3] = [
    ("sdk/go", ".go", &["_ = ", "_ := "]),
    ("sdk/sfcc/cartridges", ".js", &["catch ", ".catch(", "return null;"]),
    ("sdk/typescript/src", ".ts", &["catch ", ".catch("]),
];

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let mut counts = BTreeMap::new();
    for file in files {
        if let Some(count) = count_file(file, || repo.read(file))? {
            counts.insert(file.as_str(), count);
        }
    }
    Ok(compare(&repo.read(DOCUMENT)?, &counts))
}

/// The number of places in a file; none for a file that the page does not count.
fn count_file(file: &str, read: impl FnOnce() -> Result<String>) -> Result<Option<usize>> {
    let is_test = file.contains("/tests") || file.contains("/test/") || file.ends_with("_test.go");
    let is_source = |name: &&str| file.starts_with(&format!("crates/{name}/src/"));
    if is_test {
        return Ok(None);
    }
    if file.ends_with(".rs") && CRATES.iter().any(is_source) {
        return Ok(Some(count_rust(&read()?)));
    }
    let client = CLIENTS.iter().find(|(folder, ending, _)| {
        file.ends_with(ending) && file.starts_with(&format!("{folder}/"))
    });
    let Some((_, _, patterns)) = client else { return Ok(None) };
    Ok(Some(count_client(&read()?, patterns)))
}

fn count_rust(text: &str) -> usize {
    let lines = code_lines(text);
    let code: Vec<&str> = text.lines().take(lines).collect();
    let masked = mask(&code.join("\n"));
    let words: Vec<&str> = masked.split_whitespace().collect();
    let line = words.join(" ");
    let returns = line.matches("else { return").count() - line.matches("} else { return").count();
    RUST.iter().map(|pattern| line.matches(pattern).count()).sum::<usize>()
        + returns
        + dropped_results(&line)
}

/// Calls of `drop` whose argument is a call: what it returned is dropped, and no guard.
fn dropped_results(line: &str) -> usize {
    let is_call = |(at, _): &(usize, &str)| {
        let before = &line[..*at];
        let argument = &line[at + "drop(".len()..];
        let is_own = before.ends_with(|one: char| !one.is_alphanumeric() && one != '_');
        let bracket = argument.find(['(', ')']);
        is_own
            && !before.ends_with("fn ")
            && bracket.is_some_and(|at| argument[at..].starts_with('('))
    };
    line.match_indices("drop(").filter(is_call).count()
}

fn count_client(text: &str, patterns: &[&str]) -> usize {
    let is_code = |line: &&str| !line.trim_start().starts_with(['/', '*']);
    let count = |line: &str| -> usize {
        patterns.iter().map(|pattern| line.matches(pattern).count()).sum()
    };
    text.lines().filter(is_code).map(count).sum()
}

/// Compares the rows of the table with the counts of the files.
fn compare(document: &str, counts: &BTreeMap<&str, usize>) -> Vec<Finding> {
    let table = document.split_once(HEADING).map_or("", |(_, table)| table);
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|'));
    let mut left = counts.clone();
    let mut findings = Vec::new();
    for row in rows.filter(|row| row.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let folders = folders(cells[0]);
        let mut count = 0;
        left.retain(|file, own| {
            let is_of_row = folders.iter().any(|folder| is_in(file, folder));
            count += if is_of_row { *own } else { 0 };
            !is_of_row
        });
        let stated = cells.get(1).copied().unwrap_or_default();
        if stated != count.to_string() {
            findings.push(finding(format!(
                "{}: the page counts {stated} places and the sources have {count}: read what was \
                 added since (git log -p), give each a log line, a counter or an answer, or a \
                 reason on the page, and write {count}",
                cells[0]
            )));
        }
    }
    let unlisted = left.iter().filter(|(_, count)| **count > 0);
    findings.extend(unlisted.map(|(file, count)| {
        finding(format!("{file}: {count} places, and no row has it: add it to a row of the table"))
    }));
    findings
}

/// The folders and modules of a row. Each after the first is beside the first.
fn folders(cell: &str) -> Vec<String> {
    let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    let Some((first, others)) = names.split_first() else { return Vec::new() };
    let first =
        if first.starts_with("sdk/") { (*first).to_owned() } else { format!("crates/{first}") };
    let parent = first.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    let others = others.iter().map(|name| format!("{parent}/{name}"));
    std::iter::once(first).chain(others).collect()
}

fn is_in(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn finding(text: String) -> Finding {
    Finding::new("quiet-places", DOCUMENT, 1, format!("{DOCUMENT}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_code_alone() {
        let text = r#"//! `.ok()`
fn a() -> u8 {
    // let _ = b;
    let Some(c) = d.ok()
    else {
        return 0;
    };
    let e = ".unwrap_or(1)";
    drop(f(c));
    drop(guard);
    if e { 1 } else { return 2 }
}
fn drop(&self) {}
#[cfg(test)]
mod tests {
    let _ = 1;
}
"#;
        assert_eq!(count_rust(text), 3, "`.ok()`, `else {{ return`, `drop(f(c))`");
        let go = "// body, _ := x\n\tbody, _ := json.Marshal(x)\n\t_, _ = w.Write(y)\n\tz := 1\n";
        assert_eq!(count_client(go, CLIENTS[0].2), 2);
        let read = || Ok("catch (e) {}".to_owned());
        assert_eq!(count_file("sdk/typescript/src/a.ts", read).unwrap(), Some(1));
        assert_eq!(count_file("crates/catraca/src/a/tests.rs", read).unwrap(), None);
    }

    #[test]
    fn a_row_with_another_count_and_a_file_without_a_row_are_found() {
        let document = "
## The places

| Folder | Places | Changed |
|---|---|---|
| `catraca/src/app`, `url` | 3 | 0 |
| `sdk/go` | 1 | 0 |

| `x` | 9 |
";
        let counts = [
            ("crates/catraca/src/app.rs", 1),
            ("crates/catraca/src/app/facts.rs", 2),
            ("crates/catraca/src/application.rs", 1),
            ("crates/catraca/src/url.rs", 1),
            ("crates/catraca/src/lib.rs", 0),
            ("sdk/go/client.go", 1),
        ];
        let found = compare(document, &counts.into_iter().collect());
        let found: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        let row = "`catraca/src/app`, `url`: the page counts 3 places and the sources have 4: ";
        assert!(found[0].contains(row), "{found:?}");
        assert!(found[1].contains("crates/catraca/src/application.rs: 1 places"), "{found:?}");
    }
}
