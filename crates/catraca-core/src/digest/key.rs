//! The key of a cell: 128 bits, spread evenly by the digest that made them.
//!
//! Must not be made from anything but a digest or the bytes of one.

use std::fmt;

/// The name of one piece of stored state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u64; 2]);

impl Key {
    /// A key from the words of a digest.
    #[inline]
    pub(super) const fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// A key from its bytes.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let whole = u128::from_be_bytes(bytes);
        Self([(whole >> 64) as u64, whole as u64])
    }

    /// Its bytes; they sort as keys do.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 16] {
        (((self.0[0] as u128) << 64) | self.0[1] as u128).to_be_bytes()
    }

    /// Its two words, for tables that need no hash of their own.
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    /// Which of 2^`bits` shards it lives in: the top bits, which leaves the lower ones to the
    /// shard's own table.
    #[inline]
    pub const fn shard(self, bits: u32) -> usize {
        match self.0[0].checked_shr(64_u32.saturating_sub(bits)) {
            Some(top) => top as usize,
            None => 0,
        }
    }

    /// The same key in a group: where a store spreads over servers, one of them has all keys of a
    /// group. Siblings are in the group of their original.
    #[inline]
    #[must_use]
    pub const fn in_group(self, group: u16) -> Self {
        let kept = self.0[0] & !(0xffff << GROUP_AT);
        Self([kept | (group as u64) << GROUP_AT, self.0[1]])
    }

    /// The group that it was put in; of a key that was not, any.
    #[inline]
    pub const fn group(self) -> u16 {
        (self.0[0] >> GROUP_AT) as u16
    }

    /// The key of a sibling: another piece of state of the same name, in the same shard.
    ///
    /// Different kinds give different keys, and none gives the key itself. Derive siblings from
    /// the original alone: two derivations of one kind undo each other.
    #[inline]
    pub const fn with_kind(self, kind: u8) -> Self {
        // Odd times odd is odd, hence never zero, and multiplying by odd never merges two kinds.
        let tweak = SPREAD.wrapping_mul(2 * kind as u64 + 1);
        Self([self.0[0], self.0[1] ^ tweak])
    }
}

/// Hexadecimal, as it is found in a store.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// Where a group lies in the first word: neither in the top bits nor in the low ones, which spread
/// keys over the shards and tables of a process.
const GROUP_AT: u32 = 32;

/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
