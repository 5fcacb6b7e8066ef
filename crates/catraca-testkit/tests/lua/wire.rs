//! A check as the script reads it, and the script's answer as core writes it.
//!
//! Must not decide anything: bytes in, bytes out.

use catraca_core::batch::{Check, CheckReply, CheckRow, RowReply, Standing, Verdict};
use catraca_core::cell::Block;
use catraca_core::cell::block::{Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{EXACT_MAX, Limit};
use catraca_core::time::Time;
use catraca_testkit::resp::Value;

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
    let Value::Bytes(bytes) = value else { return Err(format!("no reply: {value:?}")) };
    let mut reader = Reader { bytes: &bytes };
    let (now, passed, mut rows) = (reader.time()?, reader.byte()? == 1, Vec::new());
    while !reader.bytes.is_empty() {
        rows.push(reader.row()?);
    }
    Ok(CheckReply { now, passed, remembered: false, rows: rows.into_iter().collect() })
}

/// What is left of a reply.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn row(&mut self) -> Result<RowReply, String> {
        let verdict = pick(&VERDICTS, self.byte()?)?;
        let (at, charged, limit, free) = (self.time()?, self.int()?, self.int()?, self.int()?);
        let (fits_at, full_at) = (self.maybe_time()?, self.time()?);
        let (until, origin, started) = (self.maybe_time()?, self.byte()?, self.byte()? == 1);
        let (note, origin) = (self.note()?, pick(&ORIGINS, origin)?);
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

    fn note(&mut self) -> Result<Note, String> {
        let length = u16::from_le_bytes(self.take()?);
        let short = || format!("{length} bytes of note in {:?}", self.bytes);
        let (note, rest) = self.bytes.split_at_checked(length.into()).ok_or_else(short)?;
        self.bytes = rest;
        let reason = String::from_utf8_lossy(note);
        let reason = (!reason.is_empty()).then(|| reason.as_ref().into());
        Ok(Note { reason, ..Note::default() })
    }

    fn maybe_time(&mut self) -> Result<Option<Time>, String> {
        match self.int()? {
            -1 => Ok(None),
            micros => in_range(micros).map(Some),
        }
    }

    fn time(&mut self) -> Result<Time, String> {
        in_range(self.int()?)
    }

    fn int(&mut self) -> Result<i64, String> {
        let number = f64::from_le_bytes(self.take()?);
        let exact = number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64;
        if exact { Ok(number as i64) } else { Err(format!("not an exact integer: {number}")) }
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take().map(|[byte]| byte)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let short = || format!("{N} more bytes expected");
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(short)?;
        self.bytes = rest;
        Ok(*taken)
    }
}

fn in_range(micros: i64) -> Result<Time, String> {
    let time = Time::from_micros(micros);
    if time.micros() == micros { Ok(time) } else { Err(format!("no instant: {micros}")) }
}

fn pick<T: Copy>(all: &[T], code: u8) -> Result<T, String> {
    all.get(usize::from(code)).copied().ok_or_else(|| format!("no such code: {code}"))
}
