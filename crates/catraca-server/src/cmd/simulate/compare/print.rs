//! A comparison on the screen.

use std::io::{self, Write};

use super::super::report::Labels;
use super::super::summary::{PolicyPicture, share, sum};
use super::{Comparison, Moved};
use crate::render::{count, counted, table};

/// Subjects shown of each kind.
const TOP: usize = 10;

impl Comparison {
    /// Prints it.
    pub fn print(&self, labels: &Labels, mut out: impl Write) -> io::Result<()> {
        self.head(labels, &mut out)?;
        self.totals(&mut out)?;
        self.print_policies(&mut out)?;
        let (before, after) = (&labels.catalog, &labels.other);
        let title = format!("pass with {before} and are denied with {after}");
        moved(&mut out, &self.newly_denied, &title, "newly denied")?;
        let title = format!("are denied with {before} and pass with {after}");
        moved(&mut out, &self.newly_allowed, &title, "newly allowed")?;
        out.flush()
    }

    fn head(&self, labels: &Labels, out: &mut impl Write) -> io::Result<()> {
        let lines = counted(self.before.lines as usize, "event", "events");
        match self.before.span {
            None => writeln!(out, "no events")?,
            Some((first, last)) => {
                let length = last.time.since(first.time);
                writeln!(out, "{lines} over {length}, from {first} to {last}")?;
            }
        }
        let width = labels.catalog.chars().count().max(labels.other.chars().count());
        writeln!(out, "before  {:width$}  revision {}", labels.catalog, self.before.revision)?;
        writeln!(out, "after   {:width$}  revision {}", labels.other, self.after.revision)
    }

    fn totals(&self, out: &mut impl Write) -> io::Result<()> {
        let mut shown = table(&["", "before", "", "after", "", "change"], &[1, 2, 3, 4, 5]);
        let (before, after) = (&self.before, &self.after);
        let decided = |of: &super::Picture| sum(&of.allowed) + sum(&of.denied);
        let of = (decided(before), decided(after));
        let mut row = |name: &str, one: u64, other: u64, shares: bool| {
            let share = |part, whole| if shares { share(part, whole) } else { String::new() };
            shown.add_row([
                name,
                &count(one),
                &share(one, of.0),
                &count(other),
                &share(other, of.1),
                &change(one, other),
            ]);
        };
        row("allowed", sum(&before.allowed), sum(&after.allowed), true);
        row("denied", sum(&before.denied), sum(&after.denied), true);
        row("blocks", before.blocks(), after.blocks(), false);
        writeln!(out, "\n{}", shown.trim_fmt())
    }

    fn print_policies(&self, out: &mut impl Write) -> io::Result<()> {
        let heads = ["policy", "", "allowed", "denied", "while blocked", "blocks", "terms"];
        let mut shown = table(&heads, &[2, 3, 4, 5]);
        for (before, after) in self.policies() {
            for (one, when) in [(before, "before"), (after, "after")] {
                let Some(one) = one else { continue };
                let name = if before.is_some() && when == "after" { "" } else { &*one.name };
                shown.add_row([
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
        if shown.is_empty() { Ok(()) } else { writeln!(out, "\n{}", shown.trim_fmt()) }
    }
}

fn terms(policy: &PolicyPicture) -> String {
    let off = if policy.mode == "enforce" { "" } else { policy.mode };
    let both = [off, &policy.terms].into_iter().filter(|text| !text.is_empty());
    both.collect::<Vec<_>>().join(", ")
}

fn moved(out: &mut impl Write, moved: &Moved, what: &str, head: &str) -> io::Result<()> {
    if moved.requests == 0 {
        return writeln!(out, "\nNo requests {what}.");
    }
    let requests = counted(moved.requests as usize, "request", "requests");
    let subjects = counted(moved.subjects.len(), "subject", "subjects");
    writeln!(out, "\n{requests} of {subjects} {what}:\n")?;
    let mut shown = table(&["policy", head, "times"], &[2]);
    for subject in moved.subjects.iter().take(TOP) {
        shown.add_row([&*subject.policy, &*subject.who, &count(subject.times)]);
    }
    if !shown.is_empty() {
        writeln!(out, "{}", shown.trim_fmt())?;
    }
    match moved.subjects.len().saturating_sub(TOP) {
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
