//! Encodes blocks, settled-markers and references.

use std::sync::Arc;

use super::wire::{Reader, Writer};
use super::{CodecError, Fields};
use crate::batch::RowSettlement;
use crate::cell::block::{BlockNote, Origin};
use crate::cell::{Block, Reference, SettledMarker};
use crate::digest::Key;
use crate::time::Time;

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
        let note = BlockNote {
            status: read_if(flags, STATUS, || from.small("status"))?,
            reason: read_if(flags, REASON, || from.text("reason").map(Arc::from))?,
            message: read_if(flags, MESSAGE, || from.text("message").map(Arc::from))?,
        };
        let shadow = flags & SHADOW != 0;
        Ok(Self { until, origin: origin_of(flags), shadow, level, forget, note })
    }
}

fn note_flags(note: &BlockNote) -> u8 {
    flag(note.status.is_some(), STATUS)
        | flag(note.reason.is_some(), REASON)
        | flag(note.message.is_some(), MESSAGE)
}

impl Fields for SettledMarker {
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

fn write_row(row: &RowSettlement, to: &mut Writer<'_>) {
    let flags = flag(row.started.is_some(), STARTED)
        | flag(row.free.is_some(), FREE)
        | flag(row.blocked_until.is_some(), BLOCKED)
        | flag(row.rule.is_some(), RULE);
    to.byte(flags | row.started.map_or(0, origin_number));
    to.byte(row.ticket_index);
    to.write_signed(row.charged);
    row.free.into_iter().for_each(|free| to.write_signed(free));
    row.blocked_until.into_iter().for_each(|until| to.time(until));
    row.rule.into_iter().for_each(|rule| to.byte(rule));
}

fn read_row(from: &mut Reader<'_>) -> Result<RowSettlement, CodecError> {
    let flags = from.flags("row", ORIGIN | STARTED | FREE | BLOCKED | RULE)?;
    // An origin without a started block would be a second encoding of the same row.
    if flags & STARTED == 0 && flags & ORIGIN != 0 {
        return Err(CodecError::Flags { field: "row", found: flags });
    }
    Ok(RowSettlement {
        ticket_index: from.byte()?,
        charged: from.read_signed()?,
        free: read_if(flags, FREE, || from.read_signed())?,
        blocked_until: read_if(flags, BLOCKED, || from.time("blocked_until"))?,
        started: (flags & STARTED != 0).then(|| origin_of(flags)),
        rule: read_if(flags, RULE, || from.byte())?,
    })
}

impl Fields for Reference {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.expires);
        to.bytes(&self.owner.to_bytes());
        to.count(self.instants.len());
        self.instants.iter().for_each(|instant| write_instant(*instant, to));
        to.bytes(&self.ticket);
        // The status plus one, so that zero means not settled.
        to.number(self.settled.map_or(0, |status| u64::from(status) + 1));
        to.count(self.credited.len());
        self.credited.iter().for_each(|event| to.bytes(event.as_bytes()));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let expires = from.time("expires")?;
        let owner = if from.version < 2 { NO_OWNER } else { read_key(from)? };
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

/// The owner of references from version 1 of the encoding, which had none. No check has this key,
/// so a settle does not update such a reference.
const NO_OWNER: Key = Key::from_bytes([0; 16]);

fn read_key(from: &mut Reader<'_>) -> Result<Key, CodecError> {
    let bytes = from.bytes()?.try_into().map_err(|_| CodecError::Range { field: "owner" })?;
    Ok(Key::from_bytes(bytes))
}

/// The instant plus one, so that zero means none.
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
fn read_if<T>(
    flags: u8,
    mask: u8,
    read: impl FnOnce() -> Result<T, CodecError>,
) -> Result<Option<T>, CodecError> {
    if flags & mask == 0 { Ok(None) } else { read().map(Some) }
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

/// The two low bits of the flags of a block, and of a row of a settled-marker, are an origin.
const ORIGIN: u8 = 0b11;

const SHADOW: u8 = 1 << 2;
const STATUS: u8 = 1 << 3;
const REASON: u8 = 1 << 4;
const MESSAGE: u8 = 1 << 5;

const STARTED: u8 = 1 << 2;
const FREE: u8 = 1 << 3;
const BLOCKED: u8 = 1 << 4;
const RULE: u8 = 1 << 5;
