//! Verifies a token: its signature, its times, its issuer and its audience.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca::http_request::{AmbiguousValue, Claims, header_once};
use hyper::http::{HeaderMap, header};
use serde_json::Value;

use super::algorithm::Algorithm;
use super::error::JwtError;
use super::key_set::KeySet;
use super::token::Token;

/// Verifies tokens.
#[derive(Debug)]
pub struct JwtVerifier {
    /// The keys; without them, tokens are not verified at all.
    pub keys: Option<KeySet>,
    /// The algorithms that are accepted; empty means all that fit the keys.
    pub algorithms: Vec<Algorithm>,
    /// The only `iss` that is accepted.
    pub issuer: Option<String>,
    /// The values of `aud` that are accepted; empty means that it is not checked.
    pub audiences: Vec<String>,
    /// How far the clock of the issuer may differ from ours.
    pub leeway: Duration,
}

impl JwtVerifier {
    /// The claims of the token in `Authorization: Bearer`; `None` if there is none. Another scheme
    /// is not a token.
    pub fn claims_of(
        &self,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Option<Claims>, JwtError> {
        let authorization = header_once(headers, header::AUTHORIZATION.as_str());
        let authorization = authorization.map_err(|_: AmbiguousValue| JwtError::Malformed)?;
        let Some(token) = authorization.and_then(bearer_token) else { return Ok(None) };
        self.verify(token, now).map(Some)
    }

    /// The claims of a token.
    pub fn verify(&self, token: &str, now: SystemTime) -> Result<Claims, JwtError> {
        let token = Token::parse(token)?;
        let Some(keys) = &self.keys else { return Ok(Claims(Value::Object(token.claims))) };
        let algorithm = Algorithm::from_name(&token.algorithm).ok_or(JwtError::Algorithm)?;
        if !self.algorithms.is_empty() && !self.algorithms.contains(&algorithm) {
            return Err(JwtError::Algorithm);
        }
        let key = keys.find(token.key_id.as_deref())?;
        key.verify(algorithm, token.signed.as_bytes(), &token.signature)?;
        self.check_times(&token, now)?;
        self.check_issuer(&token)?;
        self.check_audience(&token)?;
        Ok(Claims(Value::Object(token.claims)))
    }

    fn check_times(&self, token: &Token<'_>, now: SystemTime) -> Result<(), JwtError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        // A token without an end could be used for ever.
        let end = token.instant("exp")?.ok_or(JwtError::Expired)?;
        if now >= end.saturating_add(self.leeway) {
            return Err(JwtError::Expired);
        }
        match token.instant("nbf")? {
            Some(start) if now.saturating_add(self.leeway) < start => Err(JwtError::NotYetValid),
            _ => Ok(()),
        }
    }

    fn check_issuer(&self, token: &Token<'_>) -> Result<(), JwtError> {
        let Some(issuer) = &self.issuer else { return Ok(()) };
        let is_same = token.claims.get("iss").and_then(Value::as_str) == Some(issuer);
        if is_same { Ok(()) } else { Err(JwtError::Issuer) }
    }

    /// Whether the token is for one of our audiences. `aud` is a text or a list of texts.
    fn check_audience(&self, token: &Token<'_>) -> Result<(), JwtError> {
        let is_ours = |value: &Value| {
            value.as_str().is_some_and(|text| self.audiences.iter().any(|own| own == text))
        };
        let is_accepted = match token.claims.get("aud") {
            _ if self.audiences.is_empty() => true,
            Some(Value::Array(all)) => all.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        };
        if is_accepted { Ok(()) } else { Err(JwtError::Audience) }
    }
}

/// What follows the scheme `Bearer`, which may be empty; none for another scheme. Applications
/// split the line at any white space, so a token behind a tab must not count as absent.
fn bearer_token(line: &str) -> Option<&str> {
    let line = line.trim();
    let (scheme, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
