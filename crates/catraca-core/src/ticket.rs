//! Tickets: proof of an admitted check, sealed so that nobody can read, change or invent one.
//!
//! The body travels in the token, so a store keeps nothing until settle. Must not roll dice: the id
//! is an argument and
//! serves as the nonce, so it must never repeat under one secret.

mod bytes;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64URL_NOPAD;

use crate::digest::{Key, Secret};
use crate::refusal::Refusal;
use crate::time::{Span, Time};

/// The largest ticket, as text.
pub const TICKET_BYTES_MAX: usize = 2048;
/// Nonce, tag and instants in a sealed ticket, before it becomes text.
const OVERHEAD: usize = 16 + 16 + 2;

/// What a ticket says, apart from the instants that only the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Unique under the secret.
    pub id: u128,
    /// The gate that was asked.
    pub gate: String,
    /// Whether the default policy stood in for it.
    pub unlisted: bool,
    /// Whether the node decided by itself, so that only there something is held.
    pub local: bool,
    /// How long it may be settled.
    pub hold: Span,
    /// The reference, whose cell must learn of the settle.
    pub reference: Option<Key>,
    /// The rows of the check.
    pub rows: Vec<TicketRow>,
    /// The attributes that conditions read.
    pub attributes: Vec<(String, String)>,
}

/// One row of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketRow {
    /// The policy.
    pub policy: String,
    /// The tier's id.
    pub tier: Option<u32>,
    /// The lasting key: where it is found now depends on whole resets since.
    pub key: Key,
    /// Units held.
    pub held: i64,
    /// Whether the row only watched.
    pub shadow: bool,
    /// The key's parts, private ones as pseudonyms.
    pub parts: Vec<(String, String)>,
}

/// A body with the instants of its check: everything a settle needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// What it says.
    pub body: Body,
    /// The instant of each row; absent for a row that was not charged.
    pub instants: Vec<Option<Time>>,
    /// When it can no longer be settled.
    pub expires: Time,
}

/// Seals and opens tickets.
#[derive(Clone)]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    /// Of the secrets before, whose tickets are still good.
    older: Vec<XChaCha20Poly1305>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Body {
    /// The body as a reference keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write_body(self)
    }

    /// Reads a body back.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes::read_body(bytes)
    }

    /// Refuses a body whose ticket would be too large.
    pub fn in_bounds(&self) -> Result<(), Refusal> {
        let sealed = self.to_bytes().len() + OVERHEAD + 9 * (self.rows.len() + 1);
        let text = BASE64URL_NOPAD.encode_len(sealed);
        if text > TICKET_BYTES_MAX {
            return Err(Refusal::TicketTooLarge { bytes: text, max: TICKET_BYTES_MAX });
        }
        Ok(())
    }
}

impl Sealer {
    /// A sealer under the engine's secret.
    pub fn new(secret: &Secret) -> Self {
        let keys = secret.derive_all("catraca 1 ticket");
        let older = keys[1..].iter().map(|key| XChaCha20Poly1305::new(key.into())).collect();
        Self { cipher: XChaCha20Poly1305::new(&keys[0].into()), older }
    }

    /// Seals a ticket for one namespace.
    pub fn seal(&self, ticket: &Ticket, namespace: &str) -> String {
        let plain = bytes::write_ticket(ticket);
        let payload = Payload { msg: &plain, aad: namespace.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce(ticket.body.id), payload).unwrap_or_default();
        let mut token = ticket.body.id.to_le_bytes().to_vec();
        token.extend_from_slice(&sealed);
        BASE64URL_NOPAD.encode(&token)
    }

    /// Opens a ticket; anything that is not exactly ours is refused.
    pub fn open(&self, token: &str, namespace: &str) -> Result<Ticket, Refusal> {
        self.try_open(token, namespace).ok_or(Refusal::BadTicket)
    }

    fn try_open(&self, token: &str, namespace: &str) -> Option<Ticket> {
        if token.len() > TICKET_BYTES_MAX {
            return None;
        }
        let token = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        let (id, sealed) = token.split_first_chunk::<16>()?;
        let id = u128::from_le_bytes(*id);
        let plain = std::iter::once(&self.cipher).chain(&self.older).find_map(|cipher| {
            let payload = Payload { msg: sealed, aad: namespace.as_bytes() };
            cipher.decrypt(&nonce(id), payload).ok()
        })?;
        bytes::read_ticket(&plain).filter(|ticket| ticket.body.id == id)
    }
}

fn nonce(id: u128) -> XNonce {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(&id.to_le_bytes());
    nonce.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let row = TicketRow {
            policy: "login".into(),
            tier: Some(u32::MAX),
            key: Key::from_bytes([7; 16]),
            held: 20,
            shadow: true,
            parts: vec![("ip".into(), "198.51.100.7".into())],
        };
        let other = TicketRow { tier: None, held: 0, shadow: false, ..row.clone() };
        let body = Body {
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
        let sealer = Sealer::new(&Secret::from_bytes([1; 32]));
        let token = sealer.seal(&ticket(), "a");
        assert_eq!(sealer.open(&token, "a"), Ok(ticket()));
        assert_eq!(Body::from_bytes(&ticket().body.to_bytes()), Some(ticket().body));
    }

    #[test]
    fn another_namespace_secret_or_bit_is_refused() {
        let sealer = Sealer::new(&Secret::from_bytes([1; 32]));
        let token = sealer.seal(&ticket(), "a");
        assert_eq!(sealer.open(&token, "b"), Err(Refusal::BadTicket));
        let newer = Secret::from_bytes([3; 32]).after(Secret::from_bytes([1; 32]));
        assert!(Sealer::new(&newer).open(&token, "a").is_ok(), "the older secret is known");
        let other = Sealer::new(&Secret::from_bytes([2; 32]));
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
            assert_eq!(Body::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
    }
}
