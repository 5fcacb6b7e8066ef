//! The key of stored state: the 128 bits of a digest.
//!
//! Keys are evenly distributed, so tables and shards use their bits without hashing them again.
//! Must not be made from anything but a digest.

use std::fmt;
use std::ops::RangeInclusive;

/// The key of one piece of stored state.
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

    /// The key as bytes, which sort in the same order as keys.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 16] {
        (((self.0[0] as u128) << 64) | self.0[1] as u128).to_be_bytes()
    }

    /// The key as two words, for tables that use its bits as a hash.
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    /// Its shard of 2^`bits` shards: the top bits. The lower bits are used by the shard's table.
    #[inline]
    pub const fn shard(self, bits: u32) -> usize {
        // With zero bits the shift by 64 overflows: there is one shard.
        match self.0[0].checked_shr(64_u32.saturating_sub(bits)) {
            Some(top) => top as usize,
            None => 0,
        }
    }

    /// The key with a group number in it. In a cluster all keys of a group are on the same server.
    /// Siblings are in the group of their original.
    #[inline]
    #[must_use]
    pub const fn in_group(self, group: u16) -> Self {
        let cleared = self.0[0] & !(0xffff << GROUP_AT);
        Self([cleared | (group as u64) << GROUP_AT, self.0[1]])
    }

    /// The group number; arbitrary bits for a key without a group.
    #[inline]
    pub const fn group(self) -> u16 {
        (self.0[0] >> GROUP_AT) as u16
    }

    /// The key of a sibling: another kind of state that belongs to the same key, in the same shard.
    ///
    /// Different kinds give different keys, and none gives the original. Must be applied to the
    /// original: applying the same kind twice gives the original again.
    #[inline]
    pub const fn with_kind(self, kind: u8) -> Self {
        Self([self.0[0], self.0[1] ^ sibling_bits(kind as u64)])
    }

    /// The range of keys that contains all siblings of this key.
    pub const fn siblings(self) -> RangeInclusive<Self> {
        RangeInclusive::new(Self([self.0[0], 0]), Self([self.0[0], u64::MAX]))
    }

    /// The key of the counter that a tier has of its own, in the same shard and group. Never equal
    /// to a sibling of [`Self::with_kind`]. Must be applied to the original too.
    #[inline]
    pub const fn with_tier(self, tier: u32) -> Self {
        Self([self.0[0], self.0[1] ^ tier_bits(tier)])
    }
}

/// The key in hexadecimal.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// The position of the group in the first word: neither in the top bits nor in the low bits, which
/// distribute keys over the shards and tables of a process.
const GROUP_AT: u32 = 32;

/// The bits by which the keys of tiers' own counters differ from their original: the same for all
/// keys.
#[inline]
pub(crate) const fn tier_bits(tier: u32) -> u64 {
    // The kinds of `with_kind` are below 256.
    sibling_bits(256 + tier as u64)
}

/// The bits by which a sibling differs from its original.
#[inline]
const fn sibling_bits(kind: u64) -> u64 {
    // An odd factor is invertible modulo 2^64: the product is never zero, and differs by kind.
    KIND_MULTIPLIER.wrapping_mul(2 * kind + 1)
}

/// An odd number with well-mixed bits: 2^64 divided by the golden ratio.
const KIND_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
