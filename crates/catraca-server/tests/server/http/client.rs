//! The library's client against the real binary.

mod batches;
mod blocks;
mod decisions;
mod dropping_proxy;
mod layer;
mod locks;
mod outages;
mod verify;

use std::time::Duration;

use catraca::client::ClientBuilder;
use catraca::{Check, Client};

use crate::test_server::TestServer;

/// Limits that no test reaches, a short one, one that blocks, and one that is settled.
const CATALOG: &str = "
    [policy.free]
    by    = ['ip']
    fixed = '1000000 per 1d'
    [policy.login]
    by     = ['ip']
    window = '2 per 1m'
    block  = '15m'
    [policy.lookup]
    by     = ['payer']
    bucket = { size = 1000000, refill = '1 per 1h' }
    cost   = { '200' = 1, '404' = 20, default = 0 }
    credit = { payment = { amount = 1, on = ['200'] } }
";

/// Longer than any answer takes: only tests of the deadline use a shorter one.
const PATIENCE: Duration = Duration::from_secs(20);

fn builder(address: &str) -> ClientBuilder {
    Client::builder(&format!("http://{address}")).deadline(PATIENCE)
}

fn client(server: &TestServer) -> Client {
    builder(&server.address).build().unwrap()
}

/// How many units of the gate `free` an address has used, as the server counts.
async fn used(server: &TestServer, ip: &str) -> i64 {
    let peek = client(server).peek(&Check::new("free", [("ip", ip)]).cost(0)).await.unwrap();
    1_000_000 - peek.remaining.unwrap()
}
