//! The summary on the screen: totals, policies, who was denied most, and what deserves a look.

use std::io::{self, Write};

use catraca::Time;
use catraca_core::policy::PolicyId;

use super::super::event::{At, Written};
use super::policy::SUBJECTS_MAX;
use super::{Counts, Instant, Summary};
use crate::render::{Paint, count, counted, table};

/// Subjects shown per policy.
const TOP: usize = 5;
/// Names shown of a list that may be long.
const NAMES: usize = 10;
/// Instants before this are offsets that somebody counted from zero, not dates.
const FIRST_DATE: Time = Time::from_millis(10 * 365 * 24 * 3_600_000);

/// Prints one summary.
pub struct Printer<'a, W> {
    summary: &'a Summary,
    out: W,
    paint: Paint,
}

impl<'a, W: Write> Printer<'a, W> {
    /// A printer of a summary.
    pub fn new(summary: &'a Summary, out: W) -> Self {
        Self { summary, out, paint: Paint::for_stdout() }
    }

    /// Prints it all.
    pub fn print(mut self) -> io::Result<()> {
        self.head()?;
        self.totals()?;
        self.policies()?;
        self.subjects()?;
        self.notes()?;
        self.out.flush()
    }

    fn head(&mut self) -> io::Result<()> {
        let totals = &self.summary.totals;
        let lines = counted(totals.lines as usize, "event", "events");
        let revision = &self.summary.catalog.revision;
        match totals.span {
            None => writeln!(self.out, "no events, catalog revision {revision}"),
            Some((first, last)) => {
                let length = last.time.since(first.time);
                writeln!(
                    self.out,
                    "{} over {length}, from {first} to {last}, catalog revision {revision}",
                    self.paint.strong(&lines),
                )
            }
        }
    }

    fn totals(&mut self) -> io::Result<()> {
        let totals = &self.summary.totals;
        let (allowed, denied) = (sum(&totals.allowed), sum(&totals.denied));
        let of = |part: u64| share(part, allowed + denied);
        writeln!(self.out)?;
        self.total("allowed", allowed, &of(allowed), &in_words(&totals.allowed))?;
        self.total("denied", denied, &of(denied), &in_words(&totals.denied))?;
        if !totals.settled.is_empty() {
            self.total("outcomes", sum(&totals.settled), "", &in_words(&totals.settled))?;
        }
        if !totals.acts.is_empty() {
            self.total("acts", sum(&totals.acts), "", &in_words(&totals.acts))?;
        }
        if totals.bad > 0 {
            self.total("bad lines", totals.bad, "", "they changed nothing")?;
        }
        Ok(())
    }

    fn total(&mut self, name: &str, number: u64, share: &str, detail: &str) -> io::Result<()> {
        let line = format!("{name:<9}  {:>9}  {share:>6}  {detail}", count(number));
        writeln!(self.out, "{}", line.trim_end())
    }

    fn policies(&mut self) -> io::Result<()> {
        let heads =
            ["policy", "mode", "allowed", "denied", "while blocked", "blocks", "worst minute"];
        let mut shown = table(&heads, &[2, 3, 4, 5]);
        let said = self.summary.heard.said();
        let in_millis = self.summary.totals.span.is_some_and(|(first, _)| first.in_millis);
        let all = self.summary.catalog.policies.iter().zip(&self.summary.policies);
        for (policy, tally) in all.filter(|(_, tally)| tally.allowed + tally.denied > 0) {
            let worst = tally.minutes.worst().map(|(minute, denied)| {
                let time = Time::from_micros(minute.saturating_mul(60_000_000));
                format!("{} denied at {}", count(denied), Instant { time, in_millis })
            });
            shown.add_row([
                policy.name.to_string(),
                policy.mode.as_str().to_owned(),
                count(tally.allowed),
                count(tally.denied),
                count(tally.blocked),
                count(said.blocks_of(&policy.name)),
                worst.unwrap_or_default(),
            ]);
        }
        if shown.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", shown.trim_fmt()) }
    }

    fn subjects(&mut self) -> io::Result<()> {
        let mut shown = table(&["policy", "denied most", "times", "share"], &[2, 3]);
        let numbered = (0_u16..).map(PolicyId).zip(&self.summary.catalog.policies);
        for ((id, policy), tally) in numbered.zip(&self.summary.policies) {
            for (place, (who, times)) in self.summary.subjects.top(id, TOP).into_iter().enumerate()
            {
                let name = if place == 0 { &*policy.name } else { "" };
                shown.add_row([name, who, &count(times), &share(times, tally.denied)]);
            }
        }
        if shown.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", shown.trim_fmt()) }
    }

    fn notes(&mut self) -> io::Result<()> {
        let notes = self.all_notes();
        if !notes.is_empty() {
            writeln!(self.out)?;
        }
        notes.iter().try_for_each(|note| writeln!(self.out, "note: {note}"))
    }

    fn all_notes(&self) -> Vec<String> {
        let (summary, said) = (self.summary, self.summary.heard.said());
        let mut notes = Vec::new();
        if !summary.unlisted.is_empty() {
            let gates = names(summary.unlisted.keys().map(String::as_str));
            notes.push(format!(
                "gates that the catalog does not declare, decided by its default: {gates}"
            ));
        }
        for (policy, times) in &said.low_water {
            notes.push(format!("{policy} fell below its low-water mark {}", times_of(*times)));
        }
        for (policy, times) in &said.storms {
            notes.push(format!(
                "{policy} banned so many that its bans turned to shadow, {}",
                times_of(*times)
            ));
        }
        if said.failed > 0 {
            let failed = count(said.failed);
            notes.push(format!(
                "{failed} ban conditions read a missing field or compared unlike things"
            ));
        }
        if summary.totals.degraded > 0 {
            let degraded = count(summary.totals.degraded);
            notes.push(format!(
                "{degraded} decisions are degraded: the store had no room for keys of their own"
            ));
        }
        if summary.subjects.untracked > 0 {
            let (max, rest) = (count(SUBJECTS_MAX as u64), count(summary.subjects.untracked));
            notes.push(format!(
                "only the first {max} denied subjects are ranked; {rest} denials of others are not"
            ));
        }
        let idle = summary.catalog.policies.iter().zip(&summary.policies);
        let idle = idle.filter(|(_, tally)| tally.allowed + tally.denied == 0);
        let idle: Vec<_> = idle.map(|(policy, _)| &*policy.name).collect();
        if !idle.is_empty() && summary.totals.lines > 0 {
            notes.push(format!("never asked: {}", names(idle.into_iter())));
        }
        notes
    }
}

impl Instant {
    pub(super) fn of(at: &At<'_>) -> Self {
        Self { time: at.time, in_millis: matches!(at.written, Written::Millis(_)) }
    }
}

/// Offsets are shown as lengths, dates as dates.
impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.in_millis && self.time < FIRST_DATE {
            return write!(f, "{}", self.time.since(Time::ZERO));
        }
        write!(f, "{}", self.time)
    }
}

fn in_words(counts: &Counts) -> String {
    let all = counts.iter().map(|(word, times)| format!("{word} {}", count(*times)));
    all.collect::<Vec<_>>().join(", ")
}

fn sum(counts: &Counts) -> u64 {
    counts.values().sum()
}

/// A share in per cent with one digit, rounded to nearest.
fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

fn times_of(times: u64) -> String {
    counted(times as usize, "time", "times")
}

/// The first names of a list, and how many more there are.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = all.collect();
    let more = all.len().saturating_sub(NAMES);
    let shown = all[..all.len().min(NAMES)].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_round_to_nearest() {
        assert_eq!(
            [share(1, 3), share(2, 3), share(0, 5), share(5, 5)],
            ["33.3%", "66.7%", "0.0%", "100.0%"]
        );
        assert_eq!(share(0, 0), "");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(names(["a", "b"].into_iter()), "a, b");
        assert_eq!(names(std::iter::repeat_n("a", 12)), "a, a, a, a, a, a, a, a, a, a and 2 more");
    }

    #[test]
    fn small_milliseconds_are_offsets_and_large_ones_dates() {
        let shown =
            |millis, in_millis| Instant { time: Time::from_millis(millis), in_millis }.to_string();
        assert_eq!(shown(720_000, true), "12m");
        assert_eq!(shown(720_000, false), "1970-01-01T00:12:00Z");
        assert_eq!(shown(1_767_225_600_000, true), "2026-01-01T00:00:00Z");
    }
}
