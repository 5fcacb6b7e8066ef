//! Damaged cells: the script answers or reports an error, and always ends.
//!
//! Its answers over damaged cells are not checked.

use std::collections::BTreeMap;

use catraca_core::run::run;
use catraca_testkit::generate::Rng;
use catraca_testkit::reference_cells::ReferenceCells;
use catraca_testkit::resp::{RespClient, RespValue};

use super::{in_pieces_of, trace};
use crate::random::Random;
use catraca_testkit::redis::RedisServer as Server;

const BATCHES: usize = 20_000;
/// A cell is damaged before one in this many batches.
const EVERY: i64 = 3;
/// Doubles that the script never writes, and the largest that it does.
const INVALID: [f64; 6] =
    [f64::INFINITY, f64::NAN, -1.0, 0.5, 9_007_199_254_740_992.0, 9_007_199_254_740_991.0];

#[test]
fn damaged_cells_never_keep_the_script_from_ending() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let mut rng = Rng::new(5);
    let sha = trace::load(&mut client, &in_pieces_of(64)).expect("the script loads");
    let mut random = Random::new(5);
    let mut cells = ReferenceCells::default();
    let mut refused = BTreeMap::<String, usize>::new();
    for _ in 0..BATCHES {
        let (batch, now) = random.step();
        random.learn(&batch, &run(&batch, &mut cells, now));
        if rng.within(1, EVERY) == 1 {
            damage(&mut client, &mut rng);
        }
        if let Err(why) = trace::apply(&mut client, &sha, &batch, Some(now)) {
            *refused.entry(kind(&why)).or_default() += 1;
        }
    }
    println!("{BATCHES} batches over damaged cells; refused: {refused:#?}");
    assert!(refused.keys().any(|why| why.contains("CATRACA damaged cell")), "{refused:?}");
}

/// Overwrites a few bytes of one cell, truncates it, or extends it.
fn damage(client: &mut RespClient, rng: &mut Rng) {
    let Some(key) = pick_key(client, rng) else { return };
    let Ok(RespValue::Bytes(mut cell)) = trace::command(client, &[b"GET", &key]) else { return };
    if cell.is_empty() {
        return;
    }
    let at = rng.within(0, cell.len() as i64 - 1) as usize;
    match rng.within(0, 9) {
        0 => cell.truncate(at),
        1 => cell.extend_from_slice(&[255; 9]),
        2..5 => cell[at] = rng.within(0, 255) as u8,
        _ => {
            let bytes = INVALID[rng.within(0, INVALID.len() as i64 - 1) as usize].to_le_bytes();
            let count = bytes.len().min(cell.len() - at);
            cell[at..at + count].copy_from_slice(&bytes[..count]);
        }
    }
    trace::command(client, &[b"SET", &key, &cell]).expect("the server takes it");
}

/// A key, chosen by the test's own random numbers: the server's would differ from run to run.
fn pick_key(client: &mut RespClient, rng: &mut Rng) -> Option<Vec<u8>> {
    let Ok(RespValue::Array(keys)) = trace::command(client, &[b"KEYS", b"*"]) else { return None };
    let mut keys: Vec<Vec<u8>> = keys
        .into_iter()
        .filter_map(|key| match key {
            RespValue::Bytes(key) => Some(key),
            _ => None,
        })
        .collect();
    keys.sort_unstable();
    let index = rng.within(0, keys.len() as i64 - 1);
    keys.into_iter().nth(usize::try_from(index).ok()?)
}

/// The error without the parts that differ from run to run.
fn kind(why: &str) -> String {
    let words = why.split(" script: ").next().unwrap_or(why);
    words.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
