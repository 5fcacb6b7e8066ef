//! Splits an event stream (`text/event-stream`) that arrives in parts into the data of its events.

/// The bytes of `data: ` at the beginning of a line, which are no data.
const PREFIX_BYTES: usize = 6;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Finds the events of a stream while it arrives. Keeps one event, of at most `bytes_max` bytes of
/// data; larger events are skipped.
#[derive(Debug)]
pub(super) struct EventScanner {
    bytes_max: usize,
    /// The data lines of the current event, joined by line feeds; absent before the first.
    data: Option<Vec<u8>>,
    /// The current line as far as it has arrived. Of a comment only its colon.
    line: Vec<u8>,
    is_line_blank: bool,
    is_first_line: bool,
    /// The current event has too many bytes.
    is_too_large: bool,
    /// The last byte was a carriage return, so a line feed after it ends no second line.
    is_after_return: bool,
}

impl EventScanner {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            data: None,
            line: Vec::new(),
            is_line_blank: true,
            is_first_line: true,
            is_too_large: false,
            is_after_return: false,
        }
    }

    /// Adds the next part of the stream, and hands on the data of each event that it completes.
    pub fn push(&mut self, mut bytes: &[u8], mut on_event: impl FnMut(&[u8])) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.is_after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.extend_line(part);
            let Some((line_end, rest)) = rest.split_first() else { return };
            self.is_after_return = *line_end == b'\r';
            self.end_line(&mut on_event);
            bytes = rest;
        }
    }

    /// The stream is complete. A last event without the blank line after it counts too.
    pub fn finish(mut self, mut on_event: impl FnMut(&[u8])) {
        if !self.is_line_blank {
            self.end_line(&mut on_event);
        }
        self.end_line(&mut on_event);
    }

    fn extend_line(&mut self, part: &[u8]) {
        let Some(first) = part.first() else { return };
        self.is_line_blank = false;
        let is_comment = *self.line.first().unwrap_or(first) == b':';
        if self.is_too_large || is_comment {
            if is_comment && self.line.is_empty() {
                self.line.push(b':');
            }
            return;
        }
        let data = self.data.as_ref().map_or(0, Vec::len);
        if data + self.line.len() + part.len() > self.bytes_max + PREFIX_BYTES {
            self.is_too_large = true;
            self.data = None;
            self.line = Vec::new();
            return;
        }
        self.line.extend_from_slice(part);
    }

    fn end_line(&mut self, on_event: &mut impl FnMut(&[u8])) {
        let is_blank = std::mem::replace(&mut self.is_line_blank, true);
        if is_blank {
            if let Some(data) = self.data.take() {
                on_event(&data);
            }
            self.is_too_large = false;
        } else if !self.is_too_large {
            self.add_line();
        }
        self.line.clear();
        self.is_first_line = false;
    }

    /// Adds the current line to the data of the event, if it is a line of data.
    fn add_line(&mut self) {
        let mut line = self.line.as_slice();
        if self.is_first_line {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        let Some(value) = data_of(line) else { return };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        if self.data.as_ref().is_some_and(|data| data.len() > self.bytes_max) {
            self.is_too_large = true;
            self.data = None;
        }
    }
}

/// The value of a line with the field `data`.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of a stream that arrives in parts of this many bytes.
    fn events_in_parts(stream: &[u8], part_bytes: usize, bytes_max: usize) -> Vec<String> {
        let mut scanner = EventScanner::new(bytes_max);
        let mut events = Vec::new();
        let mut add = |data: &[u8]| events.push(String::from_utf8_lossy(data).into_owned());
        stream.chunks(part_bytes).for_each(|part| scanner.push(part, &mut add));
        scanner.finish(&mut add);
        events
    }

    fn events(stream: &str) -> Vec<String> {
        let whole = events_in_parts(stream.as_bytes(), stream.len().max(1), 100);
        for part_bytes in 1..4 {
            assert_eq!(events_in_parts(stream.as_bytes(), part_bytes, 100), whole, "{stream:?}");
        }
        whole
    }

    #[test]
    fn lines_end_with_any_of_the_three_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["data: a", "", "event: x", "data:b", "id: 7", "", "data: c", ""];
            assert_eq!(events(&stream.join(end)), ["a", "b", "c"], "{end:?}");
        }
        assert_eq!(events("data: a\r\rdata: b\n\r\n"), ["a", "b"]);
    }

    #[test]
    fn the_lines_of_an_event_are_joined() {
        assert_eq!(events("data: {\ndata:  \"a\": 1\ndata\ndata: }\n\n"), ["{\n \"a\": 1\n\n}"]);
        assert_eq!(events(": comment\n\ndata: a\n: data: x\ndatax: y\n\n\n\n"), ["a"]);
        assert_eq!(events("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
        assert_eq!(events("data: [DONE]"), ["[DONE]"]);
        assert_eq!(events("\n\n:\n"), [""; 0]);
    }

    #[test]
    fn a_large_event_is_skipped_and_the_next_one_is_read() {
        let large = "x".repeat(101);
        let fits = "x".repeat(100);
        for line_end in ["\n", "\r\n"] {
            let stream = format!("data: {large}||data: {fits}||:{large}{large}|data: c||");
            assert_eq!(events(&stream.replace('|', line_end)), [fits.as_str(), "c"]);
        }
        let halves = format!("data: {}\ndata: {}\n\ndata: c\n\n", &fits[..50], &fits[..50]);
        assert_eq!(events(&halves), ["c"]);
    }

    proptest! {
        #[test]
        fn any_stream_is_split_in_bounded_memory(
            stream in "([da\\r\\n:{} ]|data: |[^\\x00]){0,80}",
            part_bytes in 1_usize..9,
        ) {
            let events = events_in_parts(stream.as_bytes(), part_bytes, 16);
            prop_assert_eq!(&events, &events_in_parts(stream.as_bytes(), 1_000, 16));
            prop_assert!(stream.is_ascii() <= events.iter().all(|event| event.len() <= 16));
        }
    }
}
