//! Decodes the lock script's replies. The layout of each reply is above its function in the Lua
//! files. Bytes that are not a reply to the operation are an error.

use std::sync::Arc;

use catraca_core::lock::counters::{AttemptCounts, AttemptCountsKey};
use catraca_core::lock::reply::{
    AcquireReply, Availability, Busy, ConfirmReply, Conflict, Lease, LeaseState, LeaseTarget,
    MoveReply, ReleaseReply, RenewReply,
};
use catraca_core::lock::requests::{AvailabilityQuery, TimeRange};
use catraca_core::lock::{
    CalendarName, LEASES_MAX, LeaseKey, LockName, LockOp, LockOutcome, LockRefusal, LockReply,
    VERSIONS_MAX,
};
use catraca_core::time::Span;

use super::super::byte_reader::{ByteReader, DecodeResult, invalid_reply};
use crate::store::StoreError;

/// The states of a lease; the script uses their index as number.
const STATES: [LeaseState; 5] = [
    LeaseState::Held,
    LeaseState::Confirmed,
    LeaseState::Released,
    LeaseState::Expired,
    LeaseState::Forced,
];

pub(super) fn decode_lock_reply(op: &LockOp, bytes: &[u8]) -> DecodeResult<LockReply> {
    let mut from = ByteReader::new(bytes);
    let now = from.time()?;
    let outcome = match op {
        LockOp::Acquire { request, .. } => LockOutcome::Acquired(acquire_reply(
            &mut from,
            request.tenant.as_deref(),
            &request.kind,
        )?),
        LockOp::Hold(request) => LockOutcome::Acquired(acquire_reply(
            &mut from,
            request.tenant.as_deref(),
            &request.kind,
        )?),
        LockOp::CountConflict { .. } | LockOp::Undo(_) => LockOutcome::Done,
        LockOp::Renew { .. } => LockOutcome::Renewed(renew_reply(&mut from)?),
        LockOp::Release(_) | LockOp::Cancel(_) => LockOutcome::Ended(release_reply(&mut from)?),
        LockOp::Confirm { .. } => LockOutcome::Confirmed(confirm_reply(&mut from)?),
        LockOp::Relocate(_) => LockOutcome::Moved(move_reply(&mut from)?),
        LockOp::Availability(query) => LockOutcome::Availability(availability(&mut from, query)?),
        LockOp::Show(_) => LockOutcome::Shown(maybe_lease(&mut from)?),
        LockOp::List { .. } => {
            LockOutcome::Listed { leases: many(&mut from, lease)?, next: maybe_number(&mut from)? }
        }
        LockOp::Force { .. } => LockOutcome::Forced(maybe_lease(&mut from)?),
        LockOp::Clear { .. } => LockOutcome::Cleared {
            ended: from.word()? as usize,
            next: maybe_number(&mut from)?,
            upto: from.int()?,
        },
        LockOp::Sweep => LockOutcome::Swept { more: from.flag()? },
        LockOp::Counters => LockOutcome::Counters(attempt_counts(&mut from)?),
    };
    from.finish().map(|()| LockReply { now, outcome })
}

fn many<'a, T>(
    from: &mut ByteReader<'a>,
    one: fn(&mut ByteReader<'a>) -> DecodeResult<T>,
) -> DecodeResult<Vec<T>> {
    let count = from.word()?;
    (0..count).map(|_| one(from)).collect()
}

fn acquire_reply(
    from: &mut ByteReader<'_>,
    tenant: Option<&str>,
    kind: &str,
) -> DecodeResult<AcquireReply> {
    let refused = |refusal| Ok(AcquireReply::Refused(refusal));
    match from.byte()? {
        0 => lease(from).map(|lease| AcquireReply::Granted(Box::new(lease))),
        1 => lease(from).map(|lease| AcquireReply::Again(Box::new(lease))),
        2 => conflict(from).map(AcquireReply::Conflict),
        3 => {
            let key = text(from)?;
            let last = from.int()?;
            let name = LockName { tenant: tenant.map(Box::from), kind: kind.into(), key };
            Ok(AcquireReply::Stale { name: Arc::new(name), last })
        }
        4 => refused(LockRefusal::RequestIdReused),
        5 => refused(LockRefusal::RequestExpired),
        6 => refused(LockRefusal::Full { max: LEASES_MAX }),
        7 => refused(LockRefusal::NoVersion),
        8 => refused(LockRefusal::Full { max: VERSIONS_MAX }),
        9 => Err(grace_period_error(span(from)?)),
        other => Err(invalid_reply(format!("the unknown acquire state {other}"))),
    }
}

/// The refusal while leases that are missing in Redis may still be in force.
fn grace_period_error(left: Span) -> StoreError {
    StoreError::unavailable(format!(
        "no locks are granted yet: Redis failed over, was restarted or was emptied; leases that it \
         may have lost run out within {} s",
        left.ceil_secs()
    ))
}

fn renew_reply(from: &mut ByteReader<'_>) -> DecodeResult<RenewReply> {
    match from.byte()? {
        0 => lease(from).map(|lease| RenewReply::Extended(Box::new(lease))),
        1 => lease(from).map(|lease| RenewReply::AtMost(Box::new(lease))),
        2 => state(from).map(RenewReply::Over),
        3 => Ok(RenewReply::NotHolder),
        other => Err(invalid_reply(format!("the unknown renewal state {other}"))),
    }
}

fn release_reply(from: &mut ByteReader<'_>) -> DecodeResult<ReleaseReply> {
    const REPLIES: [ReleaseReply; 4] = [
        ReleaseReply::Released,
        ReleaseReply::Already,
        ReleaseReply::Expired,
        ReleaseReply::NotHolder,
    ];
    let number = from.byte()?;
    let reply = REPLIES.get(usize::from(number)).copied();
    reply.ok_or_else(|| invalid_reply(format!("the unknown release state {number}")))
}

fn confirm_reply(from: &mut ByteReader<'_>) -> DecodeResult<ConfirmReply> {
    match from.byte()? {
        0 => lease(from).map(|lease| ConfirmReply::Done(Box::new(lease))),
        1 => Ok(ConfirmReply::Over { state: state(from)?, still_free: from.flag()? }),
        2 => Ok(ConfirmReply::NotHolder),
        9 => Err(grace_period_error(span(from)?)),
        other => Err(invalid_reply(format!("the unknown confirmation state {other}"))),
    }
}

fn move_reply(from: &mut ByteReader<'_>) -> DecodeResult<MoveReply> {
    match from.byte()? {
        0 => lease(from).map(|lease| MoveReply::Done(Box::new(lease))),
        1 => conflict(from).map(MoveReply::Conflict),
        2 => state(from).map(MoveReply::Over),
        3 => Ok(MoveReply::NotHolder),
        9 => Err(grace_period_error(span(from)?)),
        other => Err(invalid_reply(format!("the unknown move state {other}"))),
    }
}

fn availability(
    from: &mut ByteReader<'_>,
    query: &AvailabilityQuery,
) -> DecodeResult<Availability> {
    let busy = many(from, |from| {
        let start = from.time()?;
        let end = from.time()?;
        let state = state(from)?;
        Ok(Busy { start, end, state, fence: from.int()?, free_at: from.time()? })
    })?;
    let next = from.maybe_time()?;
    Ok(Availability::of(query, busy, next))
}

/// The counts of all tenants and kinds, sorted: a Redis hash has no order.
fn attempt_counts(
    from: &mut ByteReader<'_>,
) -> DecodeResult<Vec<(AttemptCountsKey, AttemptCounts)>> {
    many(from, |from| {
        let key = counts_key(from)?;
        let mut count = || from.int().map(i64::unsigned_abs);
        let counts = AttemptCounts {
            success: count()?,
            conflicts: count()?,
            active: count()?,
            released: count()?,
            expired: count()?,
            forced: count()?,
            undone: count()?,
        };
        Ok((key, counts))
    })
    .map(|mut rows| {
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        rows
    })
}

/// Tenant and kind, encoded as one text.
fn counts_key(from: &mut ByteReader<'_>) -> DecodeResult<AttemptCountsKey> {
    let length = from.word()? as usize;
    let mut key = ByteReader::new(from.bytes(length)?);
    let tenant = key.maybe_text()?.map(|tenant| Box::from(&*tenant));
    let kind = text(&mut key)?;
    key.finish().map(|()| (tenant, kind))
}

fn conflict(from: &mut ByteReader<'_>) -> DecodeResult<Box<Conflict>> {
    let taken = text(from)?;
    let free_at = from.time()?;
    Ok(Box::new(Conflict { taken, free_at, holder: lease(from)? }))
}

fn maybe_lease(from: &mut ByteReader<'_>) -> DecodeResult<Option<Box<Lease>>> {
    if from.flag()? { lease(from).map(|lease| Some(Box::new(lease))) } else { Ok(None) }
}

/// A lease: the digest of its proof and its record, whose layout is in `lease.lua`. The fields that
/// only the script needs are read and dropped.
fn lease(from: &mut ByteReader<'_>) -> DecodeResult<Lease> {
    let key = LeaseKey::from_bytes(digest(from)?);
    let length = from.word()? as usize;
    let mut from = ByteReader::new(from.bytes(length)?);
    let from = &mut from;
    let state = state(from)?;
    let is_slot = from.flag()?;
    let fence = from.int()?;
    let version = from.int()?;
    let acquired_at = from.time()?;
    let expires_at = from.time()?;
    let hold_until = from.time()?;
    let ttl = span(from)?;
    let _due = from.time()?;
    let _cool_until = from.time()?;
    // Zeros for a lock.
    let range = TimeRange {
        start: from.time()?,
        end: from.time()?,
        before: span(from)?,
        after: span(from)?,
    };
    let _tenant_digest = digest(from)?;
    let _has_request = from.flag()?;
    let _request_digest = digest(from)?;
    let _content_digest = digest(from)?;
    let count = usize::from(from.byte()?);
    if !is_slot {
        // The digests of the names.
        from.bytes(16 * count)?;
    }
    let texts: Vec<Box<str>> = (0..count).map(|_| text(from)).collect::<DecodeResult<_>>()?;
    let (tenant, kind) = counts_key(from)?;
    let target = target(tenant, &kind, texts, is_slot.then_some(range));
    let label = from.maybe_text()?.map(|label| Box::from(&*label));
    let meta = from.maybe_text()?.map(|meta| Box::from(&*meta));
    from.finish()?;
    Ok(Lease {
        key,
        fence,
        kind,
        target,
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

/// What a lease takes: names of locks, or a range of time in calendars.
fn target(
    tenant: Option<Box<str>>,
    kind: &str,
    texts: Vec<Box<str>>,
    range: Option<TimeRange>,
) -> LeaseTarget {
    let texts = texts.into_iter();
    match range {
        Some(range) => {
            let name = |calendar| Arc::new(CalendarName { tenant: tenant.clone(), calendar });
            LeaseTarget::Slot(texts.map(name).collect(), range)
        }
        None => {
            let name = |key| Arc::new(LockName { tenant: tenant.clone(), kind: kind.into(), key });
            LeaseTarget::Names(texts.map(name).collect())
        }
    }
}

fn state(from: &mut ByteReader<'_>) -> DecodeResult<LeaseState> {
    let number = from.byte()?;
    let state = STATES.get(usize::from(number)).copied();
    state.ok_or_else(|| invalid_reply(format!("the unknown lease state {number}")))
}

fn digest(from: &mut ByteReader<'_>) -> DecodeResult<[u8; 16]> {
    let mut digest = [0; 16];
    digest.copy_from_slice(from.bytes(16)?);
    Ok(digest)
}

fn text(from: &mut ByteReader<'_>) -> DecodeResult<Box<str>> {
    let length = from.word()? as usize;
    from.text(length).map(Box::from)
}

fn span(from: &mut ByteReader<'_>) -> DecodeResult<Span> {
    from.int().map(Span::from_micros)
}

/// A number, or none if it is negative.
fn maybe_number(from: &mut ByteReader<'_>) -> DecodeResult<Option<i64>> {
    from.int().map(|number| Some(number).filter(|number| *number >= 0))
}
