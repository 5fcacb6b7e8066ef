//! What the script relies on: exact division of doubles, the server's clock, TTLs and memory.
//!
//! The rules themselves are compared by the traces.

use catraca::redis::{SCRIPT, ScriptArgs};
use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::batch::{
    BanRow, Batch, CheckBatch, CheckReply, CheckRow, NewReference, Reply, RowVerdict, SettleBatch,
    SettleRow, WatchRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::cell::second_after;
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, EXACT_MAX, Limit, Penalty, WindowTerms};
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;
use catraca_testkit::resp::{RespClient, RespValue};

use super::{OPENING, trace};
use catraca_testkit::redis::RedisServer as Server;

const GRACE: i64 = 60;
const STEP: i64 = 64;
/// Divides each pair of arguments with the script's functions.
const DIVIDE: &str = "
local answers = {}
for index = 1, #ARGV, 2 do
  local numerator, denominator = tonumber(ARGV[index]), tonumber(ARGV[index + 1])
  answers[#answers + 1] = floor(numerator / denominator)
  answers[#answers + 1] = ceil_div(numerator, denominator)
  answers[#answers + 1] = numerator % denominator
end
return answers";

/// Numerators one below, at and above multiples of the denominator, up to 2^53: there a rounded
/// quotient is closest to the next integer.
#[test]
fn division_in_doubles_is_exact_up_to_the_bound() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let mut rng = Rng::new(53);
    let script = format!("{OPENING}{DIVIDE}");
    for _ in 0..40 {
        let pairs: Vec<(i64, i64)> = (0..250).map(|_| pair(&mut rng)).collect();
        let texts: Vec<String> =
            pairs.iter().flat_map(|(a, b)| [a, b]).map(i64::to_string).collect();
        let mut parts: Vec<&[u8]> = vec![b"EVAL", script.as_bytes(), b"0"];
        parts.extend(texts.iter().map(String::as_bytes));
        let right =
            pairs.iter().flat_map(|(a, b)| [a / b, (a + b - 1) / b, a % b]).map(RespValue::Int);
        assert_eq!(trace::command(&mut client, &parts), Ok(RespValue::Array(right.collect())));
    }
}

fn pair(rng: &mut Rng) -> (i64, i64) {
    let shift = rng.within(0, 53);
    let denominator = rng.within(1, EXACT_MAX >> shift);
    let whole = (EXACT_MAX - rng.within(0, denominator)) / denominator;
    let numerator = whole * denominator + rng.within(-1, 1);
    (numerator.clamp(1, EXACT_MAX), denominator)
}

#[test]
fn without_an_instant_the_servers_clock_counts_and_garbage_gets_a_ttl() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let batch =
        CheckBatch { rows: [bucket(1), window(2)].into_iter().collect(), ..CheckBatch::default() };
    let before = clock(&mut client);
    let first = check(&mut client, &sha, &batch, None).unwrap();
    let second = check(&mut client, &sha, &batch, None).unwrap();
    assert!(before <= first.now && first.now <= second.now && second.now <= clock(&mut client));
    assert!(first.passed && second.rows.iter().all(|row| row.verdict == RowVerdict::OverLimit));
    for (row, figures) in batch.rows.iter().zip(&first.rows) {
        let ends = expires(&mut client, &counter(row));
        assert_eq!(ends, dropped_at(figures.full_at));
    }
    let until = second.rows[0].block.as_ref().map(|block| block.until).unwrap();
    let ends = expires(&mut client, &block(&batch.rows[0]));
    assert_eq!(ends, dropped_at(until));
}

/// The TTL of a cell: its expiry, rounded up to a step, plus the grace.
fn dropped_at(at: Time) -> i64 {
    let second = i64::from(second_after(at));
    second - second % STEP + STEP + GRACE
}

/// The script skips setting a TTL that is already right. However often a cell is written, and by
/// whichever part of the script, its TTL must be that of its last state.
#[test]
fn a_cell_that_is_written_again_and_again_has_the_ttl_of_its_last_state() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let bucket = BucketTerms { size: 50, tokens: 1, period: 9_000_000 };
    let window = WindowTerms { limit: 50, span: Span::from_secs(70) };
    let rows = [
        row(1, Limit::Bucket(bucket), None),
        row(2, Limit::Window([window].into_iter().collect()), None),
    ];
    let mut steps = std::collections::BTreeSet::new();
    for number in 0..40 {
        // Both together, and each alone, which the fast path answers.
        for some in [&rows[..], &rows[..1], &rows[1..]] {
            let batch =
                CheckBatch { rows: some.iter().cloned().collect(), ..CheckBatch::default() };
            let reply = check(&mut client, &sha, &batch, None).unwrap();
            for (row, figures) in some.iter().zip(&reply.rows) {
                let ends = expires(&mut client, &counter(row));
                if figures.verdict == RowVerdict::Fits {
                    assert_eq!(ends, dropped_at(figures.full_at), "check {number}");
                    steps.insert(ends);
                }
            }
        }
    }
    assert!(steps.len() > 5, "the bucket's end moves by nine seconds a check: {steps:?}");
}

/// The server deletes every kind of cell, none before it has expired.
#[test]
fn every_kind_of_cell_gets_a_ttl() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let rows = [row(1, fixed(), None), row(2, inflight(), None), bucket(3), window(4)];
    let remember = NewReference {
        key: key(9),
        owner: key(8),
        ticket: Box::new([7]),
        span: Span::from_secs(900),
    };
    let checked = CheckBatch {
        rows: rows.into_iter().collect(),
        new_reference: Some(Box::new(remember)),
        ..CheckBatch::default()
    };
    let now = check(&mut client, &sha, &checked, None).unwrap().now;
    let settle = settle(now);
    trace::apply(&mut client, &sha, &Batch::Settle(settle), None).unwrap();
    let Ok(RespValue::Array(keys)) = trace::command(&mut client, &[b"KEYS", b"*"]) else {
        panic!()
    };
    let mut letters = Vec::new();
    for name in keys {
        let RespValue::Bytes(name) = name else { panic!("{name:?}") };
        let ends = expires(&mut client, &name);
        assert!(ends > now.micros() / 1_000_000 + GRACE, "{} {ends}", name.escape_ascii());
        letters.push(char::from(name[3]));
    }
    letters.sort_unstable();
    assert_eq!(String::from_iter(letters), "bfillmrwx");
}

/// A settle of a ban-only row whose first rule counts a strike, whose second bans, and whose
/// outcomes are watched.
fn settle(now: Time) -> SettleBatch {
    let note = BlockNote::default();
    let penalty = Penalty::without_escalation(Span::from_secs(300));
    let act = BlockProposal::new(penalty, Origin::Ban, false, note);
    let after = Some(Rate { amount: 3, per: Span::from_secs(600) });
    let strike = BanRow { rule: 0, after, proposal: BlockProposal { shadow: true, ..act.clone() } };
    let ban =
        BanRow { rule: 1, after: None, proposal: BlockProposal { shadow: true, ..act.clone() } };
    let above = Percent::from_hundredths(5_000);
    let watch =
        WatchRow { in_part: true, per: Span::from_secs(86_400), above, min: 9, proposal: act };
    let row = SettleRow {
        held: 1,
        bans: [strike, ban].into_iter().collect(),
        watch: Some(Box::new(watch)),
        ..SettleRow::new(key(5), Limit::Unlimited, now)
    };
    let expires = now.after(Span::from_secs(120));
    SettleBatch { marker: key(8), expires, rows: vec![row], reference: None }
}

fn fixed() -> Limit {
    Limit::Fixed(FixedTerms { limit: 5, span: Span::from_secs(200), aligned: false })
}

fn inflight() -> Limit {
    Limit::Inflight(InflightTerms { limit: 5, hold: Span::from_secs(200) })
}

fn key(name: u8) -> Key {
    Key::from_bytes([name; 16])
}

/// covers: B-32
#[test]
fn a_server_without_memory_refuses_the_whole_batch() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let batch =
        CheckBatch { rows: [window(1), bucket(2)].into_iter().collect(), ..CheckBatch::default() };
    let now = Some(Time::from_micros(1_784_000_000_000_000));
    trace::command(&mut client, &[b"CONFIG", b"SET", b"maxmemory", b"1"]).unwrap();
    let refused = check(&mut client, &sha, &batch, now).unwrap_err();
    assert!(refused.contains("OOM"), "{refused}");
    assert_eq!(trace::command(&mut client, &[b"DBSIZE"]), Ok(RespValue::Int(0)));
    let peek = CheckBatch { peek: true, ..batch.clone() };
    assert!(check(&mut client, &sha, &peek, now).unwrap().passed);
    trace::command(&mut client, &[b"CONFIG", b"SET", b"maxmemory", b"0"]).unwrap();
    assert!(check(&mut client, &sha, &batch, now).unwrap().passed);
}

/// Replicas and the append-only file receive only the new entries, not the whole window at each
/// check.
#[test]
fn of_a_long_window_only_the_ends_are_written() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let terms = WindowTerms { limit: 5_000, span: Span::from_secs(60) };
    let limit = Limit::Window([terms].into_iter().collect());
    let row = CheckRow { limit, ..window(1) };
    let batch = CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() };
    let ask = |client: &mut RespClient, milli: i64| {
        let now = Time::from_millis(1_784_000_000_000 + milli);
        assert!(check(client, &sha, &batch, Some(now)).unwrap().passed);
    };
    (0..4_500).for_each(|milli| ask(&mut client, milli));
    trace::command(&mut client, &[b"CONFIG", b"RESETSTAT"]).unwrap();
    (4_500..4_600).for_each(|milli| ask(&mut client, milli));
    let calls = |command: &str| {
        let stats = server.field(&["INFO", "commandstats"], &format!("cmdstat_{command}"));
        stats.is_some_and(|stats| stats.starts_with("calls=100,"))
    };
    assert!(calls("append") && calls("setrange") && !calls("set"));
}

/// 12,000 units in all, of which 2,000 count at a time: expired entries must leave the cell.
#[test]
fn a_long_window_does_not_grow_with_what_has_left_it() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let sha = trace::load(&mut client, SCRIPT).unwrap();
    let terms = WindowTerms { limit: 5_000, span: Span::from_secs(2) };
    let limit = Limit::Window([terms].into_iter().collect());
    let row = CheckRow { limit, ..window(1) };
    let batch = CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() };
    for milli in 0..12_000 {
        let now = Time::from_millis(1_784_000_000_000 + milli);
        let reply = check(&mut client, &sha, &batch, Some(now)).unwrap();
        assert_eq!(reply.rows[0].free, 5_000 - (milli + 1).min(2_000));
    }
    let length = trace::command(&mut client, &[b"STRLEN", &counter(&batch.rows[0])]);
    let Ok(RespValue::Int(length)) = length else { panic!("{length:?}") };
    assert!((4_000..10_000).contains(&length), "{length} bytes");
}

fn check(
    client: &mut RespClient,
    sha: &[u8],
    check: &CheckBatch,
    now: Option<Time>,
) -> Result<CheckReply, String> {
    match trace::apply(client, sha, &Batch::Check(check.clone()), now)? {
        Reply::Check(reply) => Ok(reply),
        other => Err(format!("{other:?}")),
    }
}

/// The names of a row's counter and of its block.
fn names(row: &CheckRow) -> [Vec<u8>; 2] {
    let check = CheckBatch { rows: [row.clone()].into_iter().collect(), ..CheckBatch::default() };
    let call = ScriptArgs::new(trace::TAG, &Batch::Check(check));
    let names: Vec<Vec<u8>> = call.keys().map(<[u8]>::to_vec).collect();
    names.try_into().expect("a counter and a block")
}

fn counter(row: &CheckRow) -> Vec<u8> {
    let [counter, _] = names(row);
    counter
}

fn block(row: &CheckRow) -> Vec<u8> {
    let [_, block] = names(row);
    block
}

fn bucket(name: u8) -> CheckRow {
    let penalty = Some(Penalty::without_escalation(Span::from_secs(90)));
    row(name, Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: 700_000_000 }), penalty)
}

fn window(name: u8) -> CheckRow {
    let terms = WindowTerms { limit: 1, span: Span::from_secs(300) };
    row(name, Limit::Window([terms].into_iter().collect()), None)
}

fn row(name: u8, limit: Limit, penalty: Option<Penalty>) -> CheckRow {
    CheckRow { penalty, ..CheckRow::new(key(name), limit) }
}

fn clock(client: &mut RespClient) -> Time {
    let Ok(RespValue::Array(parts)) = trace::command(client, &[b"TIME"]) else { panic!("no time") };
    let [RespValue::Bytes(seconds), RespValue::Bytes(micros)] = &parts[..] else {
        panic!("{parts:?}")
    };
    let number = |text: &[u8]| String::from_utf8_lossy(text).parse::<i64>().expect("a number");
    Time::from_micros(number(seconds) * 1_000_000 + number(micros))
}

fn expires(client: &mut RespClient, key: &[u8]) -> i64 {
    match trace::command(client, &[b"EXPIRETIME", key]) {
        Ok(RespValue::Int(second)) => second,
        other => panic!("{other:?}"),
    }
}
