//! Reads numbers, instants and texts from the bytes of a script's reply, and checks each of them.
//! Invalid bytes are an error, never a panic.

use std::sync::Arc;

use catraca_core::cell::block::{Block, BlockNote, Origin};
use catraca_core::limit::EXACT_MAX;
use catraca_core::time::{Span, Time};

use super::encode::ORIGINS;
use crate::store::StoreError;

/// The number that means no instant.
const NONE: i64 = -1;

pub(super) type DecodeResult<T> = Result<T, StoreError>;

pub(super) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if bytes are left.
    pub fn finish(&self) -> DecodeResult<()> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(invalid_reply(format!("{} surplus bytes", self.0.len())))
        }
    }

    pub fn byte(&mut self) -> DecodeResult<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn flag(&mut self) -> DecodeResult<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(invalid_reply(format!("the invalid flag {other}"))),
        }
    }

    /// A double that holds an integer of at most 2^53.
    pub fn int(&mut self) -> DecodeResult<i64> {
        let number = f64::from_le_bytes(self.array()?);
        let exact = number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64;
        if exact {
            Ok(number as i64)
        } else {
            Err(invalid_reply(format!("{number}, which is not an exact integer")))
        }
    }

    pub fn time(&mut self) -> DecodeResult<Time> {
        instant(self.int()?)
    }

    pub fn maybe_time(&mut self) -> DecodeResult<Option<Time>> {
        match self.int()? {
            NONE => Ok(None),
            micros => instant(micros).map(Some),
        }
    }

    pub fn short(&mut self) -> DecodeResult<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn word(&mut self) -> DecodeResult<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn bytes(&mut self, length: usize) -> DecodeResult<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(truncated_reply)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn text(&mut self, length: usize) -> DecodeResult<&'a str> {
        std::str::from_utf8(self.bytes(length)?)
            .map_err(|_| invalid_reply("a text that is not UTF-8"))
    }

    /// A block behind its length, as its cell (`block.lua` has the layout); length 0 means that
    /// there is none.
    pub fn block(&mut self) -> DecodeResult<Option<Block>> {
        let length = self.word()? as usize;
        if length == 0 {
            return Ok(None);
        }
        let mut cell = ByteReader(self.bytes(length)?);
        let until = cell.time()?;
        let forget = cell.span()?;
        let level = cell.word()?;
        let origin = origin(cell.byte()?)?;
        let shadow = cell.flag()?;
        let note = cell.rest_as_note()?;
        Ok(Some(Block { until, origin, shadow, level, forget, note }))
    }

    /// The note in all bytes that are left; `encode_note` has the layout.
    fn rest_as_note(&mut self) -> DecodeResult<BlockNote> {
        if self.is_empty() {
            return Ok(BlockNote::default());
        }
        let status = Some(self.short()?).filter(|status| *status > 0);
        let reason = self.maybe_text()?;
        let message = self.maybe_text()?;
        self.finish()?;
        Ok(BlockNote { reason, status, message })
    }

    fn span(&mut self) -> DecodeResult<Span> {
        let micros = self.int()?;
        let span = Span::from_micros(micros);
        if span.micros() == micros {
            Ok(span)
        } else {
            Err(invalid_reply(format!("{micros}, which is not a valid span")))
        }
    }

    /// A text behind its length plus one; length 0 means that there is none.
    pub fn maybe_text(&mut self) -> DecodeResult<Option<Arc<str>>> {
        match self.word()?.checked_sub(1) {
            Some(length) => self.text(length as usize).map(|text| Some(text.into())),
            None => Ok(None),
        }
    }

    fn array<const N: usize>(&mut self) -> DecodeResult<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(truncated_reply)?;
        self.0 = rest;
        Ok(*array)
    }
}

pub(super) fn origin(number: u8) -> DecodeResult<Origin> {
    let origin = ORIGINS.get(usize::from(number)).copied();
    origin.ok_or_else(|| invalid_reply(format!("the unknown origin {number}")))
}

/// The error for bytes that cannot be a reply; `what` completes "the script answered ...".
pub(super) fn invalid_reply(what: impl std::fmt::Display) -> StoreError {
    StoreError::corrupt(format!("the script answered {what}"))
}

fn truncated_reply() -> StoreError {
    invalid_reply("too few bytes")
}

fn instant(micros: i64) -> DecodeResult<Time> {
    let time = Time::from_micros(micros);
    if time.micros() == micros {
        Ok(time)
    } else {
        Err(invalid_reply(format!("{micros}, which is not a valid instant")))
    }
}
