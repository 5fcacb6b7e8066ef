//! Puts rounds side by side: ratios are taken inside a round and only then summarised, because
//! rounds differ by more than servers do.

use std::fmt::Write;

use crate::args::Plan;
use crate::conduct::{CONNECTIONS, KEYS};

/// One server in one round.
pub struct Row {
    /// The round, from zero.
    pub round: usize,
    /// The server.
    pub name: &'static str,
    /// Answers per second, flat out.
    pub rate: f64,
    /// Server's processor time per request, flat out.
    pub cpu_us: f64,
    /// The part of it outside the kernel.
    pub user_us: f64,
    /// The whole at the fixed rate.
    pub paced_cpu_us: f64,
    /// Median latency at the fixed rate, from when a request was due.
    pub paced_p50_us: f64,
    /// 99 % of it.
    pub paced_p99_us: f64,
    /// Cores used by other processes at the same time.
    pub foreign: f64,
}

impl Row {
    /// The row as one JSON line.
    pub fn to_json(&self) -> String {
        format!(
            "{{\"round\":{},\"server\":\"{}\",\"rate\":{:.0},\"cpu_us\":{:.3},\
             \"user_us\":{:.3},\"paced_cpu_us\":{:.3},\"paced_p50_us\":{:.1},\
             \"paced_p99_us\":{:.1},\"foreign_cores\":{:.2}}}",
            self.round + 1,
            self.name,
            self.rate,
            self.cpu_us,
            self.user_us,
            self.paced_cpu_us,
            self.paced_p50_us,
            self.paced_p99_us,
            self.foreign
        )
    }
}

/// A figure of a row.
type Figure = fn(&Row) -> f64;

/// The table, in Markdown. The first of the names is what the others are compared with. `rate` is
/// that of the open loop.
pub fn write(rows: &[Row], names: &[&str], rate: f64, plan: &Plan) -> String {
    let reference = names.first().copied().unwrap_or_default();
    let mut text = format!(
        "{} rounds of {} s, {CONNECTIONS} connections, {KEYS} resident keys; medians. Ratios are \
         to {reference}\nin the same round, with the smallest and largest; above 1 is better in \
         both.\n",
        plan.rounds, plan.seconds
    );
    let disturbed = rows.iter().filter(|row| row.foreign > 0.2).count();
    let _ = writeln!(text, "{disturbed} of {} had others use over 0.2 cores.\n", rows.len());
    if plan.quick {
        text.push_str("**A quick run: it shows that this works and proves little.**\n\n");
    }
    let _ = writeln!(
        text,
        "| Server | requests/s | × | server CPU µs | × | user µs | CPU µs at {rate:.0}/s \
         | p50 µs | p99 µs |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for name in names {
        let _ = writeln!(text, "{}", line(rows, name, reference));
    }
    text
}

fn line(rows: &[Row], name: &str, reference: &str) -> String {
    let own = |figure: Figure| median(rows.iter().filter(|row| row.name == name).map(figure));
    format!(
        "| {name} | {:.0} | {} | {:.2} | {} | {:.2} | {:.1} | {:.0} | {:.0} |",
        own(|row| row.rate),
        ratio(rows, name, reference, |row| row.rate),
        own(|row| row.cpu_us),
        ratio(rows, name, reference, |row| 1.0 / row.cpu_us),
        own(|row| row.user_us),
        own(|row| row.paced_cpu_us),
        own(|row| row.paced_p50_us),
        own(|row| row.paced_p99_us),
    )
}

/// What servers add to `direct`, which is a server that is asked without them, in Markdown. The
/// differences are taken inside a round, at `rate`.
pub fn write_added(rows: &[Row], names: &[&str], direct: &str, rate: f64) -> String {
    let own = |figure: Figure| median(rows.iter().filter(|row| row.name == direct).map(figure));
    let mut text = format!(
        "At {rate:.0}/s {direct} has a p50 of {:.0} µs and a p99 of {:.0} µs. Added to it in the \
         same round,\nwith the smallest and largest:\n\n\
         | Server | CPU µs added | p50 µs added | p99 µs added |\n|---|---:|---:|---:|\n",
        own(|row| row.paced_p50_us),
        own(|row| row.paced_p99_us),
    );
    for name in names {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} |",
            difference(rows, name, direct, |row| row.paced_cpu_us),
            difference(rows, name, direct, |row| row.paced_p50_us),
            difference(rows, name, direct, |row| row.paced_p99_us),
        );
    }
    text
}

/// The difference to the reference, round by round.
fn difference(rows: &[Row], name: &str, reference: &str, figure: Figure) -> String {
    summary(&compare(rows, name, reference, figure, |own, other| own - other), 1)
}

/// The ratio to the reference, round by round.
fn ratio(rows: &[Row], name: &str, reference: &str, figure: Figure) -> String {
    summary(&compare(rows, name, reference, figure, |own, other| own / other), 2)
}

/// Compares a figure with that of the reference in the same round.
fn compare(
    rows: &[Row],
    name: &str,
    reference: &str,
    figure: Figure,
    compare: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let of = |name: &str, round| {
        let own = |row: &&Row| row.name == name && row.round == round;
        rows.iter().find(own).map(figure)
    };
    let rounds = rows.iter().filter(|row| row.name == name).map(|row| row.round);
    rounds.filter_map(|round| Some(compare(of(name, round)?, of(reference, round)?))).collect()
}

/// The median of values with the smallest and the largest.
fn summary(values: &[f64], digits: usize) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.digits$} ({least:.digits$}–{most:.digits$})", median(values.iter().copied()))
}

/// The middle of the values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(round: usize, name: &'static str, rate: f64) -> Row {
        Row {
            round,
            name,
            rate,
            cpu_us: 1e6 / rate,
            user_us: 1.0,
            paced_cpu_us: 1.0,
            paced_p50_us: 1.0,
            paced_p99_us: 1.0,
            foreign: 0.0,
        }
    }

    #[test]
    fn ratios_are_taken_inside_a_round() {
        let rows = [
            row(0, "bare", 100.0),
            row(0, "catraca", 90.0),
            row(1, "bare", 50.0),
            row(1, "catraca", 40.0),
        ];
        assert_eq!(ratio(&rows, "catraca", "bare", |row| row.rate), "0.85 (0.80–0.90)");
        assert!(line(&rows, "catraca", "bare").starts_with("| catraca | 65 | 0.85 (0.80–0.90) |"));
    }

    #[test]
    fn differences_are_taken_inside_a_round() {
        let paced = |round, name, p99| Row { paced_p99_us: p99, ..row(round, name, 1.0) };
        let rows = [
            paced(0, "direct", 100.0),
            paced(0, "catraca", 130.0),
            paced(1, "direct", 300.0),
            paced(1, "catraca", 310.0),
        ];
        let text = write_added(&rows, &["catraca"], "direct", 5_000.0);
        let own = "At 5000/s direct has a p50 of 1 µs and a p99 of 200 µs.";
        assert!(text.starts_with(own), "{text}");
        assert!(text.ends_with("| 0.0 (0.0–0.0) | 20.0 (10.0–30.0) |\n"), "{text}");
    }

    #[test]
    fn the_table_names_the_rate_that_was_driven() {
        let plan = Plan { rounds: 1, seconds: 1, ..Plan::default() };
        let text = write(&[row(0, "nginx", 100.0)], &["nginx"], 5_000.0, &plan);
        assert!(text.contains("CPU µs at 5000/s"), "{text}");
    }
}
