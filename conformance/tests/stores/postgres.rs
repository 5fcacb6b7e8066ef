//! The PostgreSQL store on a real server, which the tests start and stop: the store contract,
//! equality with core, concurrent nodes, and failures of the server and the network.
//!
//! The programs are found as in the tests of the records. `CATRACA_POSTGRES_STEPS` and
//! `CATRACA_POSTGRES_ROUNDS` increase the random work.

mod clock;
mod clock_jumps;
mod contract;
mod deadlocks;
mod encrypted;
mod equality;
mod faults;
mod full_disk;
mod held_rows;
mod helpers;
mod locks;
mod node_messages;
mod nodes;
mod opening;
mod pgbouncer;
mod rows;
mod several_hosts;
mod store_status;
