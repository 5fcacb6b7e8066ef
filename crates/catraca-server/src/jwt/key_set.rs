//! The keys that verify tokens: a JSON Web Key Set (RFC 7517), or a shared secret.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;

use super::algorithm::{Algorithm, VerifyingKey};
use super::error::JwtError;
use crate::regular_file;

/// The most keys of a set.
const KEYS_MAX: usize = 64;
/// The shortest secret, in bytes: as long as the shortest hash.
const SECRET_BYTES_MIN: usize = 32;

/// Keys by their ids.
pub struct KeySet {
    keys: Vec<NamedKey>,
}

/// A key of a set.
pub struct NamedKey {
    id: Option<String>,
    /// The only algorithm that the set allows for it.
    algorithm: Option<Algorithm>,
    key: VerifyingKey,
}

/// A JSON Web Key Set.
#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

/// A JSON Web Key, as far as it is used here.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a file with a key set.
    pub fn read_jwks(path: &Path) -> Result<Self> {
        let text =
            regular_file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse_jwks(&text).with_context(|| path.display().to_string())
    }

    /// Reads a file with a secret. A line end after it does not count.
    pub fn read_secret(path: &Path) -> Result<Self> {
        let text =
            regular_file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of_secret(text.trim_end_matches(['\r', '\n']))
            .with_context(|| path.display().to_string())
    }

    /// A set with one secret.
    pub fn of_secret(secret: &str) -> Result<Self> {
        ensure!(
            secret.len() >= SECRET_BYTES_MIN,
            "the secret has {} bytes; a shorter one than {SECRET_BYTES_MIN} can be guessed",
            secret.len()
        );
        let key = VerifyingKey::Secret(secret.as_bytes().to_vec());
        Ok(Self { keys: vec![NamedKey { id: None, algorithm: None, key }] })
    }

    /// Parses a key set. Keys for encryption, and of kinds that are not supported, are left out:
    /// sets may contain keys for other uses.
    pub fn parse_jwks(text: &str) -> Result<Self> {
        let set: JwkSet = serde_json::from_str(text).context("it is not a JSON Web Key Set")?;
        ensure!(set.keys.len() <= KEYS_MAX, "it has more than {KEYS_MAX} keys");
        let mut keys: Vec<NamedKey> = Vec::new();
        for (index, jwk) in set.keys.into_iter().enumerate() {
            let key = jwk.named_key().with_context(|| format!("key {}", index + 1))?;
            let Some(key) = key else { continue };
            let is_known = keys.iter().any(|other| other.id.is_some() && other.id == key.id);
            ensure!(!is_known, "key {}: another key has the same `kid`", index + 1);
            keys.push(key);
        }
        ensure!(!keys.is_empty(), "it has no RSA, EC or OKP key for signatures");
        Ok(Self { keys })
    }

    /// The key of a token: the one with its `kid`, or the only one if the token has none.
    pub fn find(&self, id: Option<&str>) -> Result<&NamedKey, JwtError> {
        match (id, &self.keys[..]) {
            // A secret has no id; tokens may have one.
            (_, [only]) if matches!(only.key, VerifyingKey::Secret(_)) => Ok(only),
            (None, [only]) => Ok(only),
            (None, _) => Err(JwtError::UnknownKey),
            (Some(id), keys) => {
                let found = keys.iter().find(|key| key.id.as_deref() == Some(id));
                found.ok_or(JwtError::UnknownKey)
            }
        }
    }
}

impl NamedKey {
    /// Verifies a signature.
    pub fn verify(
        &self,
        algorithm: Algorithm,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), JwtError> {
        if self.algorithm.is_some_and(|only| only != algorithm) {
            return Err(JwtError::Algorithm);
        }
        self.key.verify(algorithm, signed, signature)
    }
}

impl Jwk {
    /// The key; `None` if it is for another use.
    fn named_key(self) -> Result<Option<NamedKey>> {
        if self.r#use.as_deref().is_some_and(|purpose| purpose != "sig") {
            return Ok(None);
        }
        let algorithm = match self.alg.as_deref().map(Algorithm::from_name) {
            Some(None) => return Ok(None),
            algorithm => algorithm.flatten(),
        };
        let key = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => VerifyingKey::Rsa {
                modulus: field("n", self.n.as_deref())?,
                exponent: field("e", self.e.as_deref())?,
            },
            ("EC", Some("P-256")) => VerifyingKey::P256(self.point(32)?),
            ("EC", Some("P-384")) => VerifyingKey::P384(self.point(48)?),
            ("OKP", Some("Ed25519")) => VerifyingKey::Ed25519(coordinate("x", &self.x, 32)?),
            _ => return Ok(None),
        };
        Ok(Some(NamedKey { id: self.kid, algorithm, key }))
    }

    /// A point in its uncompressed form.
    fn point(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut point = vec![4];
        point.extend(coordinate("x", &self.x, bytes)?);
        point.extend(coordinate("y", &self.y, bytes)?);
        Ok(point)
    }
}

fn coordinate(name: &str, text: &Option<String>, bytes: usize) -> Result<Vec<u8>> {
    let value = field(name, text.as_deref())?;
    ensure!(value.len() == bytes, "`{name}` has {} bytes instead of {bytes}", value.len());
    Ok(value)
}

fn field(name: &str, text: Option<&str>) -> Result<Vec<u8>> {
    let Some(text) = text else { bail!("it has no `{name}`") };
    BASE64URL_NOPAD
        .decode(text.as_bytes())
        .ok()
        .with_context(|| format!("`{name}` is not base64url"))
}

/// Shows no key.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet").field("keys", &self.keys.len()).finish()
    }
}
