//! The balances that the DICT answers with.

#![no_main]
// The module of the server has more than the target calls.
#![allow(dead_code)]

#[path = "../checks/dict_states.rs"]
mod check;
#[path = "../../crates/catraca-server/src/http_wire/dict_states.rs"]
mod dict_states;

fn read(xml: &str) -> Result<Vec<(String, i64)>, String> {
    let states = dict_states::read_states(xml)?;
    Ok(states.buckets.into_iter().map(|bucket| (bucket.policy, bucket.available)).collect())
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data, read));
