//! Tokens as issuers and attackers send them. The RSA key was made for these tests alone.

use std::time::{Duration, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use hyper::http::HeaderMap;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use ring::{hmac, signature};
use serde_json::{Value, json};

use super::*;

#[path = "../../../../fuzz/checks/jwt.rs"]
mod jwt_check;

#[path = "../../../../fuzz/checks/jwks.rs"]
mod jwks_check;

use jwt_check::{NOW, SECRET};

/// The keys of an issuer.
struct Issuer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let p256 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            rsa: RsaKeyPair::from_pkcs8(include_bytes!("tests/rsa_private_key.pk8")).unwrap(),
            p256: EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random).unwrap(),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
        }
    }

    fn jwks(&self) -> Value {
        let rsa = signature::RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public_key());
        let point = &self.p256.public_key().as_ref()[1..];
        json!({"keys": [
            {"kty": "RSA", "kid": "rsa", "use": "sig", "n": encode(&rsa.n), "e": encode(&rsa.e)},
            {"kty": "EC", "kid": "ec", "crv": "P-256", "x": encode(&point[..32]),
             "y": encode(&point[32..]), "alg": "ES256"},
            {"kty": "OKP", "kid": "ed", "crv": "Ed25519",
             "x": encode(self.ed25519.public_key().as_ref())},
            {"kty": "RSA", "kid": "encryption", "use": "enc"},
            {"kty": "oct", "kid": "secret", "k": encode(SECRET.as_bytes())},
        ]})
    }

    fn sign(&self, algorithm: &str, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(padding, &random, signed, &mut signature).unwrap();
            signature
        };
        match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "ES256" => self.p256.sign(&random, signed).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed25519.sign(signed).as_ref().to_vec(),
            _ => Vec::new(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = signed_part(header, claims);
        let algorithm = header["alg"].as_str().unwrap();
        let signature = self.sign(algorithm, signed.as_bytes());
        format!("{signed}.{}", encode(&signature))
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

fn signed_part(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| encode(value.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

fn hs256(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = signed_part(header, claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("{signed}.{}", encode(hmac::sign(&key, signed.as_bytes()).as_ref()))
}

fn verifier(keys: Option<KeySet>) -> JwtVerifier {
    JwtVerifier {
        keys,
        algorithms: Vec::new(),
        issuer: None,
        audiences: Vec::new(),
        leeway: Duration::ZERO,
    }
}

fn of_issuer(issuer: &Issuer) -> JwtVerifier {
    verifier(Some(KeySet::parse_jwks(&issuer.jwks().to_string()).unwrap()))
}

fn of_secret() -> JwtVerifier {
    verifier(Some(KeySet::of_secret(SECRET).unwrap()))
}

/// The claim `sub` of a token, or the code of the error.
fn subject(verifier: &JwtVerifier, token: &str) -> Result<String, &'static str> {
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let claims = verifier.verify(token, now).map_err(JwtError::code)?;
    Ok(claims.0["sub"].as_str().unwrap().to_owned())
}

fn claims() -> Value {
    json!({"sub": "ana", "exp": NOW + 60, "iss": "https://id.example", "aud": ["api", "web"]})
}

fn header(algorithm: &str, key: &str) -> Value {
    json!({"alg": algorithm, "kid": key, "typ": "JWT"})
}

/// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
#[test]
fn inputs_of_jwt() {
    let verifier = of_secret();
    let is_accepted =
        |token: &str| verifier.verify(token, UNIX_EPOCH + Duration::from_secs(NOW)).is_ok();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/jwt");
    let mut accepted = 0;
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let input = std::fs::read(entry.unwrap().path()).unwrap();
        accepted += usize::from(jwt_check::check(&input, is_accepted));
        count += 1;
    }
    assert!(count > 5 && accepted > 0 && accepted < count, "{accepted} of {count}");
}

#[test]
fn every_kind_of_key_verifies_its_signatures() {
    let issuer = Issuer::new();
    let verifier = of_issuer(&issuer);
    for (algorithm, key) in [("RS256", "rsa"), ("PS256", "rsa"), ("ES256", "ec"), ("EdDSA", "ed")] {
        let token = issuer.token(&header(algorithm, key), &claims());
        assert_eq!(subject(&verifier, &token), Ok("ana".to_owned()), "{algorithm}");
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
        bytes[7] ^= 1;
        let forged = format!("{signed}.{}", encode(&bytes));
        assert_eq!(subject(&verifier, &forged), Err("jwt-signature"), "{algorithm}");
    }
    let token = hs256(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims());
    assert_eq!(subject(&of_secret(), &token), Ok("ana".to_owned()));
    let other = hs256(b"another secret", &json!({"alg": "HS256"}), &claims());
    assert_eq!(subject(&of_secret(), &other), Err("jwt-signature"));
}

#[test]
fn a_token_without_a_signature_is_refused() {
    let issuer = Issuer::new();
    for name in ["none", "None", "NONE", ""] {
        for verifier in [of_issuer(&issuer), of_secret()] {
            let token = format!("{}.", signed_part(&header(name, "rsa"), &claims()));
            assert_eq!(subject(&verifier, &token), Err("jwt-algorithm"), "{name}");
        }
    }
    let without = format!("{}.", signed_part(&header("RS256", "rsa"), &claims()));
    assert_eq!(subject(&of_issuer(&issuer), &without), Err("jwt-signature"));
}

/// An attacker signs with the public key as the secret of an HMAC.
#[test]
fn a_public_key_is_never_the_secret_of_an_hmac() {
    let issuer = Issuer::new();
    let verifier = of_issuer(&issuer);
    let public = issuer.jwks();
    let modulus = public["keys"][0]["n"].as_str().unwrap();
    let bytes = BASE64URL_NOPAD.decode(modulus.as_bytes()).unwrap();
    for secret in [modulus.as_bytes(), &bytes, public.to_string().as_bytes()] {
        for algorithm in ["HS256", "HS384", "HS512"] {
            let token = hs256(secret, &header(algorithm, "rsa"), &claims());
            assert_eq!(subject(&verifier, &token), Err("jwt-algorithm"), "{algorithm}");
        }
    }
    // A secret in the set is not used, and a key of another kind does not fit.
    let token = hs256(SECRET.as_bytes(), &header("HS256", "secret"), &claims());
    assert_eq!(subject(&verifier, &token), Err("jwt-unknown-key"));
    let token = issuer.token(&header("RS256", "ec"), &claims());
    assert_eq!(subject(&verifier, &token), Err("jwt-algorithm"));
    let token = issuer.token(&header("RS256", "rsa"), &claims());
    assert_eq!(subject(&of_secret(), &token), Err("jwt-algorithm"));
}

#[test]
fn only_the_listed_algorithms_are_accepted() {
    let issuer = Issuer::new();
    let verifier = JwtVerifier { algorithms: vec![Algorithm::Es256], ..of_issuer(&issuer) };
    let token = |algorithm, key| issuer.token(&header(algorithm, key), &claims());
    assert_eq!(subject(&verifier, &token("ES256", "ec")), Ok("ana".to_owned()));
    assert_eq!(subject(&verifier, &token("RS256", "rsa")), Err("jwt-algorithm"));
}

#[test]
fn an_unknown_key_is_refused() {
    let issuer = Issuer::new();
    let verifier = of_issuer(&issuer);
    for header in [header("RS256", "other"), header("RS256", "encryption"), json!({"alg": "RS256"})]
    {
        let token = issuer.token(&header, &claims());
        assert_eq!(subject(&verifier, &token), Err("jwt-unknown-key"), "{header}");
    }
}

#[test]
fn times_are_checked_with_a_leeway() {
    let issuer = Issuer::new();
    let verifier = of_issuer(&issuer);
    let lenient = JwtVerifier { leeway: Duration::from_secs(30), ..of_issuer(&issuer) };
    let with = |changed: Value| {
        let mut all = claims();
        for (name, value) in changed.as_object().unwrap() {
            all[name] = value.clone();
        }
        issuer.token(&header("EdDSA", "ed"), &all)
    };
    let ok = Ok("ana".to_owned());
    assert_eq!(subject(&verifier, &with(json!({"exp": NOW + 1}))), ok);
    assert_eq!(subject(&verifier, &with(json!({"exp": NOW}))), Err("jwt-expired"));
    assert_eq!(subject(&lenient, &with(json!({"exp": NOW - 29}))), ok);
    assert_eq!(subject(&lenient, &with(json!({"exp": NOW - 30}))), Err("jwt-expired"));
    assert_eq!(subject(&verifier, &with(json!({"nbf": NOW}))), ok);
    assert_eq!(subject(&verifier, &with(json!({"nbf": NOW + 1}))), Err("jwt-not-yet-valid"));
    assert_eq!(subject(&lenient, &with(json!({"nbf": NOW + 30}))), ok);
    assert_eq!(subject(&verifier, &with(json!({"exp": 1e300}))), ok);
    // A time of another type is not a missing one.
    for exp in [json!("1900000000"), json!(null), json!([]), json!(-1)] {
        assert_eq!(subject(&verifier, &with(json!({"exp": exp}))), Err("jwt-malformed"), "{exp}");
    }
    let without = issuer.token(&header("EdDSA", "ed"), &json!({"sub": "ana"}));
    assert_eq!(subject(&verifier, &without), Err("jwt-expired"));
}

#[test]
fn issuer_and_audience_are_checked_if_they_are_set() {
    let issuer = Issuer::new();
    let token = issuer.token(&header("EdDSA", "ed"), &claims());
    let with = |own: Option<&str>, audiences: &[&str]| {
        let audiences = audiences.iter().map(|text| (*text).to_owned()).collect();
        let verifier =
            JwtVerifier { issuer: own.map(str::to_owned), audiences, ..of_issuer(&issuer) };
        subject(&verifier, &token)
    };
    assert_eq!(with(Some("https://id.example"), &["web"]), Ok("ana".to_owned()));
    assert_eq!(with(Some("https://id.example/"), &[]), Err("jwt-issuer"));
    assert_eq!(with(None, &["other"]), Err("jwt-audience"));
    let verifier = JwtVerifier { audiences: vec!["api".to_owned()], ..of_issuer(&issuer) };
    for (audience, result) in [
        (json!("api"), Ok("ana".to_owned())),
        (json!("apis"), Err("jwt-audience")),
        (json!([]), Err("jwt-audience")),
        (json!({"api": true}), Err("jwt-audience")),
        (json!(null), Err("jwt-audience")),
    ] {
        let claims = json!({"sub": "ana", "exp": NOW + 60, "aud": audience});
        let token = issuer.token(&header("EdDSA", "ed"), &claims);
        assert_eq!(subject(&verifier, &token), result, "{audience}");
    }
}

#[test]
fn what_is_not_a_token_is_malformed() {
    let verifier = of_secret();
    let good = hs256(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims());
    let twice = format!("{}.{}.", encode(br#"{"alg":"HS256","alg":"none"}"#), encode(b"{}"));
    let critical = hs256(SECRET.as_bytes(), &json!({"alg": "HS256", "crit": ["b64"]}), &claims());
    let long = format!("{good}{}", "A".repeat(9_000));
    for token in ["", ".", "..", "a.b.c", "e30.e30.", &good[1..], &twice, &critical, &long] {
        assert_eq!(subject(&verifier, token), Err("jwt-malformed"), "{token}");
    }
    assert_eq!(subject(&verifier, &format!("{good}=")), Err("jwt-malformed"), "padding");
    assert_eq!(subject(&verifier, &format!("{good}.{good}")), Err("jwt-malformed"), "five parts");
}

#[test]
fn tokens_are_read_from_bearer_and_unverified_only_on_request() {
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let claims_of = |verifier: &JwtVerifier, line: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(hyper::http::header::AUTHORIZATION, line.parse().unwrap());
        verifier.claims_of(&headers, now).map(|claims| claims.is_some())
    };
    let good = hs256(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims());
    assert_eq!(claims_of(&of_secret(), &format!("Bearer {good}")), Ok(true));
    assert_eq!(claims_of(&of_secret(), &format!("bearer  {good} ")), Ok(true));
    // Applications split the line at any white space.
    assert_eq!(claims_of(&of_secret(), &format!("Bearer\t{good}")), Ok(true));
    for line in ["Bearer\tx", "Bearer", "bearer ", "Bearer\t \tx y"] {
        assert_eq!(claims_of(&of_secret(), line), Err(JwtError::Malformed), "{line:?}");
    }
    assert_eq!(claims_of(&of_secret(), "Basic YTpi"), Ok(false));
    assert_eq!(claims_of(&of_secret(), "BearerX y"), Ok(false));
    assert_eq!(claims_of(&of_secret(), "Bearer x"), Err(JwtError::Malformed));
    assert_eq!(of_secret().claims_of(&HeaderMap::new(), now), Ok(None));
    let expired = json!({"sub": "ana", "exp": 1});
    let unsigned = format!("{}.", signed_part(&json!({"alg": "none"}), &expired));
    assert_eq!(subject(&verifier(None), &unsigned), Ok("ana".to_owned()));
}

#[test]
fn a_set_without_usable_keys_is_refused() {
    let error = |text: &str| format!("{:#}", KeySet::parse_jwks(text).unwrap_err());
    assert!(error("{}").contains("not a JSON Web Key Set"));
    assert!(error(r#"{"keys":[]}"#).contains("no RSA, EC or OKP key"));
    assert!(error(r#"{"keys":[{"kty":"RSA","n":"AQ"}]}"#).contains("key 1: it has no `e`"));
    let short = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ"}]}"#;
    assert!(error(short).contains("1 bytes instead of 32"));
    assert!(KeySet::of_secret("short").unwrap_err().to_string().contains("can be guessed"));
}

/// Bytes that look like tokens: the parser must end without a panic, and accept none of them.
#[test]
fn random_tokens_are_refused_without_a_panic() {
    let verifier = of_secret();
    let good = hs256(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims());
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = b"AZaz09-_.{}="[(state >> 20) as usize % 12];
        }
        let token = String::from_utf8(bytes).unwrap();
        assert!(token == good || subject(&verifier, &token).is_err(), "{token}");
    }
}

/// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
#[test]
fn inputs_of_jwks() {
    let is_accepted = |set: &str, token: &str| {
        let verifier = verifier(Some(KeySet::parse_jwks(set).ok()?));
        Some(verifier.verify(token, UNIX_EPOCH + Duration::from_secs(NOW)).is_ok())
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/jwks");
    let mut read = 0;
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let input = std::fs::read(entry.unwrap().path()).unwrap();
        read += usize::from(jwks_check::check(&input, is_accepted));
        count += 1;
    }
    assert!(count > 5 && read > 0, "{read} of {count}");
}
