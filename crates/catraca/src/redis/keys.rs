//! The names of cells in Redis: `{tag}`, a letter for the kind, the 16 bytes of the key.
//!
//! Only the first braces of a name count, so the bytes of a digest cannot move it to another slot.
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

/// Names under one hash tag, one after the other, all of one length.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The tag in its braces.
    tag: Vec<u8>,
    bytes: Vec<u8>,
}

impl Keys {
    /// No names yet. The tag is ours: a namespace's digest, never a caller's text.
    pub fn new(tag: &[u8]) -> Self {
        Self { tag: [b"{", tag, b"}"].concat(), bytes: Vec::new() }
    }

    /// Adds one name.
    pub fn push(&mut self, kind: Kind, key: Key) {
        self.bytes.extend_from_slice(&self.tag);
        self.bytes.push(kind.letter());
        self.bytes.extend_from_slice(&key.to_bytes());
    }

    /// The names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.tag.len() + 1 + 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_share_the_tag_and_differ_by_kind() {
        let (mut keys, key) = (Keys::new(b"n1"), Key::from_bytes([b'}'; 16]));
        keys.push(Kind::Bucket, key);
        keys.push(Kind::Block, key);
        let names: Vec<&[u8]> = keys.iter().collect();
        assert_eq!(names, [b"{n1}b}}}}}}}}}}}}}}}}", b"{n1}x}}}}}}}}}}}}}}}}"]);
    }
}
