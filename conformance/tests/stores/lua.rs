//! The Redis script against core's rules, on a real server: every figure of every reply.
//!
//! The server is `CATRACA_REDIS_SERVER`, else `redis-server` on the path. Both sides get the same
//! instant; the server's clock is not used where figures are compared.

mod coverage;
mod damaged_cells;
mod edges;
mod foundations;
mod planted_mistakes;
mod store;
mod trace;

use std::env;
use std::time::Instant;

use catraca::redis::SCRIPT;
use catraca_testkit::redis::RedisServer as Server;

/// The beginning of the script: arithmetic and time.
const OPENING: &str = include_str!("../../../crates/catraca/src/redis/prelude.lua");

/// covers: B-33, B-34, B-37
#[test]
fn the_script_answers_as_core_does() {
    let Some(server) = Server::start() else { return };
    let seed = setting("CATRACA_LUA_SEED", 20_260_101);
    let each = setting("CATRACA_LUA_STEPS", 20_000) as usize;
    println!("at least {each} batches of each kind from seed {seed}");
    let started = Instant::now();
    let seen = trace::compare(&mut server.connect(), SCRIPT, seed, each);
    let seen = seen.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{:?}: {seen:#?}", started.elapsed());
    assert!(seen.rarest().is_some_and(|(_, count)| *count >= each / 400), "{:?}", seen.rarest());
}

/// The script stores a long window in pieces. With tiny pieces nearly every window has several.
#[test]
fn the_script_answers_as_core_does_over_windows_in_many_pieces() {
    let Some(server) = Server::start() else { return };
    let compared = trace::compare(&mut server.connect(), &in_pieces_of(20), 7, 5_000);
    compared.unwrap_or_else(|difference| panic!("{difference}"));
}

/// A number from the environment, or the default.
fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

/// The script with window pieces of this size.
fn in_pieces_of(bytes: usize) -> String {
    changed(SCRIPT, "CHUNK = 1024", &format!("CHUNK = {bytes}"))
}

/// The script with one text replaced.
fn changed(script: &str, from: &str, to: &str) -> String {
    assert_eq!(script.matches(from).count(), 1, "`{from}` must occur exactly once in the script");
    script.replacen(from, to, 1)
}
