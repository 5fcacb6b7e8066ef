//! Records under attack: processes killed at random, a disk that fills, a disk that fails to sync,
//! and a second process.
//!
//! The test starts itself again as the process that suffers; `CATRACA_ROLE` tells that one what to
//! do. `CATRACA_KILLS` sets how often one is killed (200; a deep run takes 1,000), `CATRACA_SEED`
//! when. Must not leave a process or a mount behind.

#![expect(clippy::unwrap_used, reason = "a test with a main of its own")]

#[path = "faults/child.rs"]
mod child;
#[path = "faults/engine.rs"]
mod engine;
#[path = "faults/full.rs"]
mod full;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/helpers.rs"]
mod helpers;
#[path = "faults/second.rs"]
mod second;
#[path = "faults/sync.rs"]
mod sync;

fn main() {
    if let Ok(role) = std::env::var("CATRACA_ROLE") {
        return child::play(&role);
    }
    let tests: [(&str, fn()); 4] = [
        ("a_second_process_is_refused", second::a_second_process_is_refused),
        ("what_was_acknowledged_survives", kill::what_was_acknowledged_survives),
        ("a_full_disk_is_admitted", full::a_full_disk_is_admitted),
        ("a_failed_sync_is_never_acknowledged", sync::a_failed_sync_is_never_acknowledged),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            println!("test {name} ...");
            test();
            println!("test {name} ... ok");
        }
    }
}
