//! Keyed digests: the fixed-size names of stored state, and pseudonyms for people to read.
//!
//! Texts are chosen by callers, so they never become part of a stored key. A keyed digest of a
//! length-prefixed encoding has no separator to collide with, no hash tag to inject, one size,
//! and says nothing to who holds the store without the secret. Must not keep or print the secret.

mod key;
#[cfg(test)]
mod tests;

use std::fmt;

use siphasher::sip128::SipHasher24;

pub use key::Key;

/// What a digest names, so that equal parts of different things never meet.
///
/// The numbers are part of every stored key: they may be added to, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Domain {
    /// The state of one limit.
    Cell = 1,
    /// A check remembered by the caller's reference.
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
    /// A cell that several keys share when there is no room for their own.
    Overflow = 8,
    /// The keys that one server has, where a store spreads over several.
    Group = 9,
    /// The state of one limit since its policy was last reset for everybody.
    Epoch = 10,
}

/// The one secret behind digests, pseudonyms and tickets; each use derives a key of its own.
///
/// A secret may follow older ones. Pseudonyms and tickets are then made with the newest and found
/// under all of them; keys of cells stay under the oldest, or no block would be found again.
#[derive(Clone)]
pub struct Secret {
    newest: [u8; 32],
    /// Newest first.
    older: Vec<[u8; 32]>,
}

impl Secret {
    /// A secret from bytes that nobody can guess.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { newest: bytes, older: Vec::new() }
    }

    /// This secret, in the place of an older one and of those before that.
    #[must_use]
    pub fn after(mut self, older: Self) -> Self {
        self.older.push(older.newest);
        self.older.extend(older.older);
        self
    }

    /// A key for one use. Keys of different uses tell nothing of each other or of the secret.
    pub fn derive(&self, usage: &str) -> [u8; 32] {
        blake3::derive_key(usage, &self.newest)
    }

    /// The same of this secret and of the older ones, newest first.
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

/// Makes digests under one secret.
#[derive(Clone)]
pub struct Digester {
    /// Every digest starts as a copy of this.
    keyed: SipHasher24,
    /// What tells the secret of the cells from another, and nothing about it.
    cell_id: String,
    /// Newest first.
    names: Vec<Naming>,
}

/// How pseudonyms are made under one secret.
#[derive(Clone)]
struct Naming {
    key: [u8; 32],
    /// Two characters that tell pseudonyms of one secret from those of another.
    id: String,
}

impl Digester {
    /// A digester under a secret.
    ///
    /// Cells use SipHash-2-4 with 128 bits: as a keyed function it cannot be told from chance
    /// without its key, and it is several times faster on short texts than what pseudonyms use.
    pub fn new(secret: &Secret) -> Self {
        let cell_key = secret.derive_all("catraca 2026 cell key").pop().unwrap_or_default();
        let mut half = [0; 16];
        half.copy_from_slice(&cell_key[..16]);
        let print = blake3::derive_key("catraca 2026 cell key id", &cell_key);
        let keyed = SipHasher24::new_with_key(&half);
        let names = secret.derive_all("catraca 2026 pseudonym").into_iter().map(Naming::new);
        Self { keyed, cell_id: hex(&print[..8]), names: names.collect() }
    }

    /// Sixteen characters that tell the secret of the cells from another: what is stored under one
    /// is not found under another.
    pub fn cell_id(&self) -> &str {
        &self.cell_id
    }

    /// Begins a digest.
    #[inline]
    pub fn start(&self, domain: Domain) -> Hasher {
        Hasher::new(self.keyed, domain)
    }

    /// The name under which a private value is kept and shown: `~`, two characters of the secret's
    /// fingerprint, and 24 of a keyed BLAKE3 of the attribute and the value.
    ///
    /// Taxpayer numbers and addresses are few enough to try them all, so a plain hash would give
    /// them away: only a secret kept apart from the records makes the way back impossible. The
    /// attribute is part of it, so that one value under two names cannot be linked; the fingerprint
    /// tells which secret is needed to look a value up after the secret was changed; and 96 bits
    /// stay apart for more people than there are.
    pub fn pseudonym(&self, attribute: &str, value: &str) -> String {
        self.pseudonyms(attribute, value).next().unwrap_or_default()
    }

    /// The same under this secret and under the older ones, newest first: whatever was kept before
    /// the secret was changed is found under one of them.
    pub fn pseudonyms(&self, attribute: &str, value: &str) -> impl Iterator<Item = String> {
        self.names.iter().map(move |naming| naming.pseudonym(attribute, value))
    }
}

impl Naming {
    fn new(key: [u8; 32]) -> Self {
        let print = blake3::derive_key("catraca 2026 pseudonym key id", &key);
        Self { key, id: hex(&print[..1]) }
    }

    fn pseudonym(&self, attribute: &str, value: &str) -> String {
        let mut mac = blake3::Hasher::new_keyed(&self.key);
        for part in [attribute.as_bytes(), value.as_bytes()] {
            mac.update(&length(part)).update(part);
        }
        format!("~{}{}", self.id, hex(&mac.finalize().as_bytes()[..12]))
    }
}

impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.names.iter().map(|naming| naming.id.as_str()).collect();
        f.debug_struct("Digester").field("key_ids", &ids).finish_non_exhaustive()
    }
}

/// A digest in the making. The parts are gathered first and digested in one go: feeding a dozen
/// small pieces takes several times as long.
#[derive(Clone)]
pub struct Hasher {
    keyed: SipHasher24,
    /// What is gathered, as long as it fits.
    short: [u8; SHORT],
    used: usize,
    /// All that is gathered, once it does not fit any more.
    long: Vec<u8>,
}

/// Enough for the key of a usual policy, which then needs no memory of its own.
const SHORT: usize = 128;

impl Hasher {
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
            // No further part fits into the short one, however small.
            self.used = SHORT;
        }
        self.long.extend_from_slice(&length(part));
        self.long.extend_from_slice(part);
        self
    }

    /// Adds one part, for building a prefix to keep.
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.part(part);
        self
    }

    /// The digest of the parts so far.
    #[inline]
    pub fn finish(&self) -> Key {
        let digest = self.keyed.hash(self.gathered());
        Key::from_words([digest.h1, digest.h2])
    }

    #[inline]
    fn gathered(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.used] } else { &self.long }
    }
}

/// The state would let who reads it continue the digest.
impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher(..)")
    }
}

/// How many bytes a length takes.
const LENGTH_BYTES: usize = 4;

/// The length that is written before each part, so that no two lists of parts are the same bytes.
/// Parts are bounded far below the 4 GiB where it would not fit.
#[inline]
fn length(part: &[u8]) -> [u8; LENGTH_BYTES] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes()
}

/// Bytes as lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
