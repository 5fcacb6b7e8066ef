//! What the script of locks answers, as core says it.
//!
//! Must not guess: bytes that do not answer the operation are an error.

use std::sync::Arc;

use catraca_core::lock::op::{Look, Range};
use catraca_core::lock::reply::{
    Acquired, Availability, Busy, Confirmed, Conflict, Ended, Moved, Renewed, State, View, What,
};
use catraca_core::lock::tally::{Counts, Row};
use catraca_core::lock::{
    CalendarName, LEASES_MAX, LeaseKey, LockName, LockOp, LockRefusal, LockReply, LockTold,
    VERSIONS_MAX,
};
use catraca_core::time::Span;

use super::super::reader::{Read, Reader, odd};
use crate::store::StoreError;

const STATES: [State; 5] =
    [State::Held, State::Confirmed, State::Released, State::Expired, State::Forced];

/// Reads the reply to an operation.
pub(super) fn read(op: &LockOp, bytes: &[u8]) -> Read<LockReply> {
    let mut from = Reader::new(bytes);
    let now = from.time()?;
    let told = match op {
        LockOp::Acquire { asked, .. } => {
            LockTold::Acquired(acquired(&mut from, asked.tenant.as_deref(), &asked.kind)?)
        }
        LockOp::Hold(asked) => {
            LockTold::Acquired(acquired(&mut from, asked.tenant.as_deref(), &asked.kind)?)
        }
        LockOp::Miss { .. } | LockOp::Undo(_) => LockTold::Done,
        LockOp::Renew { .. } => LockTold::Renewed(renewed(&mut from)?),
        LockOp::Release(_) | LockOp::Cancel(_) => LockTold::Ended(ended(&mut from)?),
        LockOp::Confirm { .. } => LockTold::Confirmed(confirmed(&mut from)?),
        LockOp::Relocate(_) => LockTold::Moved(moved(&mut from)?),
        LockOp::Look(asked) => LockTold::Seen(seen(&mut from, asked)?),
        LockOp::Show(_) => LockTold::Shown(maybe_view(&mut from)?),
        LockOp::List { .. } => {
            LockTold::Listed { leases: many(&mut from, view)?, next: maybe_number(&mut from)? }
        }
        LockOp::Force { .. } => LockTold::Forced(maybe_view(&mut from)?),
        LockOp::Clear { .. } => LockTold::Cleared {
            ended: from.word()? as usize,
            next: maybe_number(&mut from)?,
            upto: from.int()?,
        },
        LockOp::Sweep => LockTold::Swept { more: from.flag()? },
        LockOp::Tally => LockTold::Tallied(rows(&mut from)?),
    };
    from.finish().map(|()| LockReply { now, told })
}

fn many<'a, T>(from: &mut Reader<'a>, one: fn(&mut Reader<'a>) -> Read<T>) -> Read<Vec<T>> {
    let count = from.word()?;
    (0..count).map(|_| one(from)).collect()
}

fn acquired(from: &mut Reader<'_>, tenant: Option<&str>, kind: &str) -> Read<Acquired> {
    let refused = |refusal| Ok(Acquired::Refused(refusal));
    match from.byte()? {
        0 => view(from).map(|view| Acquired::Granted(Box::new(view))),
        1 => view(from).map(|view| Acquired::Again(Box::new(view))),
        2 => conflict(from).map(Acquired::Conflict),
        3 => {
            let (key, last) = (text(from)?, from.int()?);
            let name = LockName { tenant: tenant.map(Box::from), kind: kind.into(), key };
            Ok(Acquired::Stale { name: Arc::new(name), last })
        }
        4 => refused(LockRefusal::OtherRequest),
        5 => refused(LockRefusal::RequestOver),
        6 => refused(LockRefusal::Full { max: LEASES_MAX }),
        7 => refused(LockRefusal::NoVersion),
        8 => refused(LockRefusal::Full { max: VERSIONS_MAX }),
        9 => Err(careful(span(from)?)),
        other => Err(odd(format!("an acquire in state {other}"))),
    }
}

/// Nothing is granted yet: leases that were lost may be in force.
fn careful(left: Span) -> StoreError {
    StoreError::unavailable(format!(
        "another Redis took over, or it was started anew or emptied: leases that it may have lost \
         run out within {} s",
        left.ceil_secs()
    ))
}

fn renewed(from: &mut Reader<'_>) -> Read<Renewed> {
    match from.byte()? {
        0 => view(from).map(|view| Renewed::Extended(Box::new(view))),
        1 => view(from).map(|view| Renewed::AtMost(Box::new(view))),
        2 => state(from).map(Renewed::Over),
        3 => Ok(Renewed::NotHolder),
        other => Err(odd(format!("a renewal in state {other}"))),
    }
}

fn ended(from: &mut Reader<'_>) -> Read<Ended> {
    const ENDED: [Ended; 4] = [Ended::Released, Ended::Already, Ended::Expired, Ended::NotHolder];
    let number = from.byte()?;
    let ended = ENDED.get(usize::from(number)).copied();
    ended.ok_or_else(|| odd(format!("an end in state {number}")))
}

fn confirmed(from: &mut Reader<'_>) -> Read<Confirmed> {
    match from.byte()? {
        0 => view(from).map(|view| Confirmed::Done(Box::new(view))),
        1 => Ok(Confirmed::Over { state: state(from)?, still_free: from.flag()? }),
        2 => Ok(Confirmed::NotHolder),
        9 => Err(careful(span(from)?)),
        other => Err(odd(format!("a confirmation in state {other}"))),
    }
}

fn moved(from: &mut Reader<'_>) -> Read<Moved> {
    match from.byte()? {
        0 => view(from).map(|view| Moved::Done(Box::new(view))),
        1 => conflict(from).map(Moved::Conflict),
        2 => state(from).map(Moved::Over),
        3 => Ok(Moved::NotHolder),
        9 => Err(careful(span(from)?)),
        other => Err(odd(format!("a move in state {other}"))),
    }
}

fn seen(from: &mut Reader<'_>, asked: &Look) -> Read<Availability> {
    let busy = many(from, |from| {
        let (start, end, state) = (from.time()?, from.time()?, state(from)?);
        Ok(Busy { start, end, state, fence: from.int()?, free_at: from.time()? })
    })?;
    let next = from.maybe_time()?;
    Ok(Availability::of(asked, busy, next))
}

fn rows(from: &mut Reader<'_>) -> Read<Vec<(Row, Counts)>> {
    many(from, |from| {
        let row = row(from)?;
        let mut count = || from.int().map(i64::unsigned_abs);
        let (success, conflicts, active) = (count()?, count()?, count()?);
        let (released, expired, forced, undone) = (count()?, count()?, count()?, count()?);
        Ok((row, Counts { success, conflicts, active, released, expired, forced, undone }))
    })
    .map(|mut rows| {
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        rows
    })
}

fn row(from: &mut Reader<'_>) -> Read<Row> {
    let length = from.word()? as usize;
    let mut row = Reader::new(from.bytes(length)?);
    let (tenant, kind) = (row.maybe_text()?.map(|tenant| Box::from(&*tenant)), text(&mut row)?);
    row.finish().map(|()| (tenant, kind))
}

fn conflict(from: &mut Reader<'_>) -> Read<Box<Conflict>> {
    let (taken, free_at) = (text(from)?, from.time()?);
    Ok(Box::new(Conflict { taken, free_at, holder: view(from)? }))
}

fn maybe_view(from: &mut Reader<'_>) -> Read<Option<Box<View>>> {
    if from.flag()? { view(from).map(|view| Some(Box::new(view))) } else { Ok(None) }
}

/// A lease: its key and its record, of which lease.lua has the layout.
fn view(from: &mut Reader<'_>) -> Read<View> {
    let key = LeaseKey::from_bytes(digest(from)?);
    let length = from.word()? as usize;
    let mut from = Reader::new(from.bytes(length)?);
    let from = &mut from;
    let (state, slot) = (state(from)?, from.flag()?);
    let (fence, version, acquired_at) = (from.int()?, from.int()?, from.time()?);
    let (expires_at, hold_until, ttl) = (from.time()?, from.time()?, span(from)?);
    let (_due, _cool_until) = (from.time()?, from.time()?);
    let (start, end) = (from.time()?, from.time()?);
    let range = Range { start, end, before: span(from)?, after: span(from)? };
    let _tenant = digest(from)?;
    let (_named, _request, _print) = (from.flag()?, digest(from)?, digest(from)?);
    let count = usize::from(from.byte()?);
    if !slot {
        from.bytes(16 * count)?;
    }
    let texts: Vec<Box<str>> = (0..count).map(|_| text(from)).collect::<Read<_>>()?;
    let (tenant, kind) = row(from)?;
    let what = what(tenant, &kind, texts, slot.then_some(range));
    let label = from.maybe_text()?.map(|label| Box::from(&*label));
    let meta = from.maybe_text()?.map(|meta| Box::from(&*meta));
    from.finish()?;
    Ok(View {
        key,
        fence,
        kind,
        what,
        version,
        label,
        meta,
        acquired_at,
        expires_at,
        hold_until,
        ttl,
        state,
    })
}

fn what(tenant: Option<Box<str>>, kind: &str, texts: Vec<Box<str>>, range: Option<Range>) -> What {
    let texts = texts.into_iter();
    match range {
        Some(range) => {
            let name = |calendar| Arc::new(CalendarName { tenant: tenant.clone(), calendar });
            What::Slot(texts.map(name).collect(), range)
        }
        None => {
            let name = |key| Arc::new(LockName { tenant: tenant.clone(), kind: kind.into(), key });
            What::Names(texts.map(name).collect())
        }
    }
}

fn state(from: &mut Reader<'_>) -> Read<State> {
    let number = from.byte()?;
    let state = STATES.get(usize::from(number)).copied();
    state.ok_or_else(|| odd(format!("no such state: {number}")))
}

fn digest(from: &mut Reader<'_>) -> Read<[u8; 16]> {
    let mut digest = [0; 16];
    digest.copy_from_slice(from.bytes(16)?);
    Ok(digest)
}

fn text(from: &mut Reader<'_>) -> Read<Box<str>> {
    let length = from.word()? as usize;
    from.text(length).map(Box::from)
}

fn span(from: &mut Reader<'_>) -> Read<Span> {
    from.int().map(Span::from_micros)
}

fn maybe_number(from: &mut Reader<'_>) -> Read<Option<i64>> {
    from.int().map(|number| Some(number).filter(|number| *number >= 0))
}
