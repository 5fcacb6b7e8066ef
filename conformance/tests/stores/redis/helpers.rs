//! Helpers: a store on a server, and a simple check.

use std::time::Duration;

use catraca::redis::{ConnectError, RedisOptions, RedisStore};
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, CheckBatch, CheckRow, Reply};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit};
use catraca_testkit::blocking_store::BlockingStore;

/// Long enough on a busy machine, for tests that do not measure latency.
pub const LONG_DEADLINE: Duration = Duration::from_secs(5);

/// Connects with a long deadline.
pub fn connect(url: &str) -> BlockingStore<RedisStore> {
    connect_with(url, RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

pub fn connect_with(
    url: &str,
    options: RedisOptions,
) -> Result<BlockingStore<RedisStore>, ConnectError> {
    BlockingStore::start(async || RedisStore::connect(url, options).await)
}

/// A check of one unit on a bucket of this size, which refills one token an hour.
pub fn check(key: u8, size: i64) -> Batch {
    let row = CheckRow::new(
        Key::from_bytes([key; 16]),
        Limit::Bucket(BucketTerms { size, tokens: 1, period: 3_600_000_000 }),
    );
    Batch::Check(CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() })
}

/// Whether a check of one unit of `key` passes.
pub fn passes(store: &impl Store, key: u8) -> Result<bool, StoreError> {
    match store.apply(&check(key, 1_000), When::Store)? {
        Reply::Check(reply) => Ok(reply.passed),
        other => panic!("not the reply of a check: {other:?}"),
    }
}

/// A number from the environment, or the default.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}
