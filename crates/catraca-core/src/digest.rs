//! Keyed digests: the keys of stored state, and pseudonyms of private values.
//!
//! Callers choose the values of attributes, so these never become part of a stored key in clear. A
//! keyed digest of a length-prefixed encoding has a fixed size, no separators that a value could
//! contain, no Redis hash tags that a value could inject, and reveals nothing to a reader of the
//! store without the secret. Must not print the secret.

mod key;
#[cfg(test)]
mod tests;

use std::fmt;

use siphasher::sip128::SipHasher24;

pub use key::Key;
pub(crate) use key::tier_bits;

/// The kind of state that a digest is the key of, so that equal parts of different kinds never give
/// the same key.
///
/// The numbers are part of every stored key: new ones may be added, but none may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Domain {
    /// The state of one limit.
    Cell = 1,
    /// A check that can be found by the caller's reference.
    Ref = 2,
    /// The marker of a settled ticket.
    Ticket = 3,
    /// A block.
    Block = 4,
    /// A lock.
    Lock = 5,
    /// The slots of one calendar.
    Slot = 6,
    /// The marker of a credited event.
    Credit = 7,
    /// A cell that several keys share when the store has no room for their own.
    Overflow = 8,
    /// A group of keys that are on the same server of a cluster.
    Group = 9,
    /// The state of one limit since its policy was last reset for all callers.
    Epoch = 10,
    /// A list entry, a fact, a mode or an epoch that nodes without shared records share.
    Rule = 11,
}

/// The secret of digests, pseudonyms and tickets; each use derives its own key (docs/adr/0004).
///
/// A secret may replace older ones. Pseudonyms and tickets are then made with the newest, and found
/// under all of them. Keys of cells stay under the oldest: under another key no stored block would
/// be found.
#[derive(Clone)]
pub struct Secret {
    newest: [u8; 32],
    /// Newest first.
    older: Vec<[u8; 32]>,
}

impl Secret {
    /// A secret from 32 random bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { newest: bytes, older: Vec::new() }
    }

    /// This secret as the successor of `older`, and of those that `older` replaced.
    #[must_use]
    pub fn with_older(mut self, older: Self) -> Self {
        self.older.push(older.newest);
        self.older.extend(older.older);
        self
    }

    /// A key for one use. It reveals nothing about the secret or about the keys of other uses.
    pub fn derive(&self, usage: &str) -> [u8; 32] {
        blake3::derive_key(usage, &self.newest)
    }

    /// The keys for one use, of this secret and of the older ones, newest first.
    pub fn derive_all(&self, usage: &str) -> Vec<[u8; 32]> {
        let older = self.older.iter().map(|older| blake3::derive_key(usage, older));
        std::iter::once(self.derive(usage)).chain(older).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Makes digests and pseudonyms with the keys of one secret.
#[derive(Clone)]
pub struct Digester {
    /// A hasher with the key of cells; every digest starts as a copy of it.
    keyed: SipHasher24,
    /// A fingerprint of the key of cells.
    cell_key_id: String,
    /// Newest first.
    pseudonym_keys: Vec<PseudonymKey>,
}

/// The key of pseudonyms that is derived from one secret.
#[derive(Clone)]
struct PseudonymKey {
    key: [u8; 32],
    /// A fingerprint of two characters that all pseudonyms of this key contain.
    id: String,
}

impl Digester {
    /// A digester under a secret.
    ///
    /// Keys of cells use SipHash-2-4 with 128 bits: without its key the output cannot be predicted,
    /// and it is several times faster on short texts than the BLAKE3 of pseudonyms.
    pub fn new(secret: &Secret) -> Self {
        // The last one is the key of the oldest secret.
        let cell_key = secret.derive_all("catraca 2026 cell key").pop().unwrap_or_default();
        let mut half = [0; 16];
        half.copy_from_slice(&cell_key[..16]);
        let fingerprint = blake3::derive_key("catraca 2026 cell key id", &cell_key);
        let keyed = SipHasher24::new_with_key(&half);
        let pseudonym_keys = secret.derive_all("catraca 2026 pseudonym");
        Self {
            keyed,
            cell_key_id: hex(&fingerprint[..8]),
            pseudonym_keys: pseudonym_keys.into_iter().map(PseudonymKey::new).collect(),
        }
    }

    /// A fingerprint of the key of cells, 16 characters long. State that was stored with another
    /// fingerprint cannot be found.
    pub fn cell_key_id(&self) -> &str {
        &self.cell_key_id
    }

    /// Starts the digest of a key.
    #[inline]
    pub fn start(&self, domain: Domain) -> KeyHasher {
        KeyHasher::new(self.keyed, domain)
    }

    /// The pseudonym that is stored and shown instead of a private value: `~`, two characters of
    /// the key's fingerprint, and 24 characters of a keyed BLAKE3 of the attribute and the value.
    ///
    /// All taxpayer numbers and addresses can be tried out, so a hash without a secret would reveal
    /// them. The attribute is part of the hash, so that a value cannot be linked across attributes.
    /// The fingerprint shows which secret is needed after a rotation. 96 bits are enough to avoid
    /// collisions between more values than there are people.
    pub fn pseudonym(&self, attribute: &str, value: &str) -> String {
        self.pseudonyms(attribute, value).next().unwrap_or_default()
    }

    /// A value as it is stored: its pseudonym if it is private. So is a value that has the form of
    /// a pseudonym: it would look like the pseudonym of another value.
    pub fn stored_value(&self, attribute: &str, value: &str, is_private: bool) -> String {
        if is_private || is_pseudonym(value) {
            return self.pseudonym(attribute, value);
        }
        value.to_owned()
    }

    /// The pseudonyms of a value under the newest secret and the older ones, newest first: data
    /// that was stored before a rotation is found under one of them.
    pub fn pseudonyms(&self, attribute: &str, value: &str) -> impl Iterator<Item = String> {
        self.pseudonym_keys.iter().map(move |key| key.pseudonym(attribute, value))
    }
}

/// The length of a pseudonym.
pub(crate) const PSEUDONYM_CHARS: usize = 1 + 2 + 24;

/// Whether a text has the form of a pseudonym. A caller may send such a text as a value, so it must
/// never be compared with stored values as it is: the caller would pass for the one whose pseudonym
/// it is.
pub fn is_pseudonym(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.as_bytes().strip_prefix(b"~");
    text.len() == PSEUDONYM_CHARS && digits.is_some_and(|digits| digits.iter().all(is_digit))
}

impl PseudonymKey {
    fn new(key: [u8; 32]) -> Self {
        let fingerprint = blake3::derive_key("catraca 2026 pseudonym key id", &key);
        Self { key, id: hex(&fingerprint[..1]) }
    }

    fn pseudonym(&self, attribute: &str, value: &str) -> String {
        let mut mac = blake3::Hasher::new_keyed(&self.key);
        for part in [attribute.as_bytes(), value.as_bytes()] {
            mac.update(&length(part)).update(part);
        }
        let mut text = String::with_capacity(PSEUDONYM_CHARS);
        text.push('~');
        text.push_str(&self.id);
        push_hex(&mac.finalize().as_bytes()[..12], &mut text);
        text
    }
}

/// Bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.pseudonym_keys.iter().map(|key| key.id.as_str()).collect();
        f.debug_struct("Digester").field("key_ids", &ids).finish_non_exhaustive()
    }
}

/// Collects the parts of a key, and hashes them at the end in one call: feeding the hash function a
/// dozen small parts takes several times as long.
#[derive(Clone)]
pub struct KeyHasher {
    keyed: SipHasher24,
    /// The parts, while they fit; only the first `used` bytes count.
    short: [u8; SHORT],
    used: usize,
    /// All parts, after they did not fit into `short`.
    long: Vec<u8>,
}

/// Large enough for the keys of most policies, which then need no allocation.
const SHORT: usize = 128;

impl KeyHasher {
    #[inline]
    fn new(keyed: SipHasher24, domain: Domain) -> Self {
        let mut short = [0; SHORT];
        short[0] = domain as u8;
        Self { keyed, short, used: 1, long: Vec::new() }
    }

    /// Adds one part.
    #[inline]
    pub fn part(&mut self, part: &[u8]) -> &mut Self {
        let start = self.used + LENGTH_BYTES;
        let end = start + part.len();
        if end > SHORT {
            return self.part_in_long(part);
        }
        self.short[self.used..start].copy_from_slice(&length(part));
        self.short[start..end].copy_from_slice(part);
        self.used = end;
        self
    }

    #[cold]
    fn part_in_long(&mut self, part: &[u8]) -> &mut Self {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.used]);
            // A later, smaller part must not be added to `short` again.
            self.used = SHORT;
        }
        self.long.extend_from_slice(&length(part));
        self.long.extend_from_slice(part);
        self
    }

    /// Adds one part and returns the hasher, to build a prefix that many keys share.
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.part(part);
        self
    }

    /// The digest of the parts so far.
    #[inline]
    pub fn finish(&self) -> Key {
        let digest = self.keyed.hash(self.encoded_parts());
        Key::from_words([digest.h1, digest.h2])
    }

    #[inline]
    fn encoded_parts(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.used] } else { &self.long }
    }
}

/// Shows nothing: with the state one could compute further digests.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher(..)")
    }
}

/// The size of an encoded length.
const LENGTH_BYTES: usize = 4;

/// The length that is written before each part, so that two different lists of parts never have the
/// same encoding. Parts are far below 4 GiB, so the length always fits.
#[inline]
fn length(part: &[u8]) -> [u8; LENGTH_BYTES] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes()
}
