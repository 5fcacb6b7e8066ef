//! Keys of overflow cells, which new keys of a policy share when memory is full.
//!
//! There is one overflow cell per family, kind, shard and part of the shard. Its key is recognized
//! by its own bits, so no set of overflow keys is needed. Callers cannot produce one: their keys
//! are keyed digests.

use catraca_core::digest::Key;

/// The most leading bits of a key that may choose its shard.
pub(super) const SHARD_BITS_MAX: u32 = 16;
/// The bits of the first word that an overflow key derives from its second word: all but the shard
/// bits and the group.
const DERIVED: u64 = u32::MAX as u64;

/// The overflow key of a family, in the shard of `key` and in one part of it.
pub(super) fn overflow_key(key: Key, family: u64, bits: u32, partition: u16) -> Key {
    // The first `bits` bits. The shift cannot fail: `bits` is at most 16.
    let shard_mask = !u64::MAX.checked_shr(bits).unwrap_or(0);
    // The shard bits are those of `key`; the second word identifies the family; the other bits of
    // the first word are derived from the second, which marks the key as an overflow key.
    let second = mix(family ^ FAMILY);
    let first = key.words()[0] & shard_mask | mix(second) & DERIVED;
    let whole = u128::from(first) << 64 | u128::from(second);
    // The number of the part is where other keys have their group.
    Key::from_bytes(whole.to_be_bytes()).in_group(partition)
}

/// The part of the shard that has the overflow cell; `None` for any other key.
pub(super) fn partition_of_overflow_key(key: Key) -> Option<u16> {
    is_overflow_key(key).then(|| key.group())
}

/// Whether a key is an overflow key. An ordinary key is mistaken for one with a chance of 2^-32;
/// its counter is then in an overflow table, which does no harm.
#[inline]
pub(super) fn is_overflow_key(key: Key) -> bool {
    let [first, second] = key.words();
    (first ^ mix(second)) & DERIVED == 0
}

/// Mixes all bits of a number; a bijection, so different families have different keys.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    number ^ number >> 32
}

/// Separates families from other mixed numbers. The bytes are `catraca!` in ASCII.
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
            let one = overflow_key(key(0x1234_5678_9abc_def0, 1), 7, bits, 3);
            let two = overflow_key(key(0x1234_ffff_ffff_ffff, 2), 7, bits, 3);
            assert_eq!(one.shard(bits), key(0x1234_5678_9abc_def0, 1).shard(bits));
            assert_eq!(one, two, "the same shard of {bits} bits");
            assert_eq!(partition_of_overflow_key(one), Some(3));
            assert_ne!(one, overflow_key(key(0x1234_5678_9abc_def0, 1), 8, bits, 3));
            assert_ne!(one, overflow_key(key(0x1234_5678_9abc_def0, 1), 7, bits, 4));
        }
    }

    #[test]
    fn other_shards_have_their_own_and_other_keys_are_not_shared() {
        let [here, there] = [key(0, 1), key(u64::MAX, 1)];
        assert_ne!(overflow_key(here, 7, 9, 0), overflow_key(there, 7, 9, 0));
        assert!((0..10_000).all(|n| !is_overflow_key(key(mix(n), mix(n + 77)))));
    }
}
