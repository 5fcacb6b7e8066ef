//! The names of keys in Redis: the prefix of the store, a letter for the kind of cell, the 16 bytes
//! of the key's digest.
//!
//! In a cluster the prefix ends with a `{hash tag}`. Redis uses only the first braces of a name, so
//! the bytes of a digest cannot move a key to another slot. No name contains text of a caller.

use catraca_core::cell::CellKind;
use catraca_core::digest::Key;

/// The names of a call's keys, in one buffer: all have the same length.
#[derive(Clone, Debug)]
pub struct RedisKeys<'a> {
    prefix: &'a [u8],
    bytes: Vec<u8>,
}

impl<'a> RedisKeys<'a> {
    /// An empty list. The prefix must not contain text of a caller.
    pub fn new(prefix: &'a [u8]) -> Self {
        Self { prefix, bytes: Vec::new() }
    }

    /// Adds a key.
    pub fn push(&mut self, kind: CellKind, key: Key) {
        self.bytes.extend_from_slice(self.prefix);
        self.bytes.push(kind.letter());
        self.bytes.extend_from_slice(&key.to_bytes());
    }

    /// The names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.prefix.len() + 1 + 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_alike_and_differ_by_kind() {
        let mut keys = RedisKeys::new(b"c{n1}");
        let key = Key::from_bytes([b'}'; 16]);
        keys.push(CellKind::Bucket, key);
        keys.push(CellKind::Block, key);
        let names: Vec<&[u8]> = keys.iter().collect();
        assert_eq!(names, [b"c{n1}b}}}}}}}}}}}}}}}}", b"c{n1}x}}}}}}}}}}}}}}}}"]);
    }
}
