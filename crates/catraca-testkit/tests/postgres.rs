//! The PostgreSQL store on a real server, which the tests start and end: the contract, equality
//! with core, many nodes at once, and what a server or a network can do to it.
//!
//! The programs are found as in the tests of the records. `CATRACA_POSTGRES_STEPS` and
//! `CATRACA_POSTGRES_ROUNDS` give more random work. Must not touch any other server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "postgres/pgbouncer.rs"]
mod pgbouncer;
#[path = "postgres/deadlocks.rs"]
mod deadlocks;
#[path = "postgres/clock.rs"]
mod clock;
#[path = "postgres/contract.rs"]
mod contract;
#[path = "postgres/encrypted.rs"]
mod encrypted;
#[path = "postgres/equality.rs"]
mod equality;
#[path = "postgres/faults.rs"]
mod faults;
#[path = "postgres/full_disk.rs"]
mod full_disk;
#[path = "postgres/held_rows.rs"]
mod held_rows;
#[path = "postgres/clock_jumps.rs"]
mod clock_jumps;
#[path = "postgres/helpers.rs"]
mod helpers;
#[path = "postgres/locks.rs"]
mod locks;
#[path = "postgres/nodes.rs"]
mod nodes;
#[path = "postgres/opening.rs"]
mod opening;
#[path = "lua/random.rs"]
mod random;
#[path = "postgres/rows.rs"]
mod rows;
#[path = "../../catraca/tests/records/server.rs"]
mod server;
#[path = "postgres/store_status.rs"]
mod store_status;
