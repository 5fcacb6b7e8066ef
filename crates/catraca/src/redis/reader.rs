//! What is left of a reply: numbers, instants and texts, each checked as it is taken.
//!
//! Must not panic, whatever bytes come.

use std::sync::Arc;

use catraca_core::cell::block::{Note, Origin};
use catraca_core::limit::EXACT_MAX;
use catraca_core::time::Time;

use super::pack::ORIGINS;
use crate::store::StoreError;

/// Stands for no instant.
const NONE: i64 = -1;

pub(super) type Read<T> = Result<T, StoreError>;

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing may be left.
    pub fn finish(&self) -> Read<()> {
        if self.is_empty() { Ok(()) } else { Err(odd(format!("{} bytes too many", self.0.len()))) }
    }

    pub fn byte(&mut self) -> Read<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn flag(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(odd(format!("neither yes nor no: {other}"))),
        }
    }

    pub fn int(&mut self) -> Read<i64> {
        let number = f64::from_le_bytes(self.array()?);
        let exact = number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64;
        if exact { Ok(number as i64) } else { Err(odd(format!("no exact integer: {number}"))) }
    }

    pub fn time(&mut self) -> Read<Time> {
        instant(self.int()?)
    }

    pub fn maybe_time(&mut self) -> Read<Option<Time>> {
        match self.int()? {
            NONE => Ok(None),
            micros => instant(micros).map(Some),
        }
    }

    pub fn origin(&mut self) -> Read<Origin> {
        let number = self.byte()?;
        origin(number)
    }

    pub fn short(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn word(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn bytes(&mut self, length: usize) -> Read<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn text(&mut self, length: usize) -> Read<&'a str> {
        std::str::from_utf8(self.bytes(length)?).map_err(|_| odd("a text that is not UTF-8"))
    }

    /// A note behind its length.
    pub fn note(&mut self) -> Read<Note> {
        let length = self.word()? as usize;
        let mut note = Reader(self.bytes(length)?);
        if note.is_empty() {
            return Ok(Note::default());
        }
        let status = Some(note.short()?).filter(|status| *status > 0);
        let (reason, message) = (note.maybe_text()?, note.maybe_text()?);
        note.finish()?;
        Ok(Note { reason, status, message })
    }

    /// A text behind its length plus one, or nothing behind a zero.
    pub fn maybe_text(&mut self) -> Read<Option<Arc<str>>> {
        match self.word()?.checked_sub(1) {
            Some(length) => self.text(length as usize).map(|text| Some(text.into())),
            None => Ok(None),
        }
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*array)
    }
}

pub(super) fn origin(number: u8) -> Read<Origin> {
    let origin = ORIGINS.get(usize::from(number)).copied();
    origin.ok_or_else(|| odd(format!("no such origin: {number}")))
}

pub(super) fn odd(what: impl std::fmt::Display) -> StoreError {
    StoreError::corrupt(format!("the script answered {what}"))
}

fn short() -> StoreError {
    odd("too few bytes")
}

fn instant(micros: i64) -> Read<Time> {
    let time = Time::from_micros(micros);
    if time.micros() == micros { Ok(time) } else { Err(odd(format!("no instant: {micros}"))) }
}
