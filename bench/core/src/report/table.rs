//! One markdown table: a line per subject, a column per summary over rounds.

use crate::registry::{Role, SUBJECTS};
use crate::results::{Results, median};

/// A table of one case.
pub struct Table {
    /// Heading.
    pub title: String,
    /// How to read it; may be empty.
    pub note: &'static str,
    /// The case a subject must have been measured in to get a line.
    pub case: String,
    /// Columns after the subject's name.
    pub columns: Vec<Column>,
}

impl Table {
    /// Writes the table, or nothing if no subject of `role` was measured.
    pub fn write(&self, results: &Results, role: Role) -> String {
        let measured = SUBJECTS.iter().filter(|entry| entry.role == role);
        let measured = measured.filter(|entry| results.has(entry.name, &self.case));
        let lines: String = measured.map(|entry| self.line(results, entry.name)).collect();
        if lines.is_empty() {
            return lines;
        }
        let headers = self.columns.iter().map(|column| format!(" {} |", column.header));
        let headers = headers.collect::<String>();
        let rule = "---:|".repeat(self.columns.len());
        let note = if self.note.is_empty() { "" } else { &format!("{}\n\n", self.note) };
        format!("\n### {}\n\n{note}| subject |{headers}\n|---|{rule}\n{lines}", self.title)
    }

    /// Nothing for a subject of whom no column knows anything.
    fn line(&self, results: &Results, subject: &str) -> String {
        let cells = self.columns.iter().map(|column| column.cell(results, subject));
        let cells: Vec<String> = cells.collect();
        if cells.iter().all(|cell| cell == NOTHING) {
            return String::new();
        }
        format!("| {subject} | {} |\n", cells.join(" | "))
    }
}

/// A cell without a value.
const NOTHING: &str = "–";

/// A value of one subject in one round.
type PerRound = Box<dyn Fn(&Results, usize, &str) -> Option<f64>>;

/// One column.
pub struct Column {
    header: String,
    value: PerRound,
    show: Show,
}

/// How the values of all rounds become one cell.
enum Show {
    Median(usize),
    Range(usize),
    MedianAndRange(usize),
}

impl Column {
    /// Median over rounds of one figure.
    pub fn median(header: &str, digits: usize, case: &str, figure: &str) -> Column {
        Column { header: header.into(), value: plain(case, figure), show: Show::Median(digits) }
    }

    /// Smallest and largest over rounds of one figure.
    pub fn range(header: &str, digits: usize, case: &str, figure: &str) -> Column {
        Column { header: header.into(), value: plain(case, figure), show: Show::Range(digits) }
    }

    /// Median over rounds of subject / `against`.
    pub fn ratio(header: &str, case: &str, figure: &str, against: &'static str) -> Column {
        let own = plain(case, figure);
        let other = plain(case, figure);
        let value: PerRound = Box::new(move |results, round, subject| {
            Some(own(results, round, subject)? / other(results, round, against)?)
        });
        Column { header: header.into(), value, show: Show::MedianAndRange(2) }
    }

    /// Median over rounds of one figure over another, both the subject's own.
    pub fn quotient(header: &str, over: (String, &str), under: (String, &str)) -> Column {
        let over = plain(&over.0, over.1);
        let under = plain(&under.0, under.1);
        let value: PerRound = Box::new(move |results, round, subject| {
            Some(over(results, round, subject)? / under(results, round, subject)?)
        });
        Column { header: header.into(), value, show: Show::MedianAndRange(2) }
    }

    /// Median over rounds of subject − `base`.
    pub fn excess(
        header: &str,
        digits: usize,
        case: &str,
        figure: &str,
        base: &'static str,
    ) -> Column {
        let own = plain(case, figure);
        let other = plain(case, figure);
        let value: PerRound = Box::new(move |results, round, subject| {
            Some(own(results, round, subject)? - other(results, round, base)?)
        });
        Column { header: header.into(), value, show: Show::Median(digits) }
    }

    fn cell(&self, results: &Results, subject: &str) -> String {
        let values = results.per_round(|round| (self.value)(results, round, subject));
        if values.is_empty() {
            return NOTHING.into();
        }
        let middle = median(&values);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.show {
            Show::Median(digits) => format!("{middle:.digits$}"),
            Show::Range(digits) => format!("{least:.digits$}–{most:.digits$}"),
            Show::MedianAndRange(digits) => {
                format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})")
            }
        }
    }
}

fn plain(case: &str, figure: &str) -> PerRound {
    let case = case.to_owned();
    let figure = figure.to_owned();
    Box::new(move |results, round, subject| results.get(round, subject, &case, &figure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{FLOOR, PEER};
    use crate::results::{Figures, Row};

    fn results(values: &[(&'static str, f64)]) -> Results {
        let row = |(index, (subject, ns)): (usize, &(&'static str, f64))| {
            let mut figures = Figures::default();
            figures.put("ns", *ns);
            Row { round: index / 2, subject, case: "hot-1".into(), figures }
        };
        let rows: Vec<Row> = values.iter().enumerate().map(row).collect();
        Results { rounds: rows.len() / 2, rows }
    }

    #[test]
    fn a_ratio_is_taken_inside_each_round() {
        // Medians alone would say 3 / 2 = 1.5; two rounds of three say 0.5 and 1.0.
        let values =
            [(PEER, 1.0), (FLOOR, 2.0), (PEER, 3.0), (FLOOR, 1.0), (PEER, 4.0), (FLOOR, 4.0)];
        let column = Column::ratio("x", "hot-1", "ns", FLOOR);
        assert_eq!(column.cell(&results(&values), PEER), "1.00 (0.50–3.00)");
    }

    #[test]
    fn a_subject_without_a_reference_gets_a_dash() {
        let column = Column::ratio("x", "hot-1", "ns", "absent");
        assert_eq!(column.cell(&results(&[(PEER, 1.0), (FLOOR, 2.0)]), PEER), NOTHING);
    }
}
