//! Tickets: encrypted, authenticated proofs of admitted checks.
//!
//! The body is inside the token, so a store keeps nothing for a check until it is settled. The id
//! is an argument, since core creates no random numbers. It is also the nonce of the encryption, so
//! it must never repeat under one secret.

mod bytes;
#[cfg(feature = "settle")]
mod cipher;
mod message;
#[cfg(not(feature = "settle"))]
mod no_cipher;

use std::sync::Arc;

use crate::algorithm::SharedBuckets;
use crate::digest::{Key, Secret};
use crate::facts::NamespaceFacts;
use crate::limit::Limit;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::select::CounterSharing;
use crate::time::{Span, Time};

#[cfg(feature = "settle")]
use cipher::Cipher;
#[cfg(not(feature = "settle"))]
use no_cipher::DisabledCipher as Cipher;

pub use message::MessageSealer;

/// The most bytes of a ticket as text.
pub const TICKET_BYTES_MAX: usize = 2048;
/// Bytes that sealing adds to the body: nonce (16), authentication tag (16), and the count of
/// instants (2). Before base64.
const OVERHEAD: usize = 16 + 16 + 2;

/// The content of a ticket, except for the instants, which only the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketBody {
    /// The id of the check; unique under the secret.
    pub id: u128,
    /// The gate of the check.
    pub gate: String,
    /// Whether the gate is not declared, so that the default policies applied.
    pub unlisted: bool,
    /// Whether the node decided without the shared store, so that only its own memory holds the
    /// charge.
    pub local: bool,
    /// How long the ticket can be settled, from the instant of the check.
    pub hold: Span,
    /// The key of the reference in which the settled status is stored.
    pub reference: Option<Key>,
    /// The rows of the check.
    pub rows: Vec<TicketRow>,
    /// The attributes that ban conditions read, private values as pseudonyms.
    pub attributes: Vec<(String, String)>,
}

/// One row of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketRow {
    /// The name of the policy.
    pub policy: String,
    /// The id of the tier.
    pub tier: Option<u32>,
    /// Whether the tier had a counter of its own at the check.
    pub own_counter: bool,
    /// The base key: the key without the epoch, from which a settle computes the current key.
    pub key: Key,
    /// Units charged at the check.
    pub held: i64,
    /// Whether the policy was in shadow mode.
    pub shadow: bool,
    /// Whether the policy counted each attribute on its own.
    pub each: bool,
    /// The key parts for display, private values as pseudonyms.
    pub parts: Vec<(String, String)>,
}

impl TicketRow {
    /// The attribute that this row counts, for a policy with `each`.
    pub fn attribute(&self) -> Option<&str> {
        self.parts.first().filter(|_| self.each).map(|(name, _)| name.as_str())
    }

    /// The tier whose own counter the check charged.
    pub fn tier_counter(&self) -> Option<u32> {
        self.tier.filter(|_| self.own_counter)
    }

    /// The buckets of the other tiers that share the charged counter now.
    pub fn shared_buckets(
        &self,
        policy: &Policy,
        limit: &Limit,
        facts: NamespaceFacts<'_>,
    ) -> Option<Arc<SharedBuckets>> {
        if self.tier_counter().is_some() {
            return None;
        }
        let attributes = self.parts.iter().map(|(name, _)| &**name);
        CounterSharing { policy, facts, attributes }.shared_buckets(limit)
    }
}

/// A ticket: everything that a settle needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The content.
    pub body: TicketBody,
    /// The instant of each row at the check; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// The instant from which it can no longer be settled.
    pub expires: Time,
}

/// Encrypts and decrypts tickets.
#[derive(Clone)]
pub struct TicketSealer {
    cipher: Cipher,
    /// The ciphers of older secrets, whose tickets are still accepted.
    older: Vec<Cipher>,
}

impl std::fmt::Debug for TicketSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl TicketBody {
    /// The body in plain bytes, as references store it.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write_body(self)
    }

    /// Decodes a body; `None` if the bytes are no valid body.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes::read_body(bytes)
    }

    /// The body in plain bytes. Fails if the ticket would exceed [`TICKET_BYTES_MAX`]; each
    /// instant, and the expiry, is counted with the nine bytes that it can have at most.
    pub fn to_bytes_in_bounds(&self) -> Result<Vec<u8>, Refusal> {
        let bytes = self.to_bytes();
        let sealed = bytes.len() + OVERHEAD + 9 * (self.rows.len() + 1);
        // Base64 without padding.
        let text = (sealed * 4).div_ceil(3);
        if text > TICKET_BYTES_MAX {
            return Err(Refusal::TicketTooLarge { bytes: text, max: TICKET_BYTES_MAX });
        }
        Ok(bytes)
    }
}

impl TicketSealer {
    /// A sealer that uses the engine's secret.
    pub fn new(secret: &Secret) -> Self {
        let keys = secret.derive_all("catraca 1 ticket");
        let older = keys[1..].iter().map(Cipher::new).collect();
        Self { cipher: Cipher::new(&keys[0]), older }
    }

    /// Encrypts a ticket for one namespace, which is authenticated with it.
    pub fn seal(&self, ticket: &Ticket, namespace: &str) -> String {
        let plain = bytes::write_ticket(ticket);
        let sealed = self.cipher.encrypt(ticket.body.id, &plain, namespace);
        // The id is sent in clear because it is the nonce.
        let mut token = ticket.body.id.to_le_bytes().to_vec();
        token.extend_from_slice(&sealed);
        Cipher::to_text(&token)
    }

    /// Decrypts a ticket. Anything but an unmodified ticket of this secret and namespace is
    /// refused.
    pub fn open(&self, token: &str, namespace: &str) -> Result<Ticket, Refusal> {
        self.try_open(token, namespace).ok_or(Refusal::BadTicket)
    }

    fn try_open(&self, token: &str, namespace: &str) -> Option<Ticket> {
        if token.len() > TICKET_BYTES_MAX {
            return None;
        }
        let token = Cipher::from_text(token)?;
        let (id, sealed) = token.split_first_chunk::<16>()?;
        let id = u128::from_le_bytes(*id);
        let mut ciphers = std::iter::once(&self.cipher).chain(&self.older);
        let plain = ciphers.find_map(|cipher| cipher.decrypt(id, sealed, namespace))?;
        // The body repeats the id, and both must be equal.
        bytes::read_ticket(&plain).filter(|ticket| ticket.body.id == id)
    }
}

#[cfg(all(test, feature = "settle"))]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let row = TicketRow {
            policy: "login".into(),
            tier: Some(u32::MAX),
            own_counter: true,
            key: Key::from_bytes([7; 16]),
            held: 20,
            shadow: true,
            each: true,
            parts: vec![("ip".into(), "198.51.100.7".into())],
        };
        let other = TicketRow {
            tier: None,
            own_counter: false,
            held: 0,
            shadow: false,
            each: false,
            ..row.clone()
        };
        let body = TicketBody {
            id: 0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0,
            gate: "g".into(),
            unlisted: false,
            local: true,
            hold: Span::from_secs(60),
            reference: Some(Key::from_bytes([9; 16])),
            rows: vec![row, other],
            attributes: vec![("plan".into(), "gold".into())],
        };
        let instants = vec![Some(Time::from_micros(5)), None];
        Ticket { body, instants, expires: Time::from_micros(60_000_005) }
    }

    #[test]
    fn a_ticket_opens_as_it_was_sealed() {
        let sealer = TicketSealer::new(&Secret::from_bytes([1; 32]));
        let token = sealer.seal(&ticket(), "a");
        assert_eq!(sealer.open(&token, "a"), Ok(ticket()));
        assert_eq!(TicketBody::from_bytes(&ticket().body.to_bytes()), Some(ticket().body));
    }

    #[test]
    fn another_namespace_secret_or_bit_is_refused() {
        let sealer = TicketSealer::new(&Secret::from_bytes([1; 32]));
        let token = sealer.seal(&ticket(), "a");
        assert_eq!(sealer.open(&token, "b"), Err(Refusal::BadTicket));
        let newer = Secret::from_bytes([3; 32]).with_older(Secret::from_bytes([1; 32]));
        assert!(TicketSealer::new(&newer).open(&token, "a").is_ok(), "the older secret is known");
        let other = TicketSealer::new(&Secret::from_bytes([2; 32]));
        assert_eq!(other.open(&token, "a"), Err(Refusal::BadTicket));
        for place in 0..token.len() {
            let mut bent = token.clone().into_bytes();
            bent[place] = if bent[place] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).unwrap();
            if bent != token {
                assert_eq!(sealer.open(&bent, "a"), Err(Refusal::BadTicket), "byte {place}");
            }
        }
        assert_eq!(sealer.open("", "a"), Err(Refusal::BadTicket));
        assert_eq!(sealer.open(&"A".repeat(5_000), "a"), Err(Refusal::BadTicket));
    }

    #[test]
    fn no_cut_or_noise_reads_as_a_body() {
        let bytes = ticket().body.to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(TicketBody::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
    }
}
