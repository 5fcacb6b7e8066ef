//! Why the token of a client is refused.

use std::fmt;

/// Why a token is refused. Each has a code; none shows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwtError {
    /// It is not a token of three parts in base64url with JSON, is too long, or is sent twice.
    Malformed,
    /// Its algorithm is not accepted, or does not fit the key: `none` never does.
    Algorithm,
    /// No key has its `kid`, or it has none and there are several keys.
    UnknownKey,
    /// The signature is not that of the key.
    Signature,
    /// `exp` has passed, or is missing.
    Expired,
    /// `nbf` has not come yet.
    NotYetValid,
    /// It is for another audience.
    Audience,
    /// It is of another issuer.
    Issuer,
}

impl JwtError {
    /// A stable code for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "jwt-malformed",
            Self::Algorithm => "jwt-algorithm",
            Self::UnknownKey => "jwt-unknown-key",
            Self::Signature => "jwt-signature",
            Self::Expired => "jwt-expired",
            Self::NotYetValid => "jwt-not-yet-valid",
            Self::Audience => "jwt-audience",
            Self::Issuer => "jwt-issuer",
        }
    }
}

impl fmt::Display for JwtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the token in `Authorization` is not a JWT, or is sent twice",
            Self::Algorithm => "the algorithm of the token is not accepted for its key",
            Self::UnknownKey => "no key of the server has the `kid` of the token",
            Self::Signature => "the signature of the token is invalid",
            Self::Expired => "the token has expired, or has no `exp`",
            Self::NotYetValid => "the token is not valid yet",
            Self::Audience => "the token is for another audience",
            Self::Issuer => "the token is of another issuer",
        })
    }
}

impl std::error::Error for JwtError {}
