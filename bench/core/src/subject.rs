//! The one thing every subject can do, and the terms they all share.

use crate::keys::KeyText;

/// Burst granted to every key: more than any case asks of one key, so nothing is denied.
pub const BURST: u32 = 200_000_000;

/// Seconds that one unit takes to come back. Longer than any case runs: a store that drops
/// keys with a full quota must still hold every key when its bytes are counted.
pub const SECONDS_PER_UNIT: u32 = 30;

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
