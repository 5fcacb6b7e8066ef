//! Numbers and texts as bytes: seven bits a byte for what is usually small, lengths before texts.
//!
//! Every number has exactly one encoding, so equal cells are equal bytes. Must not trust a length.

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

    /// Seven bits a byte, the low ones first; the top bit says that more follow.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// The sign goes to the lowest bit, so that small debts are small too.
    pub fn signed(&mut self, number: i64) {
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

    /// Four bytes always: for fingerprints, which are never small.
    pub fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// Eight bytes always: for random ids.
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
    /// The version that the bytes were written in.
    pub version: u8,
}

impl<'a> Reader<'a> {
    /// The first byte is the version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (version, left) = bytes.split_first().ok_or(CodecError::Short)?;
        Ok(Self { left, version: *version })
    }

    /// Nothing may be left.
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

    pub fn signed(&mut self) -> Result<i64, CodecError> {
        let folded = self.number()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// A number from zero up to what every store computes exactly.
    pub fn amount(&mut self, field: &'static str) -> Result<i64, CodecError> {
        let number = self.number()?;
        let amount = i64::try_from(number).ok().filter(|amount| *amount <= EXACT_MAX);
        amount.ok_or(CodecError::Range { field })
    }

    /// The same with a sign.
    pub fn balance(&mut self, field: &'static str) -> Result<i64, CodecError> {
        let balance = self.signed()?;
        let exact = (-EXACT_MAX..=EXACT_MAX).contains(&balance);
        exact.then_some(balance).ok_or(CodecError::Range { field })
    }

    /// A number that the type of the field can hold.
    pub fn small<N: TryFrom<u64>>(&mut self, field: &'static str) -> Result<N, CodecError> {
        N::try_from(self.number()?).map_err(|_| CodecError::Range { field })
    }

    pub fn time(&mut self, field: &'static str) -> Result<Time, CodecError> {
        let micros = self.amount(field)?;
        let time = Time::from_micros(micros);
        (time.micros() == micros).then_some(time).ok_or(CodecError::Range { field })
    }

    pub fn span(&mut self, field: &'static str) -> Result<Span, CodecError> {
        let micros = self.amount(field)?;
        let span = Span::from_micros(micros);
        (span.micros() == micros).then_some(span).ok_or(CodecError::Range { field })
    }

    /// How many entries follow. Each takes a byte at least, so a lie is found before it costs.
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

    /// A byte of which only the bits of `known` may be set.
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
