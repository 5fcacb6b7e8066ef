//! Puts rounds side by side: ratios are taken inside a round and only then summarised, because
//! rounds differ by more than scripts do.

use std::fmt::Write;

use crate::args::Plan;
use crate::load::CONNECTIONS;
use crate::subjects::{ENTRIES, Subject};

/// One subject in one round.
pub struct Row {
    /// The round, from zero.
    pub round: usize,
    /// The subject.
    pub name: String,
    /// Decisions per second.
    pub rate: f64,
    /// The server's time on a core per decision.
    pub cpu_us: f64,
    /// Median time of an answer.
    pub p50_us: f64,
    /// 99 % of it.
    pub p99_us: f64,
}

/// A figure of a row.
type Figure = fn(&Row) -> f64;

/// The tables, in Markdown.
pub fn write(rows: &[Row], subjects: &[Subject], memory: &[(String, f64)], plan: &Plan) -> String {
    let mut text = format!(
        "{} rounds of {} s, {CONNECTIONS} connections, one command on its way on each; medians. \
         Ratios are \
         taken\nin the same round, with the smallest and largest; above 1 is better.\n\n",
        plan.rounds, plan.seconds
    );
    if plan.quick {
        text.push_str("**A quick run: it shows that this works and proves nothing.**\n\n");
    }
    text.push_str(
        "| On Redis | decisions/s | server CPU µs | p50 µs | p99 µs | beside | × rate | × CPU |\n\
         |---|---:|---:|---:|---:|---|---:|---:|\n",
    );
    for subject in subjects {
        let _ = writeln!(text, "{}", line(rows, subject));
    }
    let _ = writeln!(text, "\n| A window of {ENTRIES} entries | bytes per key |\n|---|---:|");
    for (name, bytes) in memory {
        let _ = writeln!(text, "| {name} | {bytes:.0} |");
    }
    text
}

fn line(rows: &[Row], subject: &Subject) -> String {
    let name = subject.name.as_str();
    let own = |figure: Figure| median(rows.iter().filter(|row| row.name == name).map(figure));
    let beside = subject.beside.unwrap_or(name);
    format!(
        "| {name} | {:.0} | {:.2} | {:.0} | {:.0} | {beside} | {} | {} |",
        own(|row| row.rate),
        own(|row| row.cpu_us),
        own(|row| row.p50_us),
        own(|row| row.p99_us),
        ratio(rows, (name, beside), |row| row.rate),
        ratio(rows, (name, beside), |row| 1.0 / row.cpu_us),
    )
}

/// The median of the rounds' own ratios, and the outermost.
fn ratio(rows: &[Row], (name, beside): (&str, &str), figure: Figure) -> String {
    let of = |name: &str, round| rows.iter().find(|row| row.name == name && row.round == round);
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or_default();
    let mut all: Vec<f64> = (0..=rounds)
        .filter_map(|round| Some(figure(of(name, round)?) / figure(of(beside, round)?)))
        .collect();
    all.sort_by(f64::total_cmp);
    match (all.first(), all.last()) {
        (Some(least), Some(most)) => {
            format!("{:.2} ({least:.2}-{most:.2})", median(all.iter().copied()))
        }
        _ => "-".to_owned(),
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
