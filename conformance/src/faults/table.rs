//! The rows of the cases: as text for the terminal, and as a table of `docs/guarantees.md`.
//!
//! Rows of cases that were not run, or that exceeded a bound, stay as they are.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::COLUMNS;

const BEGIN: &str = "<!-- faults -->\n";
const END: &str = "<!-- end -->";
/// The order of topologies, by the beginning of the names of their cases.
const ORDER: [&str; 6] = ["redis", "alone", "records", "sentinel", "cluster", "postgres"];

/// What was measured, a line for each case and one for each exceeded bound.
pub(super) fn summary(report: &str) -> Result<String> {
    let mut text = String::new();
    let rows = rows(report)?;
    let seconds: u64 = rows.iter().filter_map(|row| row["seconds"].as_u64()).sum();
    for row in &rows {
        let violations = violations(row);
        let verdict = if violations.is_empty() { "ok      " } else { "EXCEEDED" };
        let name = field(row, "case");
        text += &format!("{verdict} {name:24} {}\n", field(row, "figure"));
        for violation in violations {
            text += &format!("         {name:24} {}\n", violation.as_str().unwrap_or_default());
        }
    }
    Ok(text + &format!("{} cases in {seconds} s\n", rows.len()))
}

/// The document with the rows of this report that exceed no bound.
pub(super) fn replace_rows(document: &str, report: &str) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("there is no marker of the table")?;
    let (table, after) = rest.split_once(END).context("the table has no end")?;
    let mut lines: BTreeMap<(usize, String), String> = BTreeMap::new();
    for line in table.lines().filter(|line| line.contains('`')) {
        let name = line.trim_end_matches("` |").rsplit('`').next().unwrap_or_default();
        lines.insert(position(name), line.to_owned());
    }
    for row in rows(report)?.iter().filter(|row| violations(row).is_empty()) {
        let name = field(row, "case");
        let figures = row["cells"].as_array().context("a row without cells")?;
        let mut cells = vec![field(row, "topology"), field(row, "fault")];
        cells.extend(figures.iter().filter_map(Value::as_str));
        lines.insert(position(name), format!("| {} | `{name}` |", cells.join(" | ")));
    }
    let lines: String = lines.values().map(|line| format!("{line}\n")).collect();
    let head = head();
    Ok(format!("{before}{BEGIN}{head}{lines}{END}{after}"))
}

fn head() -> String {
    let columns = COLUMNS.join(" | ");
    let rule = "---|".repeat(COLUMNS.len() + 3);
    format!("| Topology | Fault | {columns} | Test |\n|{rule}\n")
}

fn violations(row: &Value) -> &[Value] {
    row["violations"].as_array().map_or(&[], Vec::as_slice)
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
        "cells":["3 (≤ 1 limit)","9 ms"],"figure":"3 over","violations":[],"seconds":17}"#;

    fn row() -> String {
        ROW.replace('\n', "")
    }

    fn exceeding_row() -> String {
        row().replace("[]", r#"["too slow"]"#)
    }

    #[test]
    fn a_row_is_replaced_and_others_stay() {
        let old = "| one Redis | `SIGSTOP` | 2 (≤ 1 limit) | 9 ms | `redis_stop` |\n";
        let other = "| PostgreSQL | kill | 0 | 8 ms | `postgres_kill` |\n";
        let head = head();
        let document = format!("text\n{BEGIN}{head}{other}{old}{END}\nmore\n");
        let written = replace_rows(&document, &row()).unwrap();
        let new = old.replace("2 (", "3 (");
        assert_eq!(written, format!("text\n{BEGIN}{head}{new}{other}{END}\nmore\n"));
        assert_eq!(replace_rows(&written, "").unwrap(), written);
        assert!(replace_rows("no table", &row()).is_err());
    }

    #[test]
    fn a_row_that_exceeds_a_bound_is_not_written() {
        let document = format!("text\n{BEGIN}{}{END}\nmore\n", head());
        assert_eq!(replace_rows(&document, &exceeding_row()).unwrap(), document);
        assert_ne!(replace_rows(&document, &row()).unwrap(), document);
    }

    /// Otherwise `--write` of one case would change the rows of others.
    #[test]
    fn the_document_has_the_order_and_the_head_that_are_written() {
        let document = include_str!("../../../docs/guarantees.md");
        assert_eq!(replace_rows(document, "").unwrap(), document);
    }

    #[test]
    fn the_summary_names_exceeded_bounds() {
        let text = summary(&exceeding_row()).unwrap();
        assert!(text.starts_with("EXCEEDED redis_stop") && text.contains("too slow"), "{text}");
        assert!(text.ends_with("1 cases in 17 s\n"), "{text}");
        assert!(summary(&row()).unwrap().starts_with("ok "));
    }
}
