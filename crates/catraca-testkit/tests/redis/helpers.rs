//! A store on a server, and the simplest question to it.

use std::time::Duration;

use catraca::redis::{ConnectError, RedisOptions, RedisStore};
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, CheckBatch, CheckRow, Reply};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit};
use catraca_testkit::blocking_store::BlockingStore;

/// Enough on a machine where others work too: here nothing is said about speed.
pub const CALM: Duration = Duration::from_secs(5);

/// A store with settings that suit most tests.
pub fn connect(url: &str) -> BlockingStore<RedisStore> {
    connect_with(url, RedisOptions { deadline: CALM, ..RedisOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

pub fn connect_with(
    url: &str,
    options: RedisOptions,
) -> Result<BlockingStore<RedisStore>, ConnectError> {
    BlockingStore::start(async || RedisStore::connect(url, options).await)
}

/// A check of one unit on a bucket of so many, which hardly refills.
pub fn check(key: u8, size: i64) -> Batch {
    let row = CheckRow {
        key: Key::from_bytes([key; 16]),
        family: 0,
        limit: Limit::Bucket(BucketTerms { size, tokens: 1, period: 3_600_000_000 }),
        held: 1,
        penalty: None,
        shadow: false,
        count_denied: false,
        lease: 0,
    };
    Batch::Check(CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() })
}

/// Whether a unit of key `key` was there.
pub fn passes(store: &impl Store, key: u8) -> Result<bool, StoreError> {
    match store.apply(&check(key, 1_000), When::Store)? {
        Reply::Check(reply) => Ok(reply.passed),
        other => panic!("not an answer to a check: {other:?}"),
    }
}

/// A number from the environment, or the usual one.
pub fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a whole number"))
}
