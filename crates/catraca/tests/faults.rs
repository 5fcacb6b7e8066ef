//! Faults of the records in SQLite: processes killed at random, a full disk, a disk that fails to
//! sync, and a second process.
//!
//! The test starts itself again as the faulty process; `CATRACA_ROLE` selects what that process
//! does. `CATRACA_KILLS` sets the number of kills (default 200; a deep run uses 1,000),
//! `CATRACA_SEED` their times. Must not leave a process or a mount behind.

#![expect(clippy::unwrap_used, reason = "a test with a main of its own")]

#[path = "faults/child.rs"]
mod child;
#[path = "faults/disk_full.rs"]
mod disk_full;
#[path = "faults/engine.rs"]
mod engine;
#[path = "faults/failed_sync.rs"]
mod failed_sync;
#[path = "faults/helpers.rs"]
mod helpers;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/second_process.rs"]
mod second_process;

fn main() {
    if let Ok(role) = std::env::var("CATRACA_ROLE") {
        return child::run_role(&role);
    }
    let tests: [(&str, fn()); 5] = [
        ("a_second_process_is_refused", second_process::a_second_process_is_refused),
        ("what_was_acknowledged_survives", kill::what_was_acknowledged_survives),
        ("a_full_disk_is_admitted", disk_full::a_full_disk_is_admitted),
        ("a_full_disk_does_not_prevent_a_start", disk_full::a_full_disk_does_not_prevent_a_start),
        ("a_failed_sync_is_never_acknowledged", failed_sync::a_failed_sync_is_never_acknowledged),
    ];
    let mut wanted = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // A run of the whole workspace skips tests of other targets by name.
            "--skip" => drop(args.next()),
            name if !name.starts_with('-') => wanted.push(arg),
            _ => {}
        }
    }
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            println!("test {name} ...");
            test();
            println!("test {name} ... ok");
        }
    }
}
