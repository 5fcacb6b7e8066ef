//! Results as JSON lines, in the order of the history.
//!
//! A batch is rendered on any thread ([`JsonBatch`]), and written in its turn ([`JsonLines`]). A
//! result whose settlement is due later holds back all results after it.

use std::collections::VecDeque;
use std::io::{self, Write};

use catraca::json::AsJson;
use serde::Serialize;

use super::json_results::{ActJson, BadLineJson};
use super::line_result::{LineResult, ResultIndex, SettleResult};

/// Writes results as JSON lines.
pub struct JsonLines<W> {
    out: W,
    /// Texts that cannot be written yet, by their first result. The first one is never complete: it
    /// would be written.
    pending: VecDeque<PendingText>,
    /// Number of results so far, written or pending.
    total: u64,
}

/// Consecutive results that are held back.
struct PendingText {
    first: ResultIndex,
    text: Vec<u8>,
    complete: bool,
}

/// The rendered results of a batch.
#[derive(Default)]
pub struct JsonBatch {
    text: Vec<u8>,
    parts: Vec<JsonPart>,
}

/// A part of the text of a batch.
struct JsonPart {
    /// The end of the part in the text; it starts where the part before it ends.
    end: usize,
    content: PartContent,
}

enum PartContent {
    /// This many whole lines.
    Lines(u64),
    /// A line without its closing brace: `settled` is appended later.
    OpenLine,
    /// The rest of an earlier open line.
    Rest(ResultIndex),
    /// A whole line in place of an earlier open line.
    Replacement(ResultIndex),
}

impl JsonBatch {
    /// Renders the results of a batch.
    pub fn render(results: &[LineResult<'_>]) -> io::Result<Self> {
        let mut batch = Self::default();
        results.iter().try_for_each(|result| batch.push(result))?;
        Ok(batch)
    }

    fn push(&mut self, result: &LineResult<'_>) -> io::Result<()> {
        match result {
            LineResult::Check(check) if matches!(check.settled, SettleResult::Waiting) => {
                serde_json::to_writer(&mut self.text, check)?;
                self.text.pop();
                self.end_part(PartContent::OpenLine);
            }
            LineResult::Check(check) => self.push_line(check)?,
            LineResult::Act(at, act) => self.push_line(&ActJson { at: at.written, act })?,
            LineResult::BadLine(bad) => self.push_line(&BadLineJson::from(bad))?,
            LineResult::Settled(index, settlement) => {
                self.text.extend_from_slice(b",\"settled\":");
                serde_json::to_writer(&mut self.text, &AsJson(settlement))?;
                self.text.extend_from_slice(b"}\n");
                self.end_part(PartContent::Rest(*index));
            }
            LineResult::SettleFailed(index, bad) => {
                self.write_line(&BadLineJson::from(bad))?;
                self.end_part(PartContent::Replacement(*index));
            }
            LineResult::BlockStarted { .. } => {}
        }
        Ok(())
    }

    fn push_line(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.write_line(line)?;
        let end = self.text.len();
        match self.parts.last_mut() {
            Some(JsonPart { end: last_end, content: PartContent::Lines(lines) }) => {
                *last_end = end;
                *lines += 1;
            }
            _ => self.end_part(PartContent::Lines(1)),
        }
        Ok(())
    }

    fn write_line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.text, line)?;
        self.text.push(b'\n');
        Ok(())
    }

    fn end_part(&mut self, content: PartContent) {
        self.parts.push(JsonPart { end: self.text.len(), content });
    }
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, pending: VecDeque::new(), total: 0 }
    }

    /// Writes the results of the next batch, or holds them back.
    pub fn write(&mut self, batch: &JsonBatch) -> io::Result<()> {
        let mut start = 0;
        for part in &batch.parts {
            let text = &batch.text[start..part.end];
            match part.content {
                PartContent::Lines(lines) => self.put_lines(text, lines)?,
                PartContent::OpenLine => self.hold_back(text, 1, false),
                PartContent::Rest(index) => self.complete(index, |line| line.extend(text))?,
                PartContent::Replacement(index) => self.complete(index, |line| {
                    line.clear();
                    line.extend(text);
                })?,
            }
            start = part.end;
        }
        Ok(())
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes what the output still buffers.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn put_lines(&mut self, text: &[u8], lines: u64) -> io::Result<()> {
        if self.pending.is_empty() {
            self.total += lines;
            return self.out.write_all(text);
        }
        self.hold_back(text, lines, true);
        Ok(())
    }

    fn hold_back(&mut self, text: &[u8], lines: u64, complete: bool) {
        let first = ResultIndex(self.total + 1);
        self.pending.push_back(PendingText { first, text: text.to_vec(), complete });
        self.total += lines;
    }

    /// Completes an open line, then writes all complete texts at the front.
    fn complete(
        &mut self,
        index: ResultIndex,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        if let Ok(position) = self.pending.binary_search_by_key(&index, |entry| entry.first) {
            let entry = &mut self.pending[position];
            change(&mut entry.text);
            entry.complete = true;
        }
        while self.pending.front().is_some_and(|entry| entry.complete) {
            let Some(entry) = self.pending.pop_front() else { break };
            self.out.write_all(&entry.text)?;
        }
        Ok(())
    }
}
