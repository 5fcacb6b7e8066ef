//! The rows of the cases: as text for the terminal, and as a table of `docs/guarantees.md`.
//!
//! Rows of cases that were not run stay as they are.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

const BEGIN: &str = "<!-- faults -->\n";
const END: &str = "<!-- end -->";
const HEAD: &str = "| Topology | Fault | At most | Measured | Test |\n|---|---|---|---|---|\n";
/// The order of topologies, by the beginning of the names of their cases.
const ORDER: [&str; 6] = ["redis", "alone", "records", "sentinel", "cluster", "postgres"];

/// What was measured, a line for each case and one for each exceeded bound.
pub(super) fn summary(report: &str) -> Result<String> {
    let mut text = String::new();
    let rows = rows(report)?;
    let seconds: u64 = rows.iter().filter_map(|row| row["seconds"].as_u64()).sum();
    for row in &rows {
        let violations = row["violations"].as_array().cloned().unwrap_or_default();
        let verdict = if violations.is_empty() { "ok      " } else { "EXCEEDED" };
        let name = field(row, "case");
        text += &format!("{verdict} {name:24} {}\n", field(row, "figure"));
        for violation in &violations {
            text += &format!("         {name:24} {}\n", violation.as_str().unwrap_or_default());
        }
    }
    Ok(text + &format!("{} cases in {seconds} s\n", rows.len()))
}

/// The document with the rows of this report.
pub(super) fn replace_rows(document: &str, report: &str) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("there is no marker of the table")?;
    let (table, after) = rest.split_once(END).context("the table has no end")?;
    let mut lines: BTreeMap<(usize, String), String> = BTreeMap::new();
    for line in table.lines().filter(|line| line.contains('`')) {
        let name = line.trim_end_matches("` |").rsplit('`').next().unwrap_or_default();
        lines.insert(position(name), line.to_owned());
    }
    for row in rows(report)? {
        let name = field(&row, "case");
        let cells = ["topology", "fault", "bound", "figure"].map(|cell| field(&row, cell));
        lines.insert(position(name), format!("| {} | `{name}` |", cells.join(" | ")));
    }
    let lines: String = lines.values().map(|line| format!("{line}\n")).collect();
    Ok(format!("{before}{BEGIN}{HEAD}{lines}{END}{after}"))
}

fn position(name: &str) -> (usize, String) {
    let order = ORDER.iter().position(|topology| name.starts_with(topology));
    (order.unwrap_or(ORDER.len()), name.to_owned())
}

fn rows(report: &str) -> Result<Vec<Value>> {
    let read = |line: &str| serde_json::from_str(line).context("a row of the report");
    report.lines().map(read).collect()
}

fn field<'r>(row: &'r Value, name: &str) -> &'r str {
    row[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"case":"redis_stop","topology":"one Redis","fault":"`SIGSTOP`",
        "bound":"1 limit","figure":"3 over","violations":["too slow"],"seconds":17}"#;

    #[test]
    fn a_row_is_replaced_and_others_stay() {
        let row = ROW.replace('\n', "");
        let old = "| one Redis | `SIGSTOP` | 1 limit | 9 over | `redis_stop` |\n";
        let other = "| PostgreSQL | kill | none | 0 over | `postgres_kill` |\n";
        let document = format!("text\n{BEGIN}{HEAD}{other}{old}{END}\nmore\n");
        let written = replace_rows(&document, &row).unwrap();
        let new = old.replace("9 over", "3 over");
        assert_eq!(written, format!("text\n{BEGIN}{HEAD}{new}{other}{END}\nmore\n"));
        assert_eq!(replace_rows(&written, "").unwrap(), written);
        assert!(replace_rows("no table", &row).is_err());
    }

    /// Otherwise `--write` of one case would change the rows of others.
    #[test]
    fn the_document_has_the_order_and_the_head_that_are_written() {
        let document = include_str!("../../../docs/guarantees.md");
        assert_eq!(replace_rows(document, "").unwrap(), document);
    }

    #[test]
    fn the_summary_names_exceeded_bounds() {
        let text = summary(&ROW.replace('\n', "")).unwrap();
        assert!(text.starts_with("EXCEEDED redis_stop") && text.contains("too slow"), "{text}");
        assert!(text.ends_with("1 cases in 17 s\n"), "{text}");
    }
}
