//! Reads a history line by line; a line that is too long is skipped and not kept in memory.

use std::io::{self, BufRead, Read};

/// The longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The UTF-8 byte-order mark that some editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines into one reused buffer.
pub struct LineReader<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
}

/// A line, or a marker for one that is too long.
#[derive(Debug, PartialEq, Eq)]
pub enum HistoryLine<'a> {
    /// The line without the newline.
    Text(&'a [u8]),
    /// More than [`LINE_BYTES_MAX`] bytes.
    TooLong,
}

impl<R: BufRead> LineReader<R> {
    /// Reads the lines of `source`.
    pub fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// The next line that is not blank, with its number from one; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<(u64, HistoryLine<'_>)>> {
        loop {
            self.line.clear();
            let read = self.read_part(LINE_BYTES_MAX + 1)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            // The extra byte above the limit may be the newline of a line that fits.
            if read > LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
                self.skip_rest()?;
                return Ok(Some((self.number, HistoryLine::TooLong)));
            }
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((self.number, HistoryLine::Text(self.line.trim_ascii_end()))));
            }
        }
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            self.line.clear();
            let read = self.read_part(LINE_BYTES_MAX)?;
            if read == 0 || self.line.last() == Some(&b'\n') {
                return Ok(());
            }
        }
    }

    fn read_part(&mut self, bytes_max: usize) -> io::Result<usize> {
        self.source.by_ref().take(bytes_max as u64).read_until(b'\n', &mut self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = LineReader::new(io::BufReader::with_capacity(64, text));
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            found.push(match line {
                HistoryLine::Text(text) => (number, Some(text.to_vec())),
                HistoryLine::TooLong => (number, None),
            });
        }
        assert!(lines.line.capacity() <= 2 * (LINE_BYTES_MAX + 1));
        found
    }

    #[test]
    fn blank_lines_are_counted_and_left_out() {
        let found = all(b"\xef\xbb\xbfa\r\n\n  \t\nb");
        assert_eq!(found, [(1, Some(b"a".to_vec())), (4, Some(b"b".to_vec()))]);
        assert_eq!(all(b""), []);
    }

    #[test]
    fn the_longest_line_is_read_and_a_longer_one_skipped_whole() {
        let longest = vec![b'x'; LINE_BYTES_MAX];
        for end in [&b""[..], b"\n", b"\nafter"] {
            let found = all(&[&longest, end].concat());
            assert_eq!(found[0], (1, Some(longest.clone())));
        }
        let longer = vec![b'x'; 3 * LINE_BYTES_MAX];
        let found = all(&[&longer, &b"\nafter"[..]].concat());
        assert_eq!(found, [(1, None), (2, Some(b"after".to_vec()))]);
        assert_eq!(all(&longer), [(1, None)]);
    }
}
