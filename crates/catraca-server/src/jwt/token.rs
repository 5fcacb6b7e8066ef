//! A token in its compact form: three parts in base64url (RFC 7515).

use std::time::Duration;

use catraca::core::outcome::OutcomeBody;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::error::JwtError;

/// The longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// A token that was parsed, and not verified.
pub struct Token<'t> {
    /// The algorithm in its header.
    pub algorithm: String,
    /// The id of its key.
    pub key_id: Option<String>,
    /// Its claims.
    pub claims: Map<String, Value>,
    /// The text that is signed.
    pub signed: &'t str,
    /// The signature.
    pub signature: Vec<u8>,
}

impl<'t> Token<'t> {
    /// Parses a token. JSON with a key twice is malformed: the application might read the other
    /// value.
    pub fn parse(text: &'t str) -> Result<Self, JwtError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(JwtError::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(JwtError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(JwtError::Malformed)?;
        let header = object(header)?;
        // An extension that must be understood, and that we do not know.
        if header.contains_key("crit") {
            return Err(JwtError::Malformed);
        }
        let text_of = |name: &str| match header.get(name) {
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(JwtError::Malformed),
            None => Ok(None),
        };
        Ok(Self {
            algorithm: text_of("alg")?.ok_or(JwtError::Malformed)?,
            key_id: text_of("kid")?,
            claims: object(claims)?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// A claim with seconds since 1970. One of another type is malformed, and not absent: else a
    /// token with `"exp": "…"` would never expire.
    pub fn instant(&self, claim: &str) -> Result<Option<Duration>, JwtError> {
        let Some(value) = self.claims.get(claim) else { return Ok(None) };
        let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
        let seconds = seconds.ok_or(JwtError::Malformed)?;
        // An instant that no clock reaches is the end of time.
        Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
}

/// A part that is a JSON object.
fn object(part: &str) -> Result<Map<String, Value>, JwtError> {
    let body = OutcomeBody::from_json(&decode(part)?, TOKEN_BYTES_MAX);
    match body.value {
        Value::Object(fields) if !body.is_invalid => Ok(fields),
        _ => Err(JwtError::Malformed),
    }
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| JwtError::Malformed)
}
