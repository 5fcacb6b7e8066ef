//! Prints a summary as text: totals, policies, subjects denied most, and notes.

use std::io::{self, Write};

use catraca_replay::simulate::{ReasonCounts, SummaryData, sum};

use crate::render::{Paint, count, count_noun, new_table};

/// Maximum number of subjects printed per policy.
const TOP: usize = 5;

/// Prints a summary.
pub fn print(data: &SummaryData, out: impl Write) -> io::Result<()> {
    Printer { data, out, paint: Paint::for_stdout() }.print()
}

/// Prints one summary.
struct Printer<'a, W> {
    data: &'a SummaryData,
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
        let lines = count_noun(self.data.lines as usize, "event", "events");
        let revision = &self.data.revision;
        match self.data.span {
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
        let data = self.data;
        let allowed = sum(&data.allowed);
        let denied = sum(&data.denied);
        let of = |part: u64| share(part, allowed + denied);
        writeln!(self.out)?;
        self.total("allowed", allowed, &of(allowed), &counts_text(&data.allowed))?;
        self.total("denied", denied, &of(denied), &counts_text(&data.denied))?;
        if !data.settled.is_empty() {
            self.total("outcomes", sum(&data.settled), "", &counts_text(&data.settled))?;
        }
        if !data.acts.is_empty() {
            self.total("acts", sum(&data.acts), "", &counts_text(&data.acts))?;
        }
        if data.bad > 0 {
            self.total("bad lines", data.bad, "", "they changed nothing")?;
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
        let mut table = new_table(&heads, &[2, 3, 4, 5]);
        for policy in self.data.policies.iter().filter(|policy| policy.was_checked()) {
            let worst =
                policy.worst.map(|(at, denied)| format!("{} denied at {at}", count(denied)));
            table.add_row([
                policy.name.clone(),
                policy.mode.to_owned(),
                count(policy.allowed),
                count(policy.denied),
                count(policy.blocked),
                count(policy.blocks),
                worst.unwrap_or_default(),
            ]);
        }
        if table.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", table.trim_fmt()) }
    }

    fn subjects(&mut self) -> io::Result<()> {
        let mut table = new_table(&["policy", "denied most", "times", "share"], &[2, 3]);
        for policy in &self.data.policies {
            for (index, (who, times)) in policy.top.iter().take(TOP).enumerate() {
                let name = if index == 0 { &*policy.name } else { "" };
                table.add_row([name, who, &count(*times), &share(*times, policy.denied)]);
            }
        }
        if table.is_empty() { Ok(()) } else { writeln!(self.out, "\n{}", table.trim_fmt()) }
    }

    fn notes(&mut self) -> io::Result<()> {
        if !self.data.notes.is_empty() {
            writeln!(self.out)?;
        }
        self.data.notes.iter().try_for_each(|note| writeln!(self.out, "note: {note}"))
    }
}

/// The counts as a list.
fn counts_text(counts: &ReasonCounts) -> String {
    let all = counts.iter().map(|(word, times)| format!("{word} {}", count(*times)));
    all.collect::<Vec<_>>().join(", ")
}

/// A percentage with one decimal, rounded to nearest; empty for a whole of 0.
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
