//! The resident memory of a process with many active keys, each with a full exact window.
//!
//! A process of its own, because the memory of other tests would count.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use catraca::memory::MemoryOptions;
use catraca::{Catalog, Check, Engine, ManualClock, Span, Time};

/// A million in a deep run.
const KEYS: usize = 5_000;
const KEYS_VARIABLE: &str = "CATRACA_ACTIVE_KEYS";
const LIMIT: i64 = 120;
const BYTES_MAX: usize = 1_024;

/// The resident memory of the process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1_024
}

/// covers: 002-47
#[test]
fn an_active_key_takes_less_than_a_kibibyte_of_resident_memory() {
    let keys = std::env::var(KEYS_VARIABLE).map_or(KEYS, |text| text.parse().unwrap());
    let catalog = Catalog::parse("[policy.ip]\nby = ['ip']\nwindow = '120 per 1m'\n").unwrap();
    let clock = ManualClock::at(Time::from_micros(1_700_000_000_000_000));
    let memory = MemoryOptions { budget_bytes: 4 << 30, ..MemoryOptions::default() };
    let engine = Engine::builder(catalog).clock(clock.clone()).memory(memory).build();
    let address =
        |number: usize| format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
    let before = resident();
    for _ in 0..LIMIT {
        for number in 0..keys {
            let decision = engine.check(&Check::new("ip", [("ip", &*address(number))])).unwrap();
            assert!(decision.allowed && !decision.degraded);
        }
        clock.advance(Span::from_millis(490));
    }
    let bytes = (resident() - before) / keys;
    println!(
        "{keys} active keys with {LIMIT} entries each: {bytes} bytes of resident memory a key"
    );
    let last = engine.check(&Check::new("ip", [("ip", &*address(keys - 1))])).unwrap();
    assert!(!last.allowed, "every key still has its whole window");
    // Three bytes at least for each entry that is stored exactly.
    assert!((3 * LIMIT as usize..BYTES_MAX).contains(&bytes), "{bytes}");
}
