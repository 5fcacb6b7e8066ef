//! Numbers and texts as bytes: variable-length integers of seven bits per byte, and texts prefixed
//! by their length.
//!
//! Every number has exactly one encoding, so that equal cells have equal bytes. Lengths are not
//! trusted.

use super::CodecError;
use crate::limit::EXACT_MAX;
use crate::time::{Span, Time};

/// Appends fields to a buffer.
#[derive(Debug)]
pub struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    pub fn new(into: &'a mut Vec<u8>) -> Self {
        Self(into)
    }

    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Seven bits per byte, low bits first; the top bit says that another byte follows.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Zigzag: the sign is the lowest bit, so that small negative numbers are short too.
    pub fn write_signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    pub fn time(&mut self, time: Time) {
        self.number(time.micros() as u64);
    }

    pub fn span(&mut self, span: Span) {
        self.number(span.micros() as u64);
    }

    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Always four bytes: for fingerprints, whose high bits are rarely zero.
    pub fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// Always eight bytes: for ids, whose high bits are rarely zero.
    pub fn long(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// Takes fields from bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
    /// The version of the encoding.
    pub version: u8,
}

impl<'a> Reader<'a> {
    /// The first byte is the version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (version, left) = bytes.split_first().ok_or(CodecError::Short)?;
        Ok(Self { left, version: *version })
    }

    /// Fails if bytes are left.
    pub fn finish(&self) -> Result<(), CodecError> {
        match self.left.len() {
            0 => Ok(()),
            extra => Err(CodecError::Trailing { extra }),
        }
    }

    pub fn byte(&mut self) -> Result<u8, CodecError> {
        self.array().map(|[byte]| byte)
    }

    pub fn number(&mut self) -> Result<u64, CodecError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            number |= bits << shift;
            // The tenth byte has room for one bit of a `u64`; a final zero byte would be a second
            // encoding of the same number.
            let fits = bits << shift >> shift == bits;
            let shortest = byte != 0 || shift == 0;
            if !fits || !shortest {
                return Err(CodecError::Overlong);
            }
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(CodecError::Overlong)
    }

    pub fn read_signed(&mut self) -> Result<i64, CodecError> {
        let folded = self.number()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// A number from 0 to 2^53, up to which every store computes exactly.
    pub fn amount(&mut self, field: &'static str) -> Result<i64, CodecError> {
        let number = self.number()?;
        let amount = i64::try_from(number).ok().filter(|amount| *amount <= EXACT_MAX);
        amount.ok_or(CodecError::Range { field })
    }

    /// A signed number from -2^53 to 2^53.
    pub fn balance(&mut self, field: &'static str) -> Result<i64, CodecError> {
        let balance = self.read_signed()?;
        let exact = (-EXACT_MAX..=EXACT_MAX).contains(&balance);
        exact.then_some(balance).ok_or(CodecError::Range { field })
    }

    /// A number that fits the type of the field.
    pub fn small<N: TryFrom<u64>>(&mut self, field: &'static str) -> Result<N, CodecError> {
        N::try_from(self.number()?).map_err(|_| CodecError::Range { field })
    }

    pub fn time(&mut self, field: &'static str) -> Result<Time, CodecError> {
        let micros = self.amount(field)?;
        // `from_micros` clamps to the range, so a number out of range would become another instant.
        let time = Time::from_micros(micros);
        (time.micros() == micros).then_some(time).ok_or(CodecError::Range { field })
    }

    pub fn span(&mut self, field: &'static str) -> Result<Span, CodecError> {
        let micros = self.amount(field)?;
        let span = Span::from_micros(micros);
        (span.micros() == micros).then_some(span).ok_or(CodecError::Range { field })
    }

    /// The number of entries that follow. Each has at least one byte, so a count above the
    /// remaining length is refused before anything is allocated for it.
    pub fn count(&mut self) -> Result<usize, CodecError> {
        let count = self.number()?;
        let fits = |count: &usize| *count <= self.left.len();
        usize::try_from(count).ok().filter(fits).ok_or(CodecError::Short)
    }

    pub fn word(&mut self) -> Result<u32, CodecError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn long(&mut self) -> Result<u64, CodecError> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], CodecError> {
        let count = self.count()?;
        let (bytes, rest) = self.left.split_at_checked(count).ok_or(CodecError::Short)?;
        self.left = rest;
        Ok(bytes)
    }

    pub fn text(&mut self, field: &'static str) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| CodecError::Text { field })
    }

    /// A byte of flags, of which only those in `known` may be set.
    pub fn flags(&mut self, field: &'static str, known: u8) -> Result<u8, CodecError> {
        let found = self.byte()?;
        if found & !known != 0 {
            return Err(CodecError::Flags { field, found });
        }
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (array, rest) = self.left.split_first_chunk().ok_or(CodecError::Short)?;
        self.left = rest;
        Ok(*array)
    }
}
