//! The keys of cells that a policy's newcomers share when memory is full.
//!
//! One cell per family and shard, recognisable by itself, so that nothing has to remember which
//! keys are shared. Must not let a caller choose one: the key of a caller is a keyed digest.

use catraca_core::digest::Key;

/// The top bits of a key's first word choose its shard; never more than these.
pub(super) const SHARD_BITS_MAX: u32 = 16;
/// The bits of the first word that a shared key derives from its second.
const DERIVED: u64 = u64::MAX >> SHARD_BITS_MAX;

/// The key that `key` and its family share in its shard.
pub(super) fn shared_key(key: Key, family: u64, bits: u32) -> Key {
    let shard_mask = !u64::MAX.checked_shr(bits).unwrap_or(0);
    let second = mix(family ^ FAMILY);
    let first = key.words()[0] & shard_mask | mix(second) & DERIVED;
    let whole = u128::from(first) << 64 | u128::from(second);
    Key::from_bytes(whole.to_be_bytes())
}

/// Whether a key is shared; wrong for one of 2^48 others, which does no harm.
#[inline]
pub(super) fn is_shared(key: Key) -> bool {
    let [first, second] = key.words();
    (first ^ mix(second)) & DERIVED == 0
}

/// Spreads a number over all bits, one to one.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    number ^ number >> 32
}

/// Keeps families apart from what else is mixed.
const FAMILY: u64 = 0x6361_7472_6163_6121;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u64, second: u64) -> Key {
        Key::from_bytes((u128::from(first) << 64 | u128::from(second)).to_be_bytes())
    }

    #[test]
    fn a_shared_key_stays_in_the_shard_and_is_one_per_family() {
        for bits in [0, 1, 9, SHARD_BITS_MAX] {
            let one = shared_key(key(0x1234_5678_9abc_def0, 1), 7, bits);
            let two = shared_key(key(0x1234_ffff_ffff_ffff, 2), 7, bits);
            assert_eq!(one.shard(bits), key(0x1234_5678_9abc_def0, 1).shard(bits));
            assert_eq!(one, two, "the same shard of {bits} bits");
            assert!(is_shared(one));
            assert_ne!(one, shared_key(key(0x1234_5678_9abc_def0, 1), 8, bits));
        }
    }

    #[test]
    fn other_shards_have_their_own_and_other_keys_are_not_shared() {
        let [here, there] = [key(0, 1), key(u64::MAX, 1)];
        assert_ne!(shared_key(here, 7, 9), shared_key(there, 7, 9));
        assert!((0..10_000).all(|n| !is_shared(key(mix(n), mix(n + 77)))));
    }
}
