//! The names of cells in Redis: what all names of a batch begin with, a letter for the kind, the
//! 16 bytes of the key.
//!
//! In a cluster they begin with a `{tag}`. Only the first braces of a name count, so the bytes of a
//! digest cannot move it to another slot.
//! Must not contain anything a caller sent.

use catraca_core::digest::Key;
use catraca_core::limit::Limit;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A token bucket.
    Bucket,
    /// The units of sliding windows, and strikes.
    Log,
    /// A fixed window.
    Fixed,
    /// Leases in flight.
    Leases,
    /// A block.
    Block,
    /// A watched ratio.
    Watch,
    /// A settled-marker.
    Mark,
    /// A remembered reference.
    Reference,
}

impl Kind {
    /// The kind of a limit's counter, if it counts.
    pub fn of(limit: &Limit) -> Option<Self> {
        match limit {
            Limit::Bucket(_) => Some(Self::Bucket),
            Limit::Window(_) => Some(Self::Log),
            Limit::Fixed(_) => Some(Self::Fixed),
            Limit::Inflight(_) => Some(Self::Leases),
            Limit::Unlimited => None,
        }
    }

    const fn letter(self) -> u8 {
        match self {
            Self::Bucket => b'b',
            Self::Log => b'l',
            Self::Fixed => b'f',
            Self::Leases => b'i',
            Self::Block => b'x',
            Self::Watch => b'w',
            Self::Mark => b'm',
            Self::Reference => b'r',
        }
    }
}

/// Names that begin alike, one after the other, all of one length.
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    prefix: &'a [u8],
    bytes: Vec<u8>,
}

impl<'a> Keys<'a> {
    /// No names yet. What they begin with is ours, never a caller's text.
    pub fn new(prefix: &'a [u8]) -> Self {
        Self { prefix, bytes: Vec::new() }
    }

    /// Adds one name.
    pub fn push(&mut self, kind: Kind, key: Key) {
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
        let (mut keys, key) = (Keys::new(b"c{n1}"), Key::from_bytes([b'}'; 16]));
        keys.push(Kind::Bucket, key);
        keys.push(Kind::Block, key);
        let names: Vec<&[u8]> = keys.iter().collect();
        assert_eq!(names, [b"c{n1}b}}}}}}}}}}}}}}}}", b"c{n1}x}}}}}}}}}}}}}}}}"]);
    }
}
