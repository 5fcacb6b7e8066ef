//! The summary on the screen: totals, policies, who was denied most, and what deserves a look.

use std::io::{self, Write};

use super::{Counts, Picture};
use crate::render::{Paint, count, counted, table};

/// Subjects shown per policy.
const TOP: usize = 5;

impl Picture {
    /// Prints it.
    pub fn print(&self, out: impl Write) -> io::Result<()> {
        Printer { picture: self, out, paint: Paint::for_stdout() }.print()
    }
}

/// Prints one summary.
struct Printer<'a, W> {
    picture: &'a Picture,
    out: W,
    paint: Paint,
}

impl<W: Write> Printer<'_, W> {
    fn print(mut self) -> io::Result<()> {
        self.head()?;
        self.totals()?;
        self.policies()?;
        self.subjects()?;
        self.notes()?;
        self.out.flush()
    }

    fn head(&mut self) -> io::Result<()> {
        let lines = counted(self.picture.lines as usize, "event", "events");
        let revision = &self.picture.revision;
        match self.picture.span {
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
        let picture = self.picture;
        let (allowed, denied) = (sum(&picture.allowed), sum(&picture.denied));
        let of = |part: u64| share(part, allowed + denied);
        writeln!(self.out)?;
        self.total("allowed", allowed, &of(allowed), &in_words(&picture.allowed))?;
        self.total("denied", denied, &of(denied), &in_words(&picture.denied))?;
        if !picture.settled.is_empty() {
            self.total("outcomes", sum(&picture.settled), "", &in_words(&picture.settled))?;
        }
        if !picture.acts.is_empty() {
            self.total("acts", sum(&picture.acts), "", &in_words(&picture.acts))?;
        }
        if picture.bad > 0 {
            self.total("bad lines", picture.bad, "", "they changed nothing")?;
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
        for policy in self.picture.policies.iter().filter(|policy| policy.was_asked()) {
            let worst =
                policy.worst.map(|(at, denied)| format!("{} denied at {at}", count(denied)));
            shown.add_row([
                policy.name.clone(),
                policy.mode.to_owned(),
                count(policy.allowed),
                count(policy.denied),
                count(policy.blocked),
                count(policy.blocks),
                worst.unwrap_or_default(),
            ]);
        }
        if shown.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", shown.trim_fmt()) }
    }

    fn subjects(&mut self) -> io::Result<()> {
        let mut shown = table(&["policy", "denied most", "times", "share"], &[2, 3]);
        for policy in &self.picture.policies {
            for (place, (who, times)) in policy.top.iter().take(TOP).enumerate() {
                let name = if place == 0 { &*policy.name } else { "" };
                shown.add_row([name, who, &count(*times), &share(*times, policy.denied)]);
            }
        }
        if shown.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", shown.trim_fmt()) }
    }

    fn notes(&mut self) -> io::Result<()> {
        if !self.picture.notes.is_empty() {
            writeln!(self.out)?;
        }
        self.picture.notes.iter().try_for_each(|note| writeln!(self.out, "note: {note}"))
    }
}

/// Each word with its number.
fn in_words(counts: &Counts) -> String {
    let all = counts.iter().map(|(word, times)| format!("{word} {}", count(*times)));
    all.collect::<Vec<_>>().join(", ")
}

/// All of them together.
pub fn sum(counts: &Counts) -> u64 {
    counts.values().sum()
}

/// A share in per cent with one digit, rounded to nearest.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{}%", tenths / 10, tenths % 10)
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
}
