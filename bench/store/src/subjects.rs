//! Who is measured: commands prepared for some keys, as the wire takes them.

use catraca::redis::{SCRIPT, ScriptArgs};
use catraca_core::batch::{Batch, CheckBatch, CheckRow};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, WindowTerms};
use catraca_core::time::Span;

/// The bare scripts.
pub const GCRA: &str = include_str!("scripts/gcra.lua");
/// The common implementation of an exact window, as a sorted set.
pub const SORTED_SET: &str = include_str!("scripts/sorted_set.lua");
/// Ours.
pub const OURS: &str = SCRIPT;

/// The entries of a full window.
pub const ENTRIES: i64 = 50;
const PREFIX: &[u8] = b"catraca:";
/// Far in the future, and as long as an instant is.
const LATEST: &[u8] = b"4000000000000000";

/// One subject: what it is called, what it is compared with, and its commands.
pub struct Subject {
    /// Its name.
    pub name: String,
    /// The subject whose rate it is compared with, if any.
    pub beside: Option<&'static str>,
    /// One command per key.
    pub commands: Vec<Vec<u8>>,
}

/// The digests under which the server knows the scripts.
pub struct ScriptDigests {
    /// Of the bare bucket.
    pub gcra: Vec<u8>,
    /// Of the sorted set.
    pub sorted_set: Vec<u8>,
    /// Of ours.
    pub ours: Vec<u8>,
}

/// Everybody that every round runs.
pub fn all(loaded: &ScriptDigests, keys: usize) -> Vec<Subject> {
    let mut subjects = vec![
        subject("INCR", Some("INCR"), keys, |key| incr(key)),
        subject("bare GCRA script", Some("bare GCRA script"), keys, |key| gcra(loaded, key)),
        subject("catraca, one bucket", Some("bare GCRA script"), keys, |key| {
            ours(loaded, &[bucket(key, 0)])
        }),
        subject("sorted set and block", Some("sorted set and block"), keys, |key| {
            sorted_set(loaded, key, 10_000_000)
        }),
        subject("catraca, one window", Some("sorted set and block"), keys, |key| {
            ours(loaded, &[window(key, 10_000_000)])
        }),
    ];
    for policies in [2, 4, 8] {
        let name = format!("catraca, {policies} buckets");
        subjects.push(subject(&name, Some("catraca, one bucket"), keys, |key| {
            let rows: Vec<CheckRow> = (0..policies).map(|policy| bucket(key, policy)).collect();
            ours(loaded, &rows)
        }));
    }
    subjects
}

/// One bucket each, for the case of many keys.
pub fn many(loaded: &ScriptDigests, keys: usize) -> Subject {
    let name = format!("catraca, one bucket, {keys} keys");
    subject(&name, Some("catraca, one bucket"), keys, |key| ours(loaded, &[bucket(key, 0)]))
}

/// Full windows of an hour, both ways, for the case of memory.
pub fn hours(loaded: &ScriptDigests, keys: usize) -> [Subject; 2] {
    let hour = 3_600_000_000;
    [
        subject("sorted set and block", None, keys, |key| sorted_set(loaded, key, hour)),
        subject("catraca, one window", None, keys, |key| ours(loaded, &[window(key, hour)])),
    ]
}

fn subject(
    name: &str,
    beside: Option<&'static str>,
    keys: usize,
    command: impl Fn(usize) -> Vec<u8>,
) -> Subject {
    Subject { name: name.to_owned(), beside, commands: (0..keys).map(command).collect() }
}

fn incr(key: usize) -> Vec<u8> {
    encode_command(&[b"INCR", &key_name("i", key)])
}

fn gcra(loaded: &ScriptDigests, key: usize) -> Vec<u8> {
    encode_command(&[b"EVALSHA", &loaded.gcra, b"1", &key_name("g", key), b"1000", b"1000000"])
}

fn sorted_set(loaded: &ScriptDigests, key: usize, window: i64) -> Vec<u8> {
    let limit = ENTRIES.to_string();
    let window = window.to_string();
    let set = key_name("z", key);
    let block = key_name("zb", key);
    let args: [&[u8]; 3] = [limit.as_bytes(), window.as_bytes(), b"0"];
    encode_command(&[b"EVALSHA", &loaded.sorted_set, b"2", &set, &block, args[0], args[1], args[2]])
}

fn ours(loaded: &ScriptDigests, rows: &[CheckRow]) -> Vec<u8> {
    let check = CheckBatch { rows: rows.iter().cloned().collect(), ..CheckBatch::default() };
    let batch = Batch::Check(check);
    let call = ScriptArgs::new(PREFIX, &batch);
    let count = call.keys().len().to_string();
    let mut parts: Vec<&[u8]> = vec![b"EVALSHA", &loaded.ours, count.as_bytes()];
    parts.extend(call.keys());
    parts.extend([call.batch(), LATEST]);
    encode_command(&parts)
}

/// A thousand a second, as the bare script has it.
fn bucket(key: usize, policy: u64) -> CheckRow {
    let terms = BucketTerms { size: 1_000, tokens: 1, period: 1_000 };
    row(key, 1 + policy, Limit::Bucket(terms))
}

fn window(key: usize, micros: i64) -> CheckRow {
    let terms = WindowTerms { limit: ENTRIES, span: Span::from_micros(micros) };
    row(key, micros as u64, Limit::Window([terms].into_iter().collect()))
}

fn row(key: usize, family: u64, limit: Limit) -> CheckRow {
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&(key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    digest[8..].copy_from_slice(&family.to_le_bytes());
    CheckRow { family, ..CheckRow::new(Key::from_bytes(digest), limit) }
}

fn key_name(kind: &str, key: usize) -> Vec<u8> {
    format!("bench:{kind}:{key}").into_bytes()
}

fn encode_command(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out
}
