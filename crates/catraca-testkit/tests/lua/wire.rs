//! A check as the script reads it, and the script's answer as core writes it.
//!
//! Must not decide anything: bytes in, bytes out.

use catraca_core::batch::{Check, CheckReply, CheckRow, RowReply, Standing, Verdict};
use catraca_core::cell::Block;
use catraca_core::cell::block::{Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::time::Time;
use catraca_testkit::resp::Value;

const HEAD: usize = 2;
const PER_ROW: usize = 11;
const ORIGINS: [Origin; 4] = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
const VERDICTS: [Verdict; 4] =
    [Verdict::Fits, Verdict::Blocked, Verdict::TooCostly, Verdict::OverLimit];

/// The name of a counter.
pub fn counter_key(key: Key) -> Vec<u8> {
    [b"{t}c", &key.to_bytes()[..]].concat()
}

/// The name of a block.
pub fn block_key(key: Key) -> Vec<u8> {
    [b"{t}b", &key.to_bytes()[..]].concat()
}

/// `KEYS` of a check.
pub fn keys(check: &Check) -> Vec<Vec<u8>> {
    check.rows.iter().flat_map(|row| [counter_key(row.key), block_key(row.key)]).collect()
}

/// `ARGV[1]` of a check.
pub fn pack(check: &Check) -> Vec<u8> {
    let mut bytes = vec![1, u8::from(check.peek) | u8::from(check.veto) << 1];
    check.rows.iter().for_each(|row| pack_row(row, &mut bytes));
    bytes
}

fn pack_row(row: &CheckRow, bytes: &mut Vec<u8>) {
    let kind = match row.limit {
        Limit::Bucket(_) => 1,
        Limit::Window(_) => 2,
        _ => 0,
    };
    let flags = u8::from(row.shadow)
        | u8::from(row.count_denied) << 1
        | u8::from(row.penalty.is_some()) << 2;
    bytes.extend([kind, flags]);
    put(bytes, &[row.held]);
    if let Some(penalty) = &row.penalty {
        let (first, max) = (penalty.first.micros(), penalty.max.micros());
        put(bytes, &[first, penalty.factor, max, penalty.forget.micros()]);
    }
    pack_terms(&row.limit, bytes);
}

fn pack_terms(limit: &Limit, bytes: &mut Vec<u8>) {
    match limit {
        Limit::Bucket(terms) => {
            put(bytes, &[terms.size, terms.tokens, terms.period]);
            bytes.extend(terms.tag().to_le_bytes());
        }
        Limit::Window(windows) => {
            bytes.push(u8::try_from(windows.len()).expect("few windows"));
            windows.iter().for_each(|window| put(bytes, &[window.limit, window.span.micros()]));
        }
        _ => {}
    }
}

fn put(bytes: &mut Vec<u8>, numbers: &[i64]) {
    numbers.iter().for_each(|number| bytes.extend((*number as f64).to_le_bytes()));
}

/// A block as the script keeps it; of its note only the reason.
pub fn pack_block(block: &Block) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, &[block.until.micros(), block.forget.micros()]);
    bytes.extend(block.level.to_le_bytes());
    let origin = ORIGINS.iter().position(|origin| *origin == block.origin);
    bytes.push(u8::try_from(origin.expect("every origin is listed")).expect("four origins"));
    bytes.push(u8::from(block.shadow));
    bytes.extend(block.note.reason.iter().flat_map(|reason| reason.bytes()));
    bytes
}

/// The reply of a check, or what is wrong with it.
pub fn read(value: Value) -> Result<CheckReply, String> {
    let Value::Array(items) = value else { return Err(format!("not an array: {value:?}")) };
    if items.len() < HEAD || (items.len() - HEAD) % PER_ROW != 0 {
        return Err(format!("{} items: {items:?}", items.len()));
    }
    let (head, rows) = items.split_at(HEAD);
    let rows: Result<_, String> = rows.chunks(PER_ROW).map(read_row).collect();
    Ok(CheckReply { now: time(&head[0])?, passed: int(&head[1])? == 1, remembered: false, rows: rows? })
}

fn read_row(items: &[Value]) -> Result<RowReply, String> {
    let limit = Some(int(&items[3])?).filter(|limit| *limit >= 0);
    let started = int(&items[9])? == 1;
    Ok(RowReply {
        verdict: pick(&VERDICTS, &items[0])?,
        at: time(&items[1])?,
        charged: int(&items[2])?,
        limit,
        free: if limit.is_some() { int(&items[4])? } else { i64::MAX },
        fits_at: if int(&items[5])? < 0 { None } else { Some(time(&items[5])?) },
        full_at: time(&items[6])?,
        block: if int(&items[7])? < 0 { None } else { Some(standing(&items[7..], started)?) },
        started,
        shared: false,
    })
}

fn standing(items: &[Value], changed: bool) -> Result<Box<Standing>, String> {
    let Value::Bytes(note) = &items[3] else { return Err(format!("no note: {items:?}")) };
    let reason = String::from_utf8_lossy(note);
    let reason = (!reason.is_empty()).then(|| reason.as_ref().into());
    let (until, origin) = (time(&items[0])?, pick(&ORIGINS, &items[1])?);
    Ok(Box::new(Standing { until, origin, note: Note { reason, ..Note::default() }, changed }))
}

fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(format!("not a number: {other:?}")),
    }
}

fn time(value: &Value) -> Result<Time, String> {
    let (micros, time) = (int(value)?, Time::from_micros(int(value)?));
    if time.micros() == micros { Ok(time) } else { Err(format!("out of range: {value:?}")) }
}

fn pick<T: Copy>(all: &[T], value: &Value) -> Result<T, String> {
    let index = usize::try_from(int(value)?).ok();
    index.and_then(|index| all.get(index)).copied().ok_or_else(|| format!("no such code: {value:?}"))
}
