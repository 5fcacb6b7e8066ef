//! The PostgreSQL store on a real server, which the tests start and end: the contract, equality
//! with core, many nodes at once, and what a server or a network can do to it.
//!
//! The programs are found as in the tests of the records. `CATRACA_POSTGRES_STEPS` and
//! `CATRACA_POSTGRES_ROUNDS` give more random work. Must not touch any other server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "postgres/bouncer.rs"]
mod bouncer;
#[path = "postgres/circle.rs"]
mod circle;
#[path = "postgres/clock.rs"]
mod clock;
#[path = "postgres/contract.rs"]
mod contract;
#[path = "postgres/encrypted.rs"]
mod encrypted;
#[path = "postgres/equal.rs"]
mod equal;
#[path = "postgres/faults.rs"]
mod faults;
#[path = "postgres/full.rs"]
mod full;
#[path = "postgres/holders.rs"]
mod holders;
#[path = "postgres/jumps.rs"]
mod jumps;
#[path = "postgres/kit.rs"]
mod kit;
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
#[path = "postgres/signs.rs"]
mod signs;
