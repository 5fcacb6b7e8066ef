//! The algorithms of signatures (RFC 7518), and the keys that fit them.

use ring::{hmac, signature};

use super::error::JwtError;

/// The algorithm of a signature. `none` is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA, PKCS #1 v1.5, with SHA-256.
    Rs256,
    /// RSA, PKCS #1 v1.5, with SHA-384.
    Rs384,
    /// RSA, PKCS #1 v1.5, with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every algorithm with its name.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("HS256", Self::Hs256),
        ("HS384", Self::Hs384),
        ("HS512", Self::Hs512),
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// The algorithm with this name; letter case matters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == name).map(|(_, algorithm)| *algorithm)
    }
}

/// A key that verifies signatures.
pub enum VerifyingKey {
    /// A shared secret.
    Secret(Vec<u8>),
    /// The modulus and the exponent of an RSA key.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// A point of P-256, uncompressed.
    P256(Vec<u8>),
    /// A point of P-384, uncompressed.
    P384(Vec<u8>),
    /// An Ed25519 key.
    Ed25519(Vec<u8>),
}

impl VerifyingKey {
    /// Verifies a signature. An algorithm of another kind of key is refused before anything is
    /// computed.
    pub fn verify(
        &self,
        algorithm: Algorithm,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), JwtError> {
        let is_valid = match (self, algorithm) {
            (Self::Secret(secret), _) => {
                let key = hmac::Key::new(hmac_algorithm(algorithm)?, secret);
                hmac::verify(&key, signed, signature).is_ok()
            }
            (Self::Rsa { modulus, exponent }, _) => {
                let key = signature::RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(rsa_parameters(algorithm)?, signed, signature).is_ok()
            }
            (Self::P256(point), Algorithm::Es256) => {
                let key =
                    signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature).is_ok()
            }
            (Self::P384(point), Algorithm::Es384) => {
                let key =
                    signature::UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point);
                key.verify(signed, signature).is_ok()
            }
            (Self::Ed25519(key), Algorithm::EdDsa) => {
                let key = signature::UnparsedPublicKey::new(&signature::ED25519, key);
                key.verify(signed, signature).is_ok()
            }
            _ => return Err(JwtError::Algorithm),
        };
        if is_valid { Ok(()) } else { Err(JwtError::Signature) }
    }
}

fn hmac_algorithm(algorithm: Algorithm) -> Result<hmac::Algorithm, JwtError> {
    match algorithm {
        Algorithm::Hs256 => Ok(hmac::HMAC_SHA256),
        Algorithm::Hs384 => Ok(hmac::HMAC_SHA384),
        Algorithm::Hs512 => Ok(hmac::HMAC_SHA512),
        _ => Err(JwtError::Algorithm),
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Result<&'static signature::RsaParameters, JwtError> {
    match algorithm {
        Algorithm::Rs256 => Ok(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Ok(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Ok(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Ok(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Ok(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Ok(&signature::RSA_PSS_2048_8192_SHA512),
        _ => Err(JwtError::Algorithm),
    }
}
