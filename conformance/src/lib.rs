//! Tests of Catraca with the programs that people run beside it: gateways, browsers, generators of
//! clients, shells. Each is a part of `cargo xtask test`.
//!
//! `tests/stores` has the tests of the stores on real servers of Redis and PostgreSQL. The library
//! does not depend on the crates of Catraca: it builds the program and calls it from outside.

pub mod api;
pub mod binary;
pub mod clients;
pub mod demos;
pub mod deploy;
pub mod dict_simulator;
pub mod docs;
pub mod faults;
pub mod gateways;
pub mod go_sdk;
pub mod packages;
mod process_guard;
mod repo;
mod scratch;
pub mod screenshots;
mod server;
pub mod sfcc;
pub mod typescript;

pub use process_guard::ProcessGuard;
pub use repo::Repo;
pub use scratch::Scratch;

/// What a part of the test run gets to work with.
pub struct TestContext<'a> {
    /// The checkout.
    pub repo: &'a Repo,
    /// Ends the processes of the part.
    pub processes: &'a ProcessGuard,
    /// 1, or more in a deep run: multiply the amount of random work by it.
    pub factor: u32,
}

impl TestContext<'_> {
    /// The amount of random work: the value of the environment variable, or the default,
    /// more of it in a deep run.
    pub fn size(&self, name: &str, default: u32) -> String {
        std::env::var(name)
            .unwrap_or_else(|_| (u64::from(default) * u64::from(self.factor)).to_string())
    }
}
