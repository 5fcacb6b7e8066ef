//! Notes which requests of a connection state their length twice: `Content-Length` together with
//! `Transfer-Encoding`, or two lines of `Content-Length`.
//!
//! hyper reads such a request by one of the two and hides the other, so that a service cannot
//! refuse it. This follows the bytes of the connection beside hyper, and decides nothing about the
//! body itself. It must find the same requests as hyper in every input that hyper accepts: where
//! the two disagree, the next ambiguous request would be counted as another one. Input that hyper
//! refuses may be read in any way, because the connection ends with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// The longest name of a header that is compared.
const NAME_BYTES_MAX: usize = TRANSFER_ENCODING.len();

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
    head: WatchedHead,
    #[cfg(test)]
    request_lines: Vec<Vec<u8>>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FramingState {
    /// Empty lines before a request, or the first byte of its first line.
    #[default]
    BeforeHead,
    RequestLine,
    HeaderName,
    HeaderValue(HeaderKind),
    /// So many bytes of a body follow.
    Body(u64),
    /// The size of a chunk, of which the digits so far say this.
    ChunkSize(u64),
    /// The rest of the line with the size of a chunk.
    ChunkExtension(u64),
    /// So many bytes of a chunk follow, with the end of line after it.
    ChunkData(u64),
    /// The first byte of a trailer, or of the empty line after the last one.
    TrailerStart,
    /// The rest of a trailer. hyper ends it with CRLF alone; a single LF is a part of it.
    Trailer,
    TrailerLineFeed,
    LastLineFeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderKind {
    ContentLength,
    TransferEncoding,
    Other,
}

/// What is known about the head that is being read.
#[derive(Debug, Default)]
struct WatchedHead {
    /// The start of the name of the current header, in lower case.
    name: [u8; NAME_BYTES_MAX],
    /// The length of the whole name.
    name_bytes: usize,
    lengths: u32,
    length: u64,
    is_chunked: bool,
}

impl FramingWatch {
    /// Reports to `found`.
    pub fn new(found: AmbiguousLengths) -> Self {
        Self { found, ..Self::default() }
    }

    /// Reads the next bytes of the connection.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            bytes = match self.state {
                FramingState::Body(left) => {
                    self.skip(left, bytes, FramingState::Body, FramingState::BeforeHead)
                }
                FramingState::ChunkData(left) => {
                    self.skip(left, bytes, FramingState::ChunkData, FramingState::ChunkSize(0))
                }
                FramingState::RequestLine | FramingState::HeaderValue(HeaderKind::Other) => {
                    self.skip_line(bytes)
                }
                _ => {
                    self.push_byte(*first);
                    rest
                }
            };
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

    /// Skips the rest of a line of the head.
    fn skip_line<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        #[cfg(test)]
        if self.state == FramingState::RequestLine
            && let Some(line) = self.request_lines.last_mut()
        {
            line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        }
        match end {
            Some(end) => {
                self.begin_header();
                &bytes[end + 1..]
            }
            None => &[],
        }
    }

    fn push_byte(&mut self, byte: u8) {
        match (self.state, byte) {
            (FramingState::BeforeHead, b'\r' | b'\n') => {}
            (FramingState::BeforeHead, _) => {
                self.state = FramingState::RequestLine;
                #[cfg(test)]
                self.request_lines.push(vec![byte]);
            }
            (FramingState::HeaderName, b'\n') if self.head.name_bytes == 0 => self.end_head(),
            (FramingState::HeaderName | FramingState::HeaderValue(_), b'\n') => self.begin_header(),
            (FramingState::HeaderName, b':') => self.begin_value(),
            (FramingState::HeaderName, b'\r') => {}
            (FramingState::HeaderName, _) => self.head.push_name(byte),
            (FramingState::HeaderValue(HeaderKind::ContentLength), b'0'..=b'9') => {
                self.head.length =
                    self.head.length.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
            }
            (FramingState::ChunkSize(size), _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let size = size.saturating_mul(16).saturating_add(u64::from(digit));
                self.state = FramingState::ChunkSize(size);
            }
            (FramingState::ChunkSize(0) | FramingState::ChunkExtension(0), b'\n') => {
                self.state = FramingState::TrailerStart;
            }
            (FramingState::ChunkSize(size) | FramingState::ChunkExtension(size), b'\n') => {
                // Two more for the end of line after the data.
                self.state = FramingState::ChunkData(size.saturating_add(2));
            }
            (FramingState::ChunkSize(size), _) => self.state = FramingState::ChunkExtension(size),
            (FramingState::TrailerStart, b'\r') => self.state = FramingState::LastLineFeed,
            (FramingState::TrailerStart, _) => self.state = FramingState::Trailer,
            (FramingState::Trailer, b'\r') => self.state = FramingState::TrailerLineFeed,
            (FramingState::TrailerLineFeed, _) => self.state = FramingState::TrailerStart,
            (FramingState::LastLineFeed, _) => self.state = FramingState::BeforeHead,
            _ => {}
        }
    }

    fn begin_header(&mut self) {
        self.head.name_bytes = 0;
        self.state = FramingState::HeaderName;
    }

    fn begin_value(&mut self) {
        let kind = self.head.header_kind();
        match kind {
            HeaderKind::ContentLength => {
                self.head.lengths += 1;
                self.head.length = 0;
            }
            HeaderKind::TransferEncoding => self.head.is_chunked = true,
            HeaderKind::Other => {}
        }
        self.state = FramingState::HeaderValue(kind);
    }

    fn end_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        let is_ambiguous = head.lengths > 1 || (head.lengths > 0 && head.is_chunked);
        if is_ambiguous && !self.found.contains(self.index) {
            self.found.0.store(self.index, Ordering::Relaxed);
        }
        self.state = match (head.is_chunked, head.length) {
            (true, _) => FramingState::ChunkSize(0),
            (false, 0) => FramingState::BeforeHead,
            (false, length) => FramingState::Body(length),
        };
        self.index += 1;
    }
}

impl WatchedHead {
    fn push_name(&mut self, byte: u8) {
        if let Some(place) = self.name.get_mut(self.name_bytes) {
            *place = byte.to_ascii_lowercase();
        }
        self.name_bytes += 1;
    }

    fn header_kind(&self) -> HeaderKind {
        match self.name.get(..self.name_bytes) {
            Some(CONTENT_LENGTH) => HeaderKind::ContentLength,
            Some(TRANSFER_ENCODING) => HeaderKind::TransferEncoding,
            _ => HeaderKind::Other,
        }
    }
}

#[cfg(test)]
mod tests;
