//! The watch over the lengths of requests.

#![no_main]

#[path = "../../crates/catraca-server/src/http_wire/framing.rs"]
mod framing;
#[path = "../checks/message_framing.rs"]
mod message_framing;

use framing::{AmbiguousLengths, FramingWatch};

fn read(data: &[u8], part_bytes: usize) -> Option<u64> {
    let found = AmbiguousLengths::default();
    let mut watch = FramingWatch::new(found.clone());
    data.chunks(part_bytes).for_each(|part| watch.push(part));
    (0..=data.len() as u64).find(|index| found.contains(*index))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| message_framing::check(data, read));
