//! Makes keys and the order in which they are asked for. Must stay far cheaper than a decision:
//! keys are computed, never looked up, so that they add no cache misses of their own.

/// Bytes in every key: `k:` and sixteen hexadecimal digits.
pub const KEY_LEN: usize = 18;

/// A key's text, rebuilt in place for each number. Aligned, because the check that it is text then
/// takes whole words at a time.
#[repr(align(16))]
pub struct KeyText([u8; KEY_LEN]);

impl KeyText {
    /// An empty buffer.
    #[inline]
    pub fn new() -> Self {
        KeyText(*b"k:0000000000000000")
    }

    /// Writes the key of `number` and lends its text.
    #[inline]
    pub fn of(&mut self, number: u64) -> &str {
        let spread = scatter(number);
        self.0[2..10].copy_from_slice(&hex((spread >> 32) as u32));
        self.0[10..].copy_from_slice(&hex(spread as u32));
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Turns consecutive numbers into unrelated ones, without collisions (the finalizer of splitmix64).
#[inline]
pub fn scatter(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Eight digits at once: one nibble per byte, then `a`–`f` shifted past `9`.
#[inline]
fn hex(word: u32) -> [u8; 8] {
    let mut nibbles = u64::from(word);
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF;
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF;
    nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + letters * 0x27).to_be_bytes()
}

/// A stream of key numbers, uniform over `0..keys`.
pub struct Uniform {
    keys: u64,
    state: u64,
}

impl Uniform {
    /// A stream of its own for each `seed`.
    pub fn new(keys: u64, seed: u64) -> Self {
        Uniform { keys, state: scatter(seed) | 1 }
    }

    /// The next key number (xorshift64*, scaled by the high half of a product).
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let draw = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D);
        ((u128::from(draw) * u128::from(self.keys)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_key_is_its_scattered_number_in_hexadecimal() {
        for number in [0, 1, 7, 999_999, u64::MAX] {
            let expected = format!("k:{:016x}", scatter(number));
            assert_eq!(KeyText::new().of(number), expected);
        }
    }

    #[test]
    fn keys_are_distinct() {
        let keys: HashSet<String> = (0..10_000).map(|n| KeyText::new().of(n).to_owned()).collect();
        assert_eq!(keys.len(), 10_000);
    }

    #[test]
    fn the_stream_stays_inside_and_reaches_every_key() {
        let mut stream = Uniform::new(100, 3);
        let seen: HashSet<u64> = (0..5_000).map(|_| stream.next()).collect();
        assert_eq!(seen.len(), 100);
        assert!(seen.iter().all(|n| *n < 100));
    }
}
