//! Encodes tickets: a version, then the fields in a fixed order, texts prefixed by their length.
//!
//! Decoding accepts only what encoding produces: truncated, extended or invalid bytes are refused.

use super::{Ticket, TicketBody, TicketRow};
use crate::digest::Key;
use crate::time::{Span, Time};

const VERSION: u8 = 2;
/// The largest count of a list, or length of a text. Larger numbers cannot come from a ticket.
const LIST_MAX: u64 = 256;

pub fn write_ticket(ticket: &Ticket) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    put_int(&mut out, ticket.expires.micros());
    put_count(&mut out, ticket.instants.len());
    for instant in &ticket.instants {
        // Zero means that the row was not charged, so instants are stored plus one.
        put_int(&mut out, instant.map_or(0, |at| at.micros() + 1));
    }
    out.extend(write_body(&ticket.body));
    out
}

pub fn read_ticket(bytes: &[u8]) -> Option<Ticket> {
    let mut from = TicketReader(bytes);
    let expires = Time::from_micros(from.int()?);
    let count = from.count()?;
    let mut instants = Vec::new();
    for _ in 0..count {
        let micros = from.int()?;
        instants.push((micros != 0).then(|| Time::from_micros(micros - 1)));
    }
    let body = read_body(from.0)?;
    Some(Ticket { body, instants, expires })
}

pub fn write_body(body: &TicketBody) -> Vec<u8> {
    let mut out = Vec::with_capacity(192);
    out.push(VERSION);
    out.extend(body.id.to_le_bytes());
    put_text(&mut out, &body.gate);
    out.push(u8::from(body.unlisted) | u8::from(body.local) << 1);
    put_int(&mut out, body.hold.micros());
    out.push(u8::from(body.reference.is_some()));
    out.extend(body.reference.iter().flat_map(|key| key.to_bytes()));
    put_count(&mut out, body.rows.len());
    body.rows.iter().for_each(|row| put_row(&mut out, row));
    put_pairs(&mut out, &body.attributes);
    out
}

pub fn read_body(bytes: &[u8]) -> Option<TicketBody> {
    let mut from = TicketReader(bytes);
    if from.byte()? != VERSION {
        return None;
    }
    let id = u128::from_le_bytes(from.array()?);
    let gate = from.text()?;
    // Two bits are in use; any other was not written by this program.
    let flags = from.byte().filter(|flags| *flags < 4)?;
    let unlisted = flags & 1 != 0;
    let local = flags & 2 != 0;
    let hold = Span::from_micros(from.int()?);
    let reference = if from.flag()? { Some(Key::from_bytes(from.array()?)) } else { None };
    let count = from.count()?;
    let rows = (0..count).map(|_| from.row()).collect::<Option<Vec<_>>>()?;
    let attributes = from.pairs()?;
    let body = TicketBody { id, gate, unlisted, local, hold, reference, rows, attributes };
    // Bytes after the last field are refused.
    from.0.is_empty().then_some(body)
}

fn put_row(out: &mut Vec<u8>, row: &TicketRow) {
    put_text(out, &row.policy);
    // Earlier versions wrote and accept fewer bits.
    let tier_flags = u8::from(row.tier.is_some()) | u8::from(row.own_counter) << 1;
    out.push(tier_flags | u8::from(row.each) << 2);
    out.extend(row.tier.iter().flat_map(|tier| tier.to_le_bytes()));
    out.extend(row.key.to_bytes());
    put_int(out, row.held);
    out.push(u8::from(row.shadow));
    put_pairs(out, &row.parts);
}

fn put_pairs(out: &mut Vec<u8>, pairs: &[(String, String)]) {
    put_count(out, pairs.len());
    for (name, value) in pairs {
        put_text(out, name);
        put_text(out, value);
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_int(out, count as i64);
}

fn put_int(out: &mut Vec<u8>, int: i64) {
    let mut word = int as u64;
    while word >= 0x80 {
        out.push(word as u8 | 0x80);
        word >>= 7;
    }
    out.push(word as u8);
}

struct TicketReader<'a>(&'a [u8]);

impl TicketReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn int(&mut self) -> Option<i64> {
        let mut word = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            word |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return i64::try_from(word).ok();
            }
        }
        None
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.int()?).ok().filter(|count| *count <= LIST_MAX)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.count()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn pairs(&mut self) -> Option<Vec<(String, String)>> {
        let count = self.count()?;
        (0..count).map(|_| Some((self.text()?, self.text()?))).collect()
    }

    fn row(&mut self) -> Option<TicketRow> {
        let policy = self.text()?;
        // Only a tier can have a counter of its own.
        let flags = self.byte().filter(|flags| *flags < 8 && flags & 3 != 2)?;
        Some(TicketRow {
            policy,
            tier: if flags & 1 != 0 { Some(u32::from_le_bytes(self.array()?)) } else { None },
            own_counter: flags & 2 != 0,
            key: Key::from_bytes(self.array()?),
            held: self.int()?,
            shadow: self.flag()?,
            each: flags & 4 != 0,
            parts: self.pairs()?,
        })
    }
}
