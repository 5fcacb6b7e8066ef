//! No key set accepts a token that is unsigned, or signed with what everybody can read.

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;

/// The input is a key set. `is_accepted` verifies a token with it; none if it cannot be read.
/// Returns whether it can.
pub fn check(data: &[u8], is_accepted: impl Fn(&str, &str) -> Option<bool>) -> bool {
    let Ok(set) = std::str::from_utf8(data) else { return false };
    let encode = |part: &str| BASE64URL_NOPAD.encode(part.as_bytes());
    let claims = encode(r#"{"sub":"ana","exp":4000000000}"#);
    let unsigned = format!("{}.{claims}.", encode(r#"{"alg":"none"}"#));
    if is_accepted(set, &unsigned).is_none() {
        return false;
    }
    assert_eq!(is_accepted(set, &unsigned), Some(false), "{set}");
    let signed = format!("{}.{claims}", encode(r#"{"alg":"HS256"}"#));
    // Public keys are no secrets.
    for secret in [data, b""] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        let token = format!("{signed}.{}", BASE64URL_NOPAD.encode(tag.as_ref()));
        assert_eq!(is_accepted(set, &token), Some(false), "{set}");
    }
    true
}
