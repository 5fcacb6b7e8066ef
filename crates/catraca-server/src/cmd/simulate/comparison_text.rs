//! Prints a comparison as text.

use std::io::{self, Write};

use catraca_replay::simulate::{Comparison, DecisionChanges, PolicySummary, SummaryData, sum};

use super::report::ReportLabels;
use super::summary_text::share;
use crate::render::{count, count_noun, new_table};

/// Maximum number of subjects printed per direction.
const TOP: usize = 10;

/// Prints totals, policies, and the subjects with changed decisions.
pub fn print(
    comparison: &Comparison,
    labels: &ReportLabels,
    mut out: impl Write,
) -> io::Result<()> {
    print_head(comparison, labels, &mut out)?;
    print_totals(comparison, &mut out)?;
    print_policies(comparison, &mut out)?;
    let before = &labels.catalog;
    let after = &labels.other;
    let title = match comparison.newly_denied.requests {
        1 => format!("passes with {before} and is denied with {after}"),
        _ => format!("pass with {before} and are denied with {after}"),
    };
    print_changes(&mut out, &comparison.newly_denied, &title, "newly denied")?;
    let title = match comparison.newly_allowed.requests {
        1 => format!("is denied with {before} and passes with {after}"),
        _ => format!("are denied with {before} and pass with {after}"),
    };
    print_changes(&mut out, &comparison.newly_allowed, &title, "newly allowed")?;
    out.flush()
}

fn print_head(
    comparison: &Comparison,
    labels: &ReportLabels,
    out: &mut impl Write,
) -> io::Result<()> {
    let lines = count_noun(comparison.before.lines as usize, "event", "events");
    match comparison.before.span {
        None => writeln!(out, "no events")?,
        Some((first, last)) => {
            let length = last.time.since(first.time);
            writeln!(out, "{lines} over {length}, from {first} to {last}")?;
        }
    }
    let width = labels.catalog.chars().count().max(labels.other.chars().count());
    writeln!(out, "before  {:width$}  revision {}", labels.catalog, comparison.before.revision)?;
    writeln!(out, "after   {:width$}  revision {}", labels.other, comparison.after.revision)
}

fn print_totals(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let mut table = new_table(&["", "before", "", "after", "", "change"], &[1, 2, 3, 4, 5]);
    let before = &comparison.before;
    let after = &comparison.after;
    let decided = |of: &SummaryData| sum(&of.allowed) + sum(&of.denied);
    let before_total = decided(before);
    let after_total = decided(after);
    let mut row = |name: &str, one: u64, other: u64, shares: bool| {
        let share = |part, whole| if shares { share(part, whole) } else { String::new() };
        table.add_row([
            name,
            &count(one),
            &share(one, before_total),
            &count(other),
            &share(other, after_total),
            &change(one, other),
        ]);
    };
    row("allowed", sum(&before.allowed), sum(&after.allowed), true);
    row("denied", sum(&before.denied), sum(&after.denied), true);
    row("blocks", before.blocks(), after.blocks(), false);
    writeln!(out, "\n{}", table.trim_fmt())
}

fn print_policies(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let heads = ["policy", "", "allowed", "denied", "while blocked", "blocks", "terms"];
    let mut table = new_table(&heads, &[2, 3, 4, 5]);
    for (before, after) in comparison.policies() {
        for (one, when) in [(before, "before"), (after, "after")] {
            let Some(one) = one else { continue };
            let name = if before.is_some() && when == "after" { "" } else { &*one.name };
            table.add_row([
                name,
                when,
                &count(one.allowed),
                &count(one.denied),
                &count(one.blocked),
                &count(one.blocks),
                &terms(one),
            ]);
        }
    }
    if table.is_empty() { Ok(()) } else { writeln!(out, "\n{}", table.trim_fmt()) }
}

fn terms(policy: &PolicySummary) -> String {
    let mode_text = if policy.mode == "enforce" { "" } else { policy.mode };
    let parts = [mode_text, &policy.terms].into_iter().filter(|text| !text.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

fn print_changes(
    out: &mut impl Write,
    changes: &DecisionChanges,
    what: &str,
    head: &str,
) -> io::Result<()> {
    if changes.requests == 0 {
        return writeln!(out, "\nNo requests {what}.");
    }
    let requests = count_noun(changes.requests as usize, "request", "requests");
    let subjects = count_noun(changes.subjects.len(), "subject", "subjects");
    writeln!(out, "\n{requests} of {subjects} {what}:\n")?;
    let mut table = new_table(&["policy", head, "times"], &[2]);
    for subject in changes.subjects.iter().take(TOP) {
        table.add_row([&*subject.policy, &*subject.who, &count(subject.times)]);
    }
    if !table.is_empty() {
        writeln!(out, "{}", table.trim_fmt())?;
    }
    match changes.subjects.len().saturating_sub(TOP) {
        0 => Ok(()),
        more => writeln!(out, " and {} more", count(more as u64)),
    }
}

/// A difference with its sign.
pub fn change(before: u64, after: u64) -> String {
    match before.cmp(&after) {
        std::cmp::Ordering::Equal => "=".to_owned(),
        std::cmp::Ordering::Less => format!("+{}", count(after - before)),
        std::cmp::Ordering::Greater => format!("−{}", count(before - after)),
    }
}
