//! The id of a block: made from the key and the instant at which the block started, so that it is
//! the same on every node, and names one block only (docs/adr/0026).

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use catraca_core::digest::Key;
use catraca_core::time::Time;

/// The position and length of the bytes of a key that are part of an id. They are evenly
/// distributed; the first bytes are not, because they may hold the group of a cluster.
const KEY_BYTES: std::ops::Range<usize> = 10..16;
/// The digits of those bytes.
const KEY_DIGITS: usize = 2 * (KEY_BYTES.end - KEY_BYTES.start);

/// Names one block: an extension keeps the id, and a later block of the same key has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    pub(super) since: Time,
    key: u64,
}

impl BlockId {
    /// The id of the block of `key` that started at `since`.
    pub fn new(key: Key, since: impl Into<SystemTime>) -> Self {
        let since = since.into().into();
        let bytes = &key.to_bytes()[KEY_BYTES];
        let key = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self { since, key }
    }

    /// When the block started.
    pub fn since(self) -> SystemTime {
        self.since.into()
    }

    /// A key whose blocks have the ids of this one's key.
    #[cfg(feature = "shared")]
    pub(super) fn to_key(self) -> Key {
        let mut bytes = [0; 16];
        bytes[KEY_BYTES].copy_from_slice(&self.key.to_be_bytes()[2..]);
        Key::from_bytes(bytes)
    }

    /// Whether the block is one of this key.
    pub(super) fn is_of(self, key: Key) -> bool {
        self == Self::new(key, self.since)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}{:0digits$x}", self.since.micros(), self.key, digits = KEY_DIGITS)
    }
}

impl FromStr for BlockId {
    type Err = BlockIdParseError;

    fn from_str(text: &str) -> Result<Self, BlockIdParseError> {
        let split = text.len().checked_sub(KEY_DIGITS).ok_or(BlockIdParseError)?;
        let (since, key) = text.split_at_checked(split).ok_or(BlockIdParseError)?;
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| BlockIdParseError);
        let since = i64::try_from(number(since)?).map_err(|_| BlockIdParseError)?;
        let id = Self { since: Time::from_micros(since), key: number(key)? };
        // One spelling only: no sign, no capitals, no leading zeros.
        if id.to_string() == text { Ok(id) } else { Err(BlockIdParseError) }
    }
}

/// A text that is not the id of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a block")]
pub struct BlockIdParseError;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> Key {
        let mut bytes = [7; 16];
        bytes[15] = last;
        Key::from_bytes(bytes)
    }

    #[cfg(feature = "shared")]
    #[test]
    fn a_key_of_an_id_has_the_same_id() {
        let since = Time::from_micros(1_800_000_000_000_000);
        let id = BlockId::new(Key::from_bytes([7; 16]), since);
        assert_eq!(BlockId::new(id.to_key(), since), id);
    }

    #[test]
    fn an_id_differs_by_key_and_start_and_is_read_back() {
        let id = BlockId::new(key(1), Time::from_micros(1_767_225_600_000_000));
        assert_eq!(id.to_string(), "6474846204000070707070701");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.is_of(key(1)) && !id.is_of(key(2)));
        assert_ne!(id, BlockId::new(key(1), Time::from_micros(1_767_225_600_000_001)));
        let first = BlockId::new(Key::from_bytes([0; 16]), Time::ZERO);
        assert_eq!(first.to_string().parse(), Ok(first));
    }

    #[test]
    fn another_spelling_is_not_an_id() {
        let id = BlockId::new(key(1), Time::from_micros(10)).to_string();
        let wrong =
            ["", "7", "+a070707070701", "0a070707070701", "A070707070701", "é7070707070701"];
        for text in wrong.into_iter().chain([&id[1..], &format!("{id} ")]) {
            assert_eq!(text.parse::<BlockId>(), Err(BlockIdParseError), "{text:?}");
        }
        let too_late = format!("{:x}{}", u64::MAX, &id[1..]);
        assert_eq!(too_late.parse::<BlockId>(), Err(BlockIdParseError));
    }
}
