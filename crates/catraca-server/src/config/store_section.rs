//! `[store]`: where counters and locks are.

use catraca::MemoryOptions;
use catraca::core::catalog::read::SHARD_BY;
use catraca::core::located::DefaultValue;
use catraca::store::StoreKind;

use super::section::section;
use super::setting_kind::{FileName, Flag, Millis, Optional, WholeNumber};
use super::urls::StoreUrl;

/// Mebibytes; more than a tebibyte is probably a mistake.
type Mebibytes = WholeNumber<1, 1_048_576>;

section! {
    /// The fields of `[store]`.
    "store" => StoreSection {
        /// where counters and locks are: in this process, or in a [shared store](shared.md), such
        /// as `redis://`, `rediss://` (TLS), `unix:///path`,
        /// `redis+sentinel://HOST:26379,HOST:26379/NAME`, `redis+cluster://HOST:6379,HOST:6379` or
        /// `postgres://USER@HOST/DATABASE`
        url: StoreUrl = DefaultValue::Text("memory:"), Restart;
        /// how many nodes share the store; used only while the store is unavailable
        nodes: WholeNumber<1, 1_000> = DefaultValue::Integer(1), Restart;
        /// a block that this node has seen within the last second denies without asking the store.
        /// The response then names only that block, and no other policy of the gate counts the
        /// attempt
        deny_cache: Flag = DefaultValue::Flag(true), Restart;
        /// the longest that a call waits for the store
        deadline: Optional<Millis<1, 10_000>> =
            DefaultValue::Absent("`50ms` on Redis, `250ms` on PostgreSQL"), Restart;
        /// a file with the password, so that the catalog need not contain it
        password_file: Optional<FileName> = DefaultValue::Absent(""), Restart;
        /// a file with the password for the Sentinels, if they have one of their own
        sentinel_password_file: Optional<FileName> = DefaultValue::Absent(""), Restart;
        /// trusted certificates for `rediss://`, in PEM; for PostgreSQL, use `sslmode` and
        /// `sslrootcert` in the URL
        ca_file: Optional<FileName> = DefaultValue::Absent("the system's"), Restart;
        /// a file with all counters in memory, written periodically and at shutdown
        snapshot: Optional<FileName> =
            DefaultValue::Absent("`catraca.snapshot`, beside the records"), Restart;
        /// the time between snapshots; if the process is killed, the counts since the last one are
        /// lost. A shared store ignores it
        snapshot_interval: Millis<100, 3_600_000> = DefaultValue::Text("10s"), Restart;
        /// memory for counters, in MiB; see
        /// [sizing](serve.md#sizing-memory-and-floods-of-new-keys)
        counter_mib: Mebibytes = DefaultValue::Integer(256), Restart;
        /// memory for blocks, in MiB
        block_mib: Mebibytes = DefaultValue::Integer(64), Restart;
        /// memory for references of checks, in MiB
        reference_mib: Mebibytes = DefaultValue::Integer(64), Restart;
        /// memory for settled tickets, in MiB
        mark_mib: Mebibytes = DefaultValue::Integer(64), Restart;
    }
    also SHARD_BY
}

impl StoreSection {
    /// The memory limits.
    pub fn memory(&self) -> MemoryOptions {
        MemoryOptions {
            budget_bytes: self.counter_mib << 20,
            block_bytes: self.block_mib << 20,
            reference_bytes: self.reference_mib << 20,
            mark_bytes: self.mark_mib << 20,
            ..MemoryOptions::default()
        }
    }

    /// The kind of store; the reader has refused URLs of no kind.
    pub fn kind(&self) -> StoreKind {
        StoreKind::from_url(&self.url).unwrap_or(StoreKind::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declared_memory_is_the_default_of_the_library() {
        let store = crate::config::parse("").unwrap().process.store;
        assert_eq!(store.memory(), MemoryOptions::default());
    }
}
