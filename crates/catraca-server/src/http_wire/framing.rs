//! Notes which requests of a connection state their length twice: `Content-Length` together with
//! `Transfer-Encoding`, or two lines of `Content-Length`.
//!
//! hyper reads such a request by one of the two and hides the other, so that a service cannot
//! refuse it. This follows the bytes of the connection beside hyper, and decides nothing about the
//! body itself.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::listener::ConnectionStream;

/// The longest start of a line that is compared with the names of headers.
const LINE_START_MAX: usize = 40;
const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";

/// The index of the first request of a connection whose length is ambiguous.
#[derive(Clone, Debug)]
pub struct AmbiguousLengths(Arc<AtomicU64>);

impl Default for AmbiguousLengths {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl AmbiguousLengths {
    /// Whether the request with this index, from zero, states its length twice.
    pub fn contains(&self, index: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= index
    }
}

/// Follows the requests of a connection.
#[derive(Debug, Default)]
pub struct FramingWatch {
    found: AmbiguousLengths,
    /// The index of the current request.
    index: u64,
    state: FramingState,
    /// The start of the current line, in lower case.
    line: Vec<u8>,
    has_content: bool,
    lengths: u32,
    length: u64,
    is_chunked: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FramingState {
    #[default]
    Head,
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    Trailers,
}

impl FramingWatch {
    /// Reports to `found`.
    pub fn new(found: AmbiguousLengths) -> Self {
        Self { found, ..Self::default() }
    }

    /// Reads the next bytes of the connection.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            match self.state {
                FramingState::Body(left) => {
                    bytes = self.skip(left, bytes, FramingState::Body, FramingState::Head);
                }
                FramingState::ChunkData(left) => {
                    bytes =
                        self.skip(left, bytes, FramingState::ChunkData, FramingState::ChunkSize);
                }
                FramingState::Head | FramingState::ChunkSize | FramingState::Trailers => {
                    bytes = rest;
                    self.push_line_byte(*first);
                }
            }
        }
    }

    /// Skips bytes of a body, of which `left` follow.
    fn skip<'b>(
        &mut self,
        left: u64,
        bytes: &'b [u8],
        more: fn(u64) -> FramingState,
        after: FramingState,
    ) -> &'b [u8] {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - taken as u64;
        self.state = if left == 0 { after } else { more(left) };
        &bytes[taken..]
    }

    fn push_line_byte(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => {}
            _ => {
                self.has_content = true;
                if self.line.len() < LINE_START_MAX {
                    self.line.push(byte.to_ascii_lowercase());
                }
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let is_empty = !std::mem::take(&mut self.has_content);
        match self.state {
            FramingState::Head if is_empty => self.end_head(),
            FramingState::Head => self.read_header(&line),
            FramingState::ChunkSize => self.state = after_size(&line),
            FramingState::Trailers if is_empty => self.state = FramingState::Head,
            _ => {}
        }
        self.line = line;
        self.line.clear();
    }

    fn read_header(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        match &line[..colon] {
            CONTENT_LENGTH => {
                self.lengths += 1;
                let value = std::str::from_utf8(&line[colon + 1..]).unwrap_or_default();
                self.length = value.trim().parse().unwrap_or(0);
            }
            TRANSFER_ENCODING => self.is_chunked = true,
            _ => {}
        }
    }

    fn end_head(&mut self) {
        let is_ambiguous = self.lengths > 1 || (self.lengths > 0 && self.is_chunked);
        if is_ambiguous && !self.found.contains(self.index) {
            self.found.0.store(self.index, Ordering::Relaxed);
        }
        self.state = match (self.is_chunked, self.length) {
            (true, _) => FramingState::ChunkSize,
            (false, 0) => FramingState::Head,
            (false, length) => FramingState::Body(length),
        };
        self.index += 1;
        self.lengths = 0;
        self.length = 0;
        self.is_chunked = false;
    }
}

/// What follows the line with the size of a chunk.
fn after_size(line: &[u8]) -> FramingState {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = std::str::from_utf8(&line[..digits]).unwrap_or_default();
    match u64::from_str_radix(text, 16) {
        Ok(0) => FramingState::Trailers,
        // Two more for the end of line after the data. An invalid size ends the connection.
        size => FramingState::ChunkData(size.unwrap_or(u64::MAX - 2).saturating_add(2)),
    }
}

/// The byte stream of a connection whose requests are followed.
pub struct WatchedStream {
    /// The stream itself.
    pub stream: ConnectionStream,
    framing: Option<FramingWatch>,
}

impl WatchedStream {
    /// Follows what is read from `stream`.
    pub fn new(stream: ConnectionStream, framing: Option<FramingWatch>) -> Self {
        Self { stream, framing }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if let Some(framing) = &mut self.framing {
            framing.push(&buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of the first ambiguous request, with the bytes cut at every place.
    fn first_ambiguous(text: &str) -> Option<u64> {
        let mut results = (1..=text.len()).map(|size| {
            let found = AmbiguousLengths::default();
            let mut watch = FramingWatch::new(found.clone());
            text.as_bytes().chunks(size).for_each(|part| watch.push(part));
            (0..9).find(|index| found.contains(*index))
        });
        let first = results.next().unwrap();
        assert!(results.all(|result| result == first), "{text:?}");
        first
    }

    #[test]
    fn a_length_that_is_stated_twice_is_found_in_any_request() {
        let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let sized =
            "POST / HTTP/1.1\r\nContent-Length: 32\r\n\r\nContent-Length: 1\r\nX: y\r\n\r\n!!!!!";
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                       1b;x=y\r\nContent-Length: 1\r\n\r\n123456\r\n0\r\nT: 1\r\n\r\n";
        let both = "POST / HTTP/1.1\r\ncontent-length:5\r\nTRANSFER-ENCODING: chunked\r\n\r\n";
        let twice = "POST / HTTP/1.1\r\nContent-Length: 5\nContent-Length: 5\n\n";
        assert_eq!(first_ambiguous(&[plain, sized, chunked, plain].concat()), None);
        assert_eq!(first_ambiguous(both), Some(0));
        assert_eq!(first_ambiguous(&[sized, chunked, twice].concat()), Some(2));
        assert_eq!(first_ambiguous(&[chunked, chunked, plain, both].concat()), Some(3));
    }
}
