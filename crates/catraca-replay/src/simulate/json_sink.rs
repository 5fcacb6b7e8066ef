//! Writes results as JSON lines, in the order of the history.
//!
//! A result whose settlement is due later holds back all results after it.

use std::collections::VecDeque;
use std::io::{self, Write};

use catraca::json::AsJson;
use catraca::settlement::Settlement;
use serde::Serialize;

use super::event::At;
use super::json_results::{ActJson, BadLineJson};
use super::sink::{ActResult, CheckResult, ResultIndex, SettleResult, Sink};

/// Writes results as JSON lines.
pub struct JsonLinesSink<W> {
    out: W,
    /// Results that cannot be written yet. The first one is never complete: it would be written.
    pending: VecDeque<PendingLine>,
    /// Number of results so far, written or pending.
    total: u64,
}

/// A result that is held back.
struct PendingLine {
    text: Vec<u8>,
    complete: bool,
}

impl<W: Write> JsonLinesSink<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, pending: VecDeque::new(), total: 0 }
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<ResultIndex> {
        if self.pending.is_empty() {
            write_line(&mut self.out, line)?;
        } else {
            let mut text = Vec::new();
            write_line(&mut text, line)?;
            self.pending.push_back(PendingLine { text, complete: true });
        }
        Ok(self.next_index())
    }

    /// Holds back a result without its closing brace: `settled` is appended later.
    fn put_open(&mut self, line: &impl Serialize) -> io::Result<ResultIndex> {
        let mut text = serde_json::to_vec(line)?;
        text.pop();
        self.pending.push_back(PendingLine { text, complete: false });
        Ok(self.next_index())
    }

    fn next_index(&mut self) -> ResultIndex {
        self.total += 1;
        ResultIndex(self.total)
    }

    /// Completes a pending result, then writes all complete ones at the front.
    fn complete(
        &mut self,
        index: ResultIndex,
        finish: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let behind = usize::try_from(self.total - index.0).unwrap_or(usize::MAX);
        // `pending` holds the newest results, so the position counts from its end.
        let position = self.pending.len().checked_sub(behind + 1);
        if let Some(entry) = position.and_then(|position| self.pending.get_mut(position)) {
            finish(&mut entry.text)?;
            entry.complete = true;
        }
        while self.pending.front().is_some_and(|entry| entry.complete) {
            let Some(entry) = self.pending.pop_front() else { break };
            self.out.write_all(&entry.text)?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for JsonLinesSink<W> {
    fn on_check(&mut self, line: &CheckResult<'_, '_>) -> io::Result<ResultIndex> {
        match line.settled {
            SettleResult::Waiting => self.put_open(line),
            SettleResult::NotGiven | SettleResult::Ignored | SettleResult::Done(_) => {
                self.put(line)
            }
        }
    }

    fn on_settle(&mut self, index: ResultIndex, settlement: &Settlement) -> io::Result<()> {
        self.complete(index, |text| {
            text.extend_from_slice(b",\"settled\":");
            serde_json::to_writer(&mut *text, &AsJson(settlement))?;
            text.extend_from_slice(b"}\n");
            Ok(())
        })
    }

    fn on_act(&mut self, at: &At<'_>, act: &ActResult) -> io::Result<()> {
        self.put(&ActJson { at: &at.written, act })?;
        Ok(())
    }

    fn on_bad_line(
        &mut self,
        number: u64,
        index: Option<ResultIndex>,
        error: &str,
    ) -> io::Result<()> {
        let bad_line = BadLineJson { line: number, error };
        match index {
            None => self.put(&bad_line).map(|_| ()),
            Some(index) => self.complete(index, |text| {
                text.clear();
                write_line(text, &bad_line)
            }),
        }
    }

    fn pending(&self) -> usize {
        self.pending.len()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_line(mut out: impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")
}
