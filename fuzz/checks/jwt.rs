//! A token that is accepted was signed with the secret, and has not expired.

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use serde_json::Value;

/// The secret that tokens are verified with.
pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The time at which they are verified, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

/// The input is a token, or the header and the claims of one that is signed here, in two lines.
/// Returns whether it is accepted.
pub fn check(data: &[u8], is_accepted: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Some((header, claims)) = text.split_once('\n') else {
        assert!(!is_accepted(text) || is_signed(text), "{text}");
        return is_accepted(text);
    };
    let encode = |part: &str| BASE64URL_NOPAD.encode(part.as_bytes());
    let signed = format!("{}.{}", encode(header), encode(claims));
    let signature =
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes());
    let token = format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()));
    let accepted = is_accepted(&token);
    if accepted {
        let header: Value = serde_json::from_str(header).expect("a header that is accepted");
        let claims: Value = serde_json::from_str(claims).expect("claims that are accepted");
        assert_eq!(header["alg"], "HS256");
        assert!(claims["exp"].as_f64().expect("a time") > NOW as f64, "{claims}");
        let start = claims["nbf"].as_f64().unwrap_or_default();
        assert!(start <= NOW as f64, "{claims}");
    }
    // Without the signature, with another one, and with another algorithm it is refused.
    assert!(!is_accepted(&format!("{signed}.")));
    let other = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"other"), signed.as_bytes());
    assert!(!is_accepted(&format!("{signed}.{}", BASE64URL_NOPAD.encode(other.as_ref()))));
    let none = encode("{\"alg\":\"none\"}");
    assert!(!is_accepted(&format!("{none}.{}.", encode(claims))));
    accepted
}

/// Whether the last part of a token is an HMAC of the others.
fn is_signed(token: &str) -> bool {
    let Some((signed, signature)) = token.rsplit_once('.') else { return false };
    let Ok(signature) = BASE64URL_NOPAD.decode(signature.as_bytes()) else { return false };
    [hmac::HMAC_SHA256, hmac::HMAC_SHA384, hmac::HMAC_SHA512].into_iter().any(|algorithm| {
        let key = hmac::Key::new(algorithm, SECRET.as_bytes());
        hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
    })
}
