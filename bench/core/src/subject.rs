//! The one thing every subject can do, and the terms they all share.

use crate::keys::KeyText;

/// Burst granted to every key: more than any case asks of one key, so nothing is denied.
pub const BURST: u32 = 1_000_000_000;

/// Units given back per second, the same for every subject.
pub const REFILL_PER_SECOND: u32 = 1_000_000;

/// Something that decides.
pub trait Subject: Sync {
    /// Decides one hit of `key`; true means admitted.
    fn hit(&self, key: &str) -> bool;

    /// The same by key number. Only a subject that measures what lies *behind* the key's digest
    /// replaces this, so that no other work is timed with it.
    #[inline]
    fn hit_number(&self, number: u64) -> bool {
        self.hit(KeyText::new().of(number))
    }
}
