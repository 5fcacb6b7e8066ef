//! A notice: what one node publishes about a key, as bytes in the store.
//!
//! A notice has no value of a caller in clear: the key is a digest, and what nodes without shared
//! records attach is encrypted.

use catraca_core::cell::Block;
use catraca_core::codec::Codec;
use catraca_core::digest::Key;
use catraca_core::time::Time;

/// The version of the layout. Notices of another version are skipped.
const VERSION: u8 = 1;
const BLOCKED: u8 = 1;
const FREED: u8 = 2;
const MESSAGE: u8 = 3;
/// Version, kind, instant, key and the length of the block.
const HEADER: usize = 1 + 1 + 8 + 16 + 4;

/// A block that was started or extended, a release or a reset, or another message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// When, by the store's clock as the node estimated it: of two notices about one key the later
    /// one counts.
    pub at: Time,
    pub content: NoticeContent,
    /// Encrypted, for nodes without shared records; else empty.
    pub attachment: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoticeContent {
    /// The block ends by the store's clock.
    Blocked(Key, Block),
    /// An operator released or reset the key.
    Freed(Key),
    /// Only the attachment counts.
    Message,
}

impl Notice {
    /// The key that it is about.
    pub fn key(&self) -> Option<Key> {
        match &self.content {
            NoticeContent::Blocked(key, _) | NoticeContent::Freed(key) => Some(*key),
            NoticeContent::Message => None,
        }
    }

    /// Whether it is about a block that is active at `now`, by the store's clock.
    pub fn is_active_block(&self, now: Time) -> bool {
        matches!(&self.content, NoticeContent::Blocked(_, block) if block.until > now)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut block_bytes = Vec::new();
        let (kind, key) = match &self.content {
            NoticeContent::Blocked(key, block) => {
                block.encode(&mut block_bytes);
                (BLOCKED, *key)
            }
            NoticeContent::Freed(key) => (FREED, *key),
            NoticeContent::Message => (MESSAGE, Key::from_bytes([0; 16])),
        };
        let length = u32::try_from(block_bytes.len()).unwrap_or_default();
        let mut bytes = vec![VERSION, kind];
        bytes.extend(self.at.micros().to_le_bytes());
        bytes.extend(key.to_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(block_bytes);
        bytes.extend(&self.attachment);
        bytes
    }

    /// Decodes a notice; `None` if another program or another version wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        if header[0] != VERSION {
            return None;
        }
        let at = Time::from_micros(i64::from_le_bytes(header[2..10].try_into().ok()?));
        let key = Key::from_bytes(header[10..26].try_into().ok()?);
        let length = u32::from_le_bytes(header[26..30].try_into().ok()?);
        let (block_bytes, attachment) = rest.split_at_checked(length as usize)?;
        let content = match header[1] {
            BLOCKED => NoticeContent::Blocked(key, Block::decode(block_bytes).ok()?),
            FREED => NoticeContent::Freed(key),
            MESSAGE => NoticeContent::Message,
            _ => return None,
        };
        Some(Self { at, content, attachment: attachment.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::block::{BlockNote, Origin};
    use catraca_core::time::Span;

    use super::*;

    #[test]
    fn a_notice_is_read_as_it_was_written_and_noise_is_not() {
        let key = Key::from_bytes([9; 16]);
        let block = Block {
            until: Time::from_micros(5_000_000),
            origin: Origin::Ban,
            shadow: false,
            level: 2,
            forget: Span::from_secs(60),
            note: BlockNote { reason: Some("scan".into()), ..BlockNote::default() },
        };
        let at = Time::from_micros(1_000_000);
        let contents =
            [NoticeContent::Blocked(key, block), NoticeContent::Freed(key), NoticeContent::Message];
        for content in contents {
            let notice = Notice { at, content, attachment: b"sealed".to_vec() };
            let bytes = notice.to_bytes();
            assert!(bytes.len() < 80, "{}", bytes.len());
            for end in 0..HEADER {
                assert_eq!(Notice::from_bytes(&bytes[..end]), None, "cut at {end}");
            }
            let mut other_version = bytes.clone();
            other_version[0] = 9;
            assert_eq!(Notice::from_bytes(&other_version), None);
            assert_eq!(Notice::from_bytes(&bytes), Some(notice));
        }
    }
}
