//! One JSON line per line of the history, in its order.
//!
//! A line whose outcome is due later keeps those behind it waiting. Must not know the engine.

use std::collections::VecDeque;
use std::io::{self, Write};

use catraca::settlement::Settlement;
use catraca::shape::Shape;
use serde::Serialize;

use super::answer::{Acted, Refused};
use super::event::At;
use super::sink::{Act, Checked, Settled, Sink, Slot};

/// Writes results as JSON lines.
pub struct Json<W> {
    out: W,
    /// Lines that cannot be written yet; the first is never complete.
    waiting: VecDeque<Entry>,
    /// Lines so far, written or waiting.
    total: u64,
}

/// One line that waits.
struct Entry {
    text: Vec<u8>,
    complete: bool,
}

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, waiting: VecDeque::new(), total: 0 }
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<Slot> {
        if self.waiting.is_empty() {
            write_line(&mut self.out, line)?;
        } else {
            let mut text = Vec::new();
            write_line(&mut text, line)?;
            self.waiting.push_back(Entry { text, complete: true });
        }
        Ok(self.next_slot())
    }

    /// Keeps a line whose last field is still to come.
    fn put_open(&mut self, line: &impl Serialize) -> io::Result<Slot> {
        let mut text = serde_json::to_vec(line)?;
        text.pop();
        self.waiting.push_back(Entry { text, complete: false });
        Ok(self.next_slot())
    }

    fn next_slot(&mut self) -> Slot {
        self.total += 1;
        Slot(self.total)
    }

    /// Completes a waiting line and writes all that now can be.
    fn complete(
        &mut self,
        slot: Slot,
        last: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let behind = usize::try_from(self.total - slot.0).unwrap_or(usize::MAX);
        let place = self.waiting.len().checked_sub(behind + 1);
        if let Some(entry) = place.and_then(|place| self.waiting.get_mut(place)) {
            last(&mut entry.text)?;
            entry.complete = true;
        }
        while self.waiting.front().is_some_and(|entry| entry.complete) {
            let Some(entry) = self.waiting.pop_front() else { break };
            self.out.write_all(&entry.text)?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for Json<W> {
    fn checked(&mut self, line: &Checked<'_, '_>) -> io::Result<Slot> {
        match line.settled {
            Settled::Waiting => self.put_open(line),
            Settled::NotGiven | Settled::Ignored | Settled::Done(_) => self.put(line),
        }
    }

    fn settled(&mut self, slot: Slot, settlement: &Settlement) -> io::Result<()> {
        self.complete(slot, |text| {
            text.extend_from_slice(b",\"settled\":");
            serde_json::to_writer(&mut *text, &Shape(settlement))?;
            text.extend_from_slice(b"}\n");
            Ok(())
        })
    }

    fn acted(&mut self, at: &At<'_>, act: &Act) -> io::Result<()> {
        self.put(&Acted { at: &at.written, act })?;
        Ok(())
    }

    fn refused(&mut self, number: u64, slot: Option<Slot>, error: &str) -> io::Result<()> {
        let refused = Refused { line: number, error };
        match slot {
            None => self.put(&refused).map(|_| ()),
            Some(slot) => self.complete(slot, |text| {
                text.clear();
                write_line(text, &refused)
            }),
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_line(mut out: impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")
}
