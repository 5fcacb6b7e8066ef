//! The PostgreSQL store on a real server, which the tests start and stop: the store contract,
//! equality with core, concurrent nodes, and failures of the server and the network.
//!
//! The programs are found as in the tests of the records. `CATRACA_POSTGRES_STEPS` and
//! `CATRACA_POSTGRES_ROUNDS` increase the random work.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "postgres/clock.rs"]
mod clock;
#[path = "postgres/clock_jumps.rs"]
mod clock_jumps;
#[path = "postgres/contract.rs"]
mod contract;
#[path = "postgres/deadlocks.rs"]
mod deadlocks;
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
#[path = "postgres/helpers.rs"]
mod helpers;
#[path = "postgres/locks.rs"]
mod locks;
#[path = "postgres/nodes.rs"]
mod nodes;
#[path = "postgres/opening.rs"]
mod opening;
#[path = "postgres/pgbouncer.rs"]
mod pgbouncer;
#[path = "lua/random.rs"]
mod random;
#[path = "postgres/rows.rs"]
mod rows;
#[path = "../../catraca/tests/records/server.rs"]
mod server;
#[path = "postgres/store_status.rs"]
mod store_status;
