//! The bytes of what was done: blocks, settled-markers, references.
//!
//! Must not lose a word of what people are told.

use std::sync::Arc;

use super::wire::{Reader, Writer};
use super::{Codec, CodecError, Fields, Kind};
use crate::batch::RowSettled;
use crate::cell::block::{Note, Origin};
use crate::cell::{Block, Mark, Reference};
use crate::digest::Key;
use crate::time::Time;

impl Codec for Block {
    const KIND: Kind = Kind::Block;
}

impl Fields for Block {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.until);
        to.span(self.forget);
        to.number(u64::from(self.level));
        to.byte(origin_number(self.origin) | flag(self.shadow, SHADOW) | note_flags(&self.note));
        if let Some(status) = self.note.status {
            to.number(u64::from(status));
        }
        for text in [&self.note.reason, &self.note.message].into_iter().flatten() {
            to.bytes(text.as_bytes());
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let until = from.time("until")?;
        let forget = from.span("forget")?;
        let level = from.small("level")?;
        let flags = from.flags("block", ORIGIN | SHADOW | STATUS | REASON | MESSAGE)?;
        let note = Note {
            status: when(flags, STATUS, || from.small("status"))?,
            reason: when(flags, REASON, || from.text("reason").map(Arc::from))?,
            message: when(flags, MESSAGE, || from.text("message").map(Arc::from))?,
        };
        let shadow = flags & SHADOW != 0;
        Ok(Self { until, origin: origin_of(flags), shadow, level, forget, note })
    }
}

fn note_flags(note: &Note) -> u8 {
    flag(note.status.is_some(), STATUS)
        | flag(note.reason.is_some(), REASON)
        | flag(note.message.is_some(), MESSAGE)
}

impl Codec for Mark {
    const KIND: Kind = Kind::Mark;
}

impl Fields for Mark {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.expires);
        to.count(self.rows.len());
        self.rows.iter().for_each(|row| write_row(row, to));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let expires = from.time("expires")?;
        let mut rows = Vec::new();
        for _ in 0..from.count()? {
            rows.push(read_row(from)?);
        }
        Ok(Self { expires, rows })
    }
}

fn write_row(row: &RowSettled, to: &mut Writer<'_>) {
    let flags = flag(row.started.is_some(), STARTED)
        | flag(row.free.is_some(), FREE)
        | flag(row.blocked_until.is_some(), BLOCKED)
        | flag(row.rule.is_some(), RULE);
    to.byte(flags | row.started.map_or(0, origin_number));
    to.byte(row.place);
    to.signed(row.charged);
    row.free.into_iter().for_each(|free| to.signed(free));
    row.blocked_until.into_iter().for_each(|until| to.time(until));
    row.rule.into_iter().for_each(|rule| to.byte(rule));
}

fn read_row(from: &mut Reader<'_>) -> Result<RowSettled, CodecError> {
    let flags = from.flags("row", ORIGIN | STARTED | FREE | BLOCKED | RULE)?;
    if flags & STARTED == 0 && flags & ORIGIN != 0 {
        return Err(CodecError::Flags { field: "row", found: flags });
    }
    Ok(RowSettled {
        place: from.byte()?,
        charged: from.signed()?,
        free: when(flags, FREE, || from.signed())?,
        blocked_until: when(flags, BLOCKED, || from.time("blocked_until"))?,
        started: (flags & STARTED != 0).then(|| origin_of(flags)),
        rule: when(flags, RULE, || from.byte())?,
    })
}

impl Codec for Reference {
    const KIND: Kind = Kind::Reference;
}

impl Fields for Reference {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.expires);
        to.bytes(&self.owner.to_bytes());
        to.count(self.instants.len());
        self.instants.iter().for_each(|instant| write_instant(*instant, to));
        to.bytes(&self.ticket);
        to.number(self.settled.map_or(0, |status| u64::from(status) + 1));
        to.count(self.credited.len());
        self.credited.iter().for_each(|event| to.bytes(event.as_bytes()));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let expires = from.time("expires")?;
        let owner = if from.version < 2 { NOBODY } else { read_key(from)? };
        let mut instants = Vec::new();
        for _ in 0..from.count()? {
            instants.push(read_instant(from)?);
        }
        let ticket = from.bytes()?.into();
        let settled = read_status(from)?;
        let mut credited = Vec::new();
        for _ in 0..from.count()? {
            credited.push(from.text("credited")?.into());
        }
        Ok(Self { expires, owner, instants, ticket, settled, credited })
    }
}

/// The owner of a reference whose bytes name none: it hears of no settle.
const NOBODY: Key = Key::from_bytes([0; 16]);

fn read_key(from: &mut Reader<'_>) -> Result<Key, CodecError> {
    let bytes = from.bytes()?.try_into().map_err(|_| CodecError::Range { field: "owner" })?;
    Ok(Key::from_bytes(bytes))
}

/// One more than the number, so that zero can say that there is none.
fn write_instant(instant: Option<Time>, to: &mut Writer<'_>) {
    to.number(instant.map_or(0, |instant| instant.micros() as u64 + 1));
}

fn read_instant(from: &mut Reader<'_>) -> Result<Option<Time>, CodecError> {
    let number = from.amount("instants")?;
    Ok((number > 0).then(|| Time::from_micros(number - 1)))
}

fn read_status(from: &mut Reader<'_>) -> Result<Option<u16>, CodecError> {
    let Some(status) = from.number()?.checked_sub(1) else { return Ok(None) };
    u16::try_from(status).map(Some).map_err(|_| CodecError::Range { field: "settled" })
}

/// Reads a field if its flag is set.
fn when<T>(
    flags: u8,
    wanted: u8,
    read: impl FnOnce() -> Result<T, CodecError>,
) -> Result<Option<T>, CodecError> {
    if flags & wanted == 0 { Ok(None) } else { read().map(Some) }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

const fn origin_number(origin: Origin) -> u8 {
    match origin {
        Origin::Excess => 0,
        Origin::Ban => 1,
        Origin::Operator => 2,
        Origin::Upstream => 3,
    }
}

const fn origin_of(flags: u8) -> Origin {
    match flags & ORIGIN {
        0 => Origin::Excess,
        1 => Origin::Ban,
        2 => Origin::Operator,
        _ => Origin::Upstream,
    }
}

/// The two low bits of either byte of flags are an origin.
const ORIGIN: u8 = 0b11;

const SHADOW: u8 = 1 << 2;
const STATUS: u8 = 1 << 3;
const REASON: u8 = 1 << 4;
const MESSAGE: u8 = 1 << 5;

const STARTED: u8 = 1 << 2;
const FREE: u8 = 1 << 3;
const BLOCKED: u8 = 1 << 4;
const RULE: u8 = 1 << 5;
