//! The Redis script against core's rules, on a real server: every figure of every answer.
//!
//! The server is `CATRACA_REDIS_SERVER`, else `redis-server` on the path. Must not sleep, nor use
//! the server's clock where figures are compared: both sides are told the instant.

#[path = "lua/ground.rs"]
mod ground;
#[path = "lua/random.rs"]
mod random;
#[path = "lua/server.rs"]
mod server;
#[path = "lua/trace.rs"]
mod trace;
#[path = "lua/wire.rs"]
mod wire;

use std::env;

use server::Server;

/// What the script opens with: arithmetic and time.
const OPENING: &str = include_str!("../../catraca/src/redis/decide.lua");
/// The script, joined as its first file says.
const SCRIPT: &str = concat!(
    include_str!("../../catraca/src/redis/decide.lua"),
    include_str!("../../catraca/src/redis/bucket.lua"),
    include_str!("../../catraca/src/redis/entry.lua"),
    include_str!("../../catraca/src/redis/window.lua"),
    include_str!("../../catraca/src/redis/block.lua"),
    include_str!("../../catraca/src/redis/check.lua"),
);

/// covers: B-33, B-34, B-37
#[test]
fn the_script_answers_as_core_does() {
    let Some(server) = Server::start() else { return };
    let seed = setting("CATRACA_LUA_SEED", 20_260_101);
    let steps = setting("CATRACA_LUA_STEPS", 20_000) as usize;
    println!("{steps} operations from seed {seed}");
    let seen = trace::compare(&mut server.connect(), SCRIPT, seed, steps);
    let seen = seen.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{seen:?}");
    let all = [seen.charged, seen.started, seen.passed, seen.moved];
    let rarest = all.into_iter().chain(seen.verdicts).min();
    assert!(rarest >= Some(steps / 200), "the trace avoids something: {seen:?}");
}

/// Long windows are kept in pieces. With tiny pieces nearly every window is a long one.
#[test]
fn the_script_answers_as_core_does_over_windows_in_many_pieces() {
    let Some(server) = Server::start() else { return };
    let compared = trace::compare(&mut server.connect(), &in_pieces_of(20), 7, 20_000);
    compared.unwrap_or_else(|difference| panic!("{difference}"));
}

/// One mistake at a time in the script: the comparison must notice every one.
#[test]
fn a_mistake_in_the_script_is_noticed() {
    let Some(server) = Server::start() else { return };
    let (mut client, script) = (server.connect(), in_pieces_of(64));
    let missed = MISTAKES.iter().filter(|(right, wrong)| {
        let script = changed(&script, right, wrong);
        !(0..9).any(|seed| trace::compare(&mut client, &script, seed, 5_000).is_err())
    });
    assert_eq!(missed.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}

const MISTAKES: [(&str, &str); 25] = [
    ("return whole + 1", "return whole"),
    ("return now >= (second", "return now > (second"),
    ("second == NEVER and FOREVER or second", "second"),
    ("return min(at + span, FOREVER)", "return at + span"),
    ("tag == row.tag and rem or 0", "rem"),
    ("gained - whole * row.period", "0"),
    ("row.now = max(now, at)", "row.now = now"),
    ("row.now = max(row.now, row.last)", "row.now = row.now"),
    ("row.now - window.first >= window.span", "row.now - window.first > window.span"),
    ("if free < row.free then", "if free <= row.free then"),
    ("count ~= #row.windows", "count < #row.windows"),
    ("row.dirty = true\n      return", "return"),
    ("if row.dirty then", "if row.charged > 0 then"),
    ("window.cut + excess", "excess"),
    ("encode(row, start) .. body", "encode(row, 0) .. body"),
    ("window.head - start or 0", "window.head or 0"),
    ("at, place, cut = at + gap, next, 0", "at, place, cut = at + gap, next, cut"),
    ("now < block.ends and (shadow", "now <= block.ends and (shadow"),
    ("(shadow or not block.shadow)", "true"),
    ("min(block.level + 1, LEVEL_MAX)", "block.level"),
    ("now >= after(block.ends, block.forget)", "now > after(block.ends, block.forget)"),
    ("elseif block.shadow and not act.shadow then", "elseif false then"),
    ("(row.verdict == FITS or row.shadow)", "row.verdict == FITS"),
    ("row.verdict == FITS and passed and", "row.verdict == FITS and"),
    ("or max(fits_at, ends)", "or fits_at"),
];

/// A number from the environment, or the usual one.
fn setting(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |text| text.parse().expect("a whole number"))
}

/// The script with smaller pieces of windows, so that more windows have several.
fn in_pieces_of(bytes: usize) -> String {
    changed(SCRIPT, "CHUNK = 1024", &format!("CHUNK = {bytes}"))
}

/// A script with one thing changed.
fn changed(script: &str, from: &str, to: &str) -> String {
    assert_eq!(script.matches(from).count(), 1, "`{from}` must stand once in the script");
    script.replacen(from, to, 1)
}
