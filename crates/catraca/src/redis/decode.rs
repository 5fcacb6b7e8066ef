//! Decodes the script's reply to a batch. The layout of each reply is at the top of the operation's
//! Lua file. Bytes that are not a reply to the batch are an error.

use catraca_core::batch::{
    Batch, BlockReply, BucketAdjustment, CheckReply, CheckRow, CreditReply, Reply, RowReply,
    RowSettlement, RowVerdict, SettleReply, StoredReference, WindowFigures,
};
use catraca_core::cell::Block;
use catraca_core::time::Time;

use super::byte_reader::{ByteReader, DecodeResult, invalid_reply, origin};

/// The verdicts of a row; the script uses their index as number.
const VERDICTS: [RowVerdict; 4] =
    [RowVerdict::Fits, RowVerdict::Blocked, RowVerdict::TooCostly, RowVerdict::OverLimit];

/// The verdict of a row that fits, in the short form of `fast_path.lua`: the fields that the client
/// knows are left out.
const FITS_SHORT: u8 = 4;

/// The number that means no origin and no ban rule.
const NONE: u8 = u8::MAX;

/// Decodes the reply to a batch.
pub fn decode_reply(batch: &Batch, bytes: &[u8]) -> DecodeResult<Reply> {
    let mut from = ByteReader::new(bytes);
    let reply = match batch {
        Batch::Check(check) => Reply::Check(check_reply(&mut from, &check.rows)?),
        Batch::Settle(_) => Reply::Settle(settle_reply(&mut from)?),
        Batch::Recall(_) => Reply::Recall(stored_reference(&mut from)?),
        Batch::Credit(credit) => Reply::Credit(credit_reply(&mut from, credit.rows.len())?),
        Batch::Block(rows) => Reply::Block(many(rows.len(), || block_reply(&mut from))?),
        Batch::Unblock(rows) => Reply::Unblock(many(rows.len(), || from.flag())?),
        Batch::Reset(_) => Reply::Reset(from.time()?),
        Batch::Reconcile(rows) => {
            Reply::Reconcile(many(rows.len(), || bucket_adjustment(&mut from))?)
        }
    };
    from.finish().map(|()| reply)
}

fn many<T, R: FromIterator<T>>(
    count: usize,
    mut read: impl FnMut() -> DecodeResult<T>,
) -> DecodeResult<R> {
    (0..count).map(|_| read()).collect()
}

fn check_reply(from: &mut ByteReader<'_>, rows: &[CheckRow]) -> DecodeResult<CheckReply> {
    let now = from.time()?;
    let flags = from.byte()?;
    let passed = flags & 1 != 0;
    let remembered = flags & 2 != 0;
    let rows = rows.iter().map(|row| row_reply(from, row)).collect::<DecodeResult<_>>()?;
    Ok(CheckReply { now, passed, remembered, rows })
}

fn row_reply(from: &mut ByteReader<'_>, row: &CheckRow) -> DecodeResult<RowReply> {
    let verdict = from.byte()?;
    if verdict == FITS_SHORT {
        return short_row_reply(from, row);
    }
    let known = VERDICTS.get(usize::from(verdict)).copied();
    let verdict = known.ok_or_else(|| invalid_reply(format!("the unknown verdict {verdict}")))?;
    let at = from.time()?;
    let charged = from.int()?;
    // -1 for a row without a limit.
    let limit = from.int()?;
    let free = from.int()?;
    let fits_at = from.maybe_time()?;
    let full_at = from.time()?;
    let started = from.flag()?;
    let block = from.block()?.map(Box::new);
    let windows = many(row.limit.several_windows(), || window_figures(from))?;
    Ok(RowReply {
        verdict,
        at,
        charged,
        limit: Some(limit).filter(|limit| *limit >= 0),
        free: if limit < 0 { i64::MAX } else { free },
        fits_at,
        full_at,
        block,
        started,
        is_overflow: false,
        windows,
    })
}

fn window_figures(from: &mut ByteReader<'_>) -> DecodeResult<WindowFigures> {
    Ok(WindowFigures { free: from.int()?, fits_at: from.maybe_time()?, full_at: from.time()? })
}

/// The reply to a row that fits, from the short form and what the row itself says.
fn short_row_reply(from: &mut ByteReader<'_>, row: &CheckRow) -> DecodeResult<RowReply> {
    Ok(RowReply {
        verdict: RowVerdict::Fits,
        at: from.time()?,
        charged: row.held,
        limit: row.limit.capacity(),
        free: from.int()?,
        fits_at: None,
        full_at: from.time()?,
        block: None,
        started: false,
        is_overflow: false,
        // The short form is that of rows with one window at most.
        windows: Box::default(),
    })
}

fn settle_reply(from: &mut ByteReader<'_>) -> DecodeResult<SettleReply> {
    let now = from.time()?;
    let state = from.byte()?;
    match state {
        0 => {
            let blocks = started_blocks(from)?;
            let rows = settlements(from)?;
            Ok(SettleReply::Settled { now, already_settled: false, rows, blocks })
        }
        1 => {
            let rows = settlements(from)?;
            Ok(SettleReply::Settled { now, already_settled: true, rows, blocks: Vec::new() })
        }
        2 => Ok(SettleReply::Expired { now }),
        other => Err(invalid_reply(format!("the unknown settle state {other}"))),
    }
}

fn started_blocks(from: &mut ByteReader<'_>) -> DecodeResult<Vec<(u8, Block)>> {
    let count = from.short()?;
    many(count.into(), || {
        let ticket_index = from.byte()?;
        let block = from.block()?.ok_or_else(|| invalid_reply("an empty block"))?;
        Ok((ticket_index, block))
    })
}

/// All rows of the reply. Their number is not that of the batch: a repeated settle returns the rows
/// of the first one, which may have had others.
fn settlements(from: &mut ByteReader<'_>) -> DecodeResult<Vec<RowSettlement>> {
    let mut rows = Vec::new();
    while !from.is_empty() {
        rows.push(settlement(from)?);
    }
    Ok(rows)
}

fn settlement(from: &mut ByteReader<'_>) -> DecodeResult<RowSettlement> {
    let place = from.byte()?;
    let has_free = from.flag()?;
    let charged = from.int()?;
    let free = from.int()?;
    let blocked_until = from.maybe_time()?;
    let started = from.byte()?;
    let rule = from.byte()?;
    Ok(RowSettlement {
        ticket_index: place,
        charged,
        free: has_free.then_some(free),
        blocked_until,
        started: if started == NONE { None } else { Some(origin(started)?) },
        rule: Some(rule).filter(|rule| *rule != NONE),
    })
}

fn stored_reference(from: &mut ByteReader<'_>) -> DecodeResult<Option<StoredReference>> {
    if from.is_empty() {
        return Ok(None);
    }
    // The status of the settle plus one; 0 if there was none.
    let settled = from.word()?;
    let rows = from.short()?;
    let instants: Vec<Option<Time>> = many(rows.into(), || from.maybe_time())?;
    let length = from.word()? as usize;
    let ticket = from.bytes(length)?.into();
    let mut credited = Vec::new();
    while !from.is_empty() {
        let length = from.short()?;
        credited.push(from.text(length.into())?.into());
    }
    let status = |settled| u16::try_from(settled).map_err(|_| invalid_reply("a status too large"));
    let settled = settled.checked_sub(1).map(status).transpose()?;
    Ok(Some(StoredReference { ticket, instants, settled, credited }))
}

fn credit_reply(from: &mut ByteReader<'_>, rows: usize) -> DecodeResult<CreditReply> {
    match from.byte()? {
        0 => many(rows, || from.int()).map(CreditReply::Applied),
        1 => Ok(CreditReply::Duplicate),
        2 => Ok(CreditReply::Unknown),
        other => Err(invalid_reply(format!("the unknown credit state {other}"))),
    }
}

fn block_reply(from: &mut ByteReader<'_>) -> DecodeResult<Option<BlockReply>> {
    let changed = from.flag()?;
    let block = from.block()?;
    Ok(block.map(|block| BlockReply { block, changed }))
}

fn bucket_adjustment(from: &mut ByteReader<'_>) -> DecodeResult<BucketAdjustment> {
    Ok(BucketAdjustment { before: from.int()?, after: from.int()? })
}
