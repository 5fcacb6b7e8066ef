//! The table of the trace: one line per source document.
//!
//! Must not fail; it only shows.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::ids::Id;
use super::register::Register;

/// What is covered, waived and neither, per document; with `list` also which ids are neither.
pub(crate) fn table(
    register: &Register,
    covered: &BTreeSet<Id>,
    waived: &BTreeSet<Id>,
    list: bool,
) -> String {
    let mut text = row("source", ["total", "covered", "waived", "uncovered"].map(str::to_owned));
    let mut sums = [0; 4];
    let mut missing = String::new();
    for source in register.sources() {
        let ids: Vec<&Id> = register.of(source).collect();
        let count = |set: &BTreeSet<Id>| ids.iter().filter(|id| set.contains(id)).count();
        let open: Vec<&&Id> =
            ids.iter().filter(|id| !covered.contains(id) && !waived.contains(id)).collect();
        let counts = [ids.len(), count(covered), count(waived), open.len()];
        text += &row(source, counts.map(|count| count.to_string()));
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        let names: Vec<String> = open.iter().map(|id| id.to_string()).collect();
        let _ = writeln!(missing, "{source}: {}", names.join(" "));
    }
    text += &row("all", sums.map(|sum| sum.to_string()));
    if list { text + "\nuncovered\n" + &missing } else { text }
}

fn row(name: &str, cells: [String; 4]) -> String {
    let [total, covered, waived, uncovered] = cells;
    format!("{name:<8} {total:>6} {covered:>8} {waived:>7} {uncovered:>10}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_is_counted_and_the_rest_listed() {
        let register =
            Register::parse("| 000-01 | |\n| 000-02 | |\n| 000-03 | |\n| B-01 | |").unwrap();
        let covered = BTreeSet::from(["000-01".parse().unwrap()]);
        let waived = BTreeSet::from(["B-01".parse().unwrap()]);
        let text = table(&register, &covered, &waived, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "000           3        1       0          2");
        assert_eq!(lines[2], "B             1        0       1          0");
        assert_eq!(lines[3], "all           4        1       1          2");
        assert_eq!(lines[6], "000: 000-02 000-03");
        assert!(!table(&register, &covered, &waived, false).contains("000-02"));
    }
}
