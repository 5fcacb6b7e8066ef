//! The figures of a case with their bounds, as cells of the table in `docs/guarantees.md`.

use std::time::Duration;

use catraca_conformance::faults::COLUMNS;

use super::bounds::{ACTS, Bounds, CUT_OFF_ACTS, RATE_MIN, RECORDS_RECOVER};
use super::measures::Measures;

/// A cell for each column.
pub type Cells = [String; COLUMNS.len()];

/// The cells of a run. A bound is in parentheses.
pub fn cells(bounds: &Bounds, found: &Measures) -> Cells {
    let Measures { worst, sum, .. } = found;
    let late = match bounds.forgets {
        true => sum.late.to_string(),
        false => format!("{} (≤ 0)", sum.late),
    };
    [
        format!("{} (≤ {})", worst.all, limits(bounds.limits)),
        sum.all.to_string(),
        format!("{} (≤ {})", worst.exact, limits(bounds.exact_limits)),
        late,
        degraded(bounds, found),
        format!("{} (≤ {} s)", seconds(found.recovered), bounds.recovers.as_secs()),
        locks(bounds, found),
        format!("{} (≤ {})", found.resource.double, bounds.double_resource),
        seconds(found.acts.longest_wait),
        acts(bounds, found),
        format!("{} ms", found.longest.as_millis()),
        format!("{} (≥ {RATE_MIN})", found.load.per_second),
        besides(bounds, found),
    ]
}

/// A cell without its figures: digits are left out, except in bounds.
pub fn shape(cell: &str) -> String {
    let mut shape = String::new();
    let mut is_bound = false;
    for letter in cell.chars() {
        is_bound = (is_bound || letter == '(') && letter != ')';
        if is_bound || !letter.is_ascii_digit() {
            shape.push(letter);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
    }
    shape
}

fn limits(count: usize) -> String {
    match count {
        0 => "0".to_owned(),
        1 => "1 limit".to_owned(),
        more => format!("{more} limits"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn degraded(bounds: &Bounds, found: &Measures) -> String {
    let figure = format!("{} in {}", found.degraded.count, seconds(found.degraded.length()));
    match (bounds.degrades, bounds.degrades_for.as_secs()) {
        (false, _) => format!("{figure} (≤ 0)"),
        (true, 0) => figure,
        (true, least) => format!("{figure} (≥ {least} s)"),
    }
}

fn locks(bounds: &Bounds, found: &Measures) -> String {
    if !bounds.refuses {
        return format!("{} refused (≤ 0)", found.payment_refused + found.resource_refused);
    }
    format!("{} (≤ {} s)", seconds(found.locks_recovered), bounds.locks_recover().as_secs())
}

fn acts(bounds: &Bounds, found: &Measures) -> String {
    let figure = seconds(found.acts.longest());
    let most = ACTS.as_secs();
    let more = CUT_OFF_ACTS.as_secs();
    match (bounds.acts_wait, bounds.cut_off_node) {
        (_, Some(_)) => format!("{figure} (≤ {most} s; of the cut off node {more} s later)"),
        (true, None) => format!("{figure} (≤ {most} s, from the end)"),
        (false, None) => format!("{figure} (≤ {most} s)"),
    }
}

/// What only some cases have.
fn besides(bounds: &Bounds, found: &Measures) -> String {
    let mut parts = Vec::new();
    if bounds.has_others {
        let all = found.answers_elsewhere;
        let degraded = found.degraded_elsewhere;
        parts.push(format!("{degraded} of {all} on other primaries degraded (≤ 0)"));
    }
    if bounds.loses_blocks {
        let passed = found.blocked_passed + found.unseen_passed;
        parts.push(format!("{passed} blocked passed (for ≤ 2 s)"));
    }
    if bounds.records_fail {
        let missing = found.missing_blocks;
        let all = found.durable_blocks;
        let again = found.durable_again.map_or("never".to_owned(), seconds);
        let most = RECORDS_RECOVER.as_secs();
        parts.push(format!("{missing} of {all} durable blocks missing (≤ 0)"));
        parts.push(format!("durable again after {again} (≤ {most} s)"));
    }
    if bounds.dead_node.is_some() {
        parts.push("callers of the killed node have no answer until the end".to_owned());
    }
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_its_figure_and_its_bound() {
        let mut found = Measures::of_nothing();
        found.worst.all = 25;
        found.longest = Duration::from_millis(15);
        found.answers_elsewhere = 512;
        let bounds = Bounds {
            limits: 2,
            degrades_for: Duration::from_secs(1),
            waits_grace: true,
            has_others: true,
            records_fail: true,
            ..Bounds::default()
        };
        let cells = cells(&bounds, &found);
        assert_eq!(cells[0], "25 (≤ 2 limits)");
        assert_eq!([&cells[4], &cells[6]], ["0 in 0.0 s (≥ 1 s)", "0.0 s (≤ 5 s)"]);
        assert_eq!(cells[10], "15 ms");
        assert!(cells[12].starts_with("0 of 512 on other primaries degraded (≤ 0), "));
        assert!(cells[12].ends_with("durable again after never (≤ 5 s)"), "{}", cells[12]);
    }

    #[test]
    fn a_shape_has_the_bounds_and_no_figures() {
        assert_eq!(shape("1964 in 2.3 s (≥ 1 s)"), "# in #.# s (≥ 1 s)");
        assert_eq!(
            shape("0 of 9 (≤ 0), again after 0.1 s (≤ 5 s)"),
            "# of # (≤ 0), again after #.# s (≤ 5 s)"
        );
    }
}
