//! The script's reply as core writes it.
//!
//! Must not guess: bytes that do not answer the batch are an error.

use catraca_core::batch::{
    Batch, CheckReply, CheckRow, CreditReply, Recalled, Reconciled, Reply, RowReply, RowSettled,
    SettleReply, Standing, Verdict,
};
use catraca_core::time::Time;

use super::reader::{Read, Reader, odd, origin};

const VERDICTS: [Verdict; 4] =
    [Verdict::Fits, Verdict::Blocked, Verdict::TooCostly, Verdict::OverLimit];

/// Stands for a row that fits, of which only what the asker cannot know follows.
const PLAIN: u8 = 4;

/// Stands for no origin and no rule.
const UNTOLD: u8 = u8::MAX;

/// Reads the reply to a batch.
pub fn read(batch: &Batch, bytes: &[u8]) -> Read<Reply> {
    let mut from = Reader::new(bytes);
    let reply = match batch {
        Batch::Check(check) => Reply::Check(check_reply(&mut from, &check.rows)?),
        Batch::Settle(_) => Reply::Settle(settle_reply(&mut from)?),
        Batch::Recall(_) => Reply::Recall(recalled(&mut from)?),
        Batch::Credit(credit) => Reply::Credit(credited(&mut from, credit.rows.len())?),
        Batch::Block(rows) => Reply::Block(many(rows.len(), || standing(&mut from))?),
        Batch::Unblock(keys) => Reply::Unblock(many(keys.len(), || from.flag())?),
        Batch::Reset(_) => Reply::Reset(from.time()?),
        Batch::Reconcile(rows) => Reply::Reconcile(many(rows.len(), || reconciled(&mut from))?),
    };
    from.finish().map(|()| reply)
}

fn many<T, R: FromIterator<T>>(count: usize, mut read: impl FnMut() -> Read<T>) -> Read<R> {
    (0..count).map(|_| read()).collect()
}

fn check_reply(from: &mut Reader<'_>, asked: &[CheckRow]) -> Read<CheckReply> {
    let (now, flags) = (from.time()?, from.byte()?);
    let (passed, remembered) = (flags & 1 != 0, flags & 2 != 0);
    let rows = asked.iter().map(|asked| row_reply(from, asked)).collect::<Read<_>>()?;
    Ok(CheckReply { now, passed, remembered, rows })
}

fn row_reply(from: &mut Reader<'_>, asked: &CheckRow) -> Read<RowReply> {
    let verdict = from.byte()?;
    if verdict == PLAIN {
        return plain_reply(from, asked);
    }
    let verdict = VERDICTS.get(usize::from(verdict)).copied();
    let verdict = verdict.ok_or_else(|| odd("a verdict without a name"))?;
    let (at, charged, limit, free) = (from.time()?, from.int()?, from.int()?, from.int()?);
    let (fits_at, full_at) = (from.maybe_time()?, from.time()?);
    let (until, origin, started) = (from.maybe_time()?, from.origin()?, from.flag()?);
    let note = from.note()?;
    let standing = |until| Box::new(Standing { until, origin, note, changed: started });
    Ok(RowReply {
        verdict,
        at,
        charged,
        limit: Some(limit).filter(|limit| *limit >= 0),
        free: if limit < 0 { i64::MAX } else { free },
        fits_at,
        full_at,
        block: until.map(standing),
        started,
        shared: false,
    })
}

fn plain_reply(from: &mut Reader<'_>, asked: &CheckRow) -> Read<RowReply> {
    Ok(RowReply {
        verdict: Verdict::Fits,
        at: from.time()?,
        charged: asked.held,
        limit: asked.limit.capacity(),
        free: from.int()?,
        fits_at: None,
        full_at: from.time()?,
        block: None,
        started: false,
        shared: false,
    })
}

fn settle_reply(from: &mut Reader<'_>) -> Read<SettleReply> {
    let (now, state) = (from.time()?, from.byte()?);
    match state {
        0 | 1 => Ok(SettleReply::Settled { now, again: state == 1, rows: settled_rows(from)? }),
        2 => Ok(SettleReply::Expired { now }),
        other => Err(odd(format!("a settle in state {other}"))),
    }
}

/// As many as there are: the first settle may have had others.
fn settled_rows(from: &mut Reader<'_>) -> Read<Vec<RowSettled>> {
    let mut rows = Vec::new();
    while !from.is_empty() {
        rows.push(settled_row(from)?);
    }
    Ok(rows)
}

fn settled_row(from: &mut Reader<'_>) -> Read<RowSettled> {
    let (place, counts) = (from.byte()?, from.flag()?);
    let (charged, free, blocked_until) = (from.int()?, from.int()?, from.maybe_time()?);
    let (started, rule) = (from.byte()?, from.byte()?);
    Ok(RowSettled {
        place,
        charged,
        free: counts.then_some(free),
        blocked_until,
        started: if started == UNTOLD { None } else { Some(origin(started)?) },
        rule: Some(rule).filter(|rule| *rule != UNTOLD),
    })
}

fn recalled(from: &mut Reader<'_>) -> Read<Option<Recalled>> {
    if from.is_empty() {
        return Ok(None);
    }
    let (settled, rows) = (from.word()?, from.short()?);
    let instants: Vec<Option<Time>> = many(rows.into(), || from.maybe_time())?;
    let length = from.word()? as usize;
    let (ticket, mut credited) = (from.bytes(length)?.into(), Vec::new());
    while !from.is_empty() {
        let length = from.short()?;
        credited.push(from.text(length.into())?.into());
    }
    let status = |settled| u16::try_from(settled).map_err(|_| odd("a status beyond all"));
    let settled = settled.checked_sub(1).map(status).transpose()?;
    Ok(Some(Recalled { ticket, instants, settled, credited }))
}

fn credited(from: &mut Reader<'_>, rows: usize) -> Read<CreditReply> {
    match from.byte()? {
        0 => many(rows, || from.int()).map(CreditReply::Applied),
        1 => Ok(CreditReply::Duplicate),
        2 => Ok(CreditReply::Unknown),
        other => Err(odd(format!("a credit in state {other}"))),
    }
}

fn standing(from: &mut Reader<'_>) -> Read<Standing> {
    let (until, origin, changed) = (from.time()?, from.origin()?, from.flag()?);
    Ok(Standing { until, origin, note: from.note()?, changed })
}

fn reconciled(from: &mut Reader<'_>) -> Read<Reconciled> {
    Ok(Reconciled { before: from.int()?, after: from.int()? })
}
