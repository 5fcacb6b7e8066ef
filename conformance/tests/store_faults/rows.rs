//! The rows of `docs/guarantees.md`: each case has one, with its bounds and figures, and each row
//! has a case.

use std::time::Duration;

use super::bounds::Bounds;
use super::figures::{cells, shape};
use super::measures::Measures;
use super::run::Case;

const DOCUMENT: &str = include_str!("../../../docs/guarantees.md");
const BEGIN: &str = "<!-- faults -->";
/// A figure that was added after its case was measured. No run writes it.
const NOT_MEASURED: &str = "not measured";
const END: &str = "<!-- end -->";

/// The rows of the table with the figures.
fn rows() -> impl Iterator<Item = &'static str> {
    let (_, table) = DOCUMENT.split_once(BEGIN).unwrap();
    let (table, _) = table.split_once(END).unwrap();
    table.lines().filter(|line| line.ends_with("` |"))
}

/// The name of the case of a row.
fn name(row: &str) -> &str {
    row.trim_end_matches("` |").rsplit('`').next().unwrap_or_default()
}

/// Compares a case with its row: topology, fault, every bound, and that every figure is there.
///
/// # Panics
///
/// If there is none, or it differs.
pub fn check(case: &Case, bounds: &Bounds) {
    let row = rows().find(|row| name(row) == case.name).unwrap_or_default();
    let found = Measures { durable_again: Some(Duration::ZERO), ..Measures::of_nothing() };
    let cells = cells(bounds, &found);
    let figures = cells.iter().map(|cell| shape(cell));
    let expected: Vec<String> =
        [case.topology, case.fault].map(str::to_owned).into_iter().chain(figures).collect();
    let cells = row.trim_matches('|').split(" | ").map(str::trim);
    let shapes = cells.zip(&expected).enumerate().map(|(column, (cell, expected))| match column {
        0 | 1 => cell.to_owned(),
        _ if cell == NOT_MEASURED => expected.clone(),
        _ => shape(cell),
    });
    let present: Vec<String> = shapes.collect();
    let case = case.name;
    assert_eq!(
        present, expected,
        "the row of `{case}` in docs/guarantees.md; run `cargo xtask faults --write {case}`"
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CASES: [&str; 6] = [
        include_str!("cases/alone.rs"),
        include_str!("cases/cluster.rs"),
        include_str!("cases/postgres.rs"),
        include_str!("cases/records.rs"),
        include_str!("cases/redis.rs"),
        include_str!("cases/sentinel.rs"),
    ];
    const COMBINATIONS: &str = "<!-- combinations -->";

    /// The names of all tests in the files of cases.
    fn cases() -> BTreeSet<&'static str> {
        let tests = CASES.iter().flat_map(|file| file.split("#[test]\nfn ").skip(1));
        tests.filter_map(|test| test.split('(').next()).collect()
    }

    #[test]
    fn every_row_has_a_case_and_every_case_a_row() {
        let names: Vec<&str> = rows().map(name).collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len(), "a row is there twice: {names:?}");
        assert_eq!(unique, cases());
    }

    /// Each case is in one cell of the table of combinations, and a cell without a case has a
    /// reason.
    #[test]
    fn every_combination_of_topology_and_fault_has_a_case_or_a_reason() {
        let (_, table) = DOCUMENT.split_once(COMBINATIONS).unwrap();
        let (table, _) = table.split_once(END).unwrap();
        let mut named = Vec::new();
        for line in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 7, "a fault, and a cell for each of six topologies: {line}");
            for cell in &cells[1..] {
                let cases: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
                let has_reason = cell.strip_prefix("no: ").is_some_and(|why| why.len() > 5);
                assert_eq!(has_reason, cases.is_empty(), "a case or a reason: {cell} in {line}");
                named.extend(cases);
            }
        }
        let unique: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(unique.len(), named.len(), "a case is in two cells: {named:?}");
        assert_eq!(unique, cases());
    }
}
