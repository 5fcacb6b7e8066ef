//! Forward auth: the parts of the client's request that routes read, and the gate that they choose.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;

use crate::test_server::{TestServer, catalog_file};

const LOOKUP: &str = r#"
[network]
trusted_proxies = ["127.0.0.0/8"]

[attribute.key]
kind    = "pix_key"
private = true

[policy.contacts]
by     = ["participant"]
bucket = { size = 9, refill = "1 per 1h" }

[policy.numbers]
by     = ["participant"]
bucket = { size = 9, refill = "1 per 1h" }
credit = { payment = { amount = 1 } }

[policy.session]
by     = ["user"]
window = "2 per 1h"

[policy.list]
by     = ["ip"]
window = "100 per 1h"

[[route]]
match = "GET /entries/{key}"
set   = { key = "path:2", participant = "header:pi-requestingparticipant" }
gate  = { by = "key_type", map = { EMAIL = "contacts", PHONE = "contacts", CPF = "numbers" } }
ref   = "header:pi-endtoendid"

[[route]]
match = "/account"
gate  = "session"
set   = { user = "cookie:session" }

[[route]]
match = "/list"
gate  = "list"
cost  = "query:page_size"

[[route]]
match    = "POST /chat"
gate     = "session"
set      = { user = "body:user" }
upstream = "http://127.0.0.1:9"
"#;

fn ask(server: &TestServer, request: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
    let (method, target) = request.split_once(' ').unwrap();
    let described = [("X-Forwarded-Method", method), ("X-Forwarded-Uri", target)];
    let answer = server.request("GET /v1/authorize", &[&described[..], headers].concat());
    let quota = answer.header("ratelimit").unwrap_or_default().to_owned();
    let code = if answer.status >= 400 && quota.is_empty() { answer.problem_code() } else { quota };
    (answer.status, code, answer.body.clone())
}

/// covers: 001-08
#[test]
fn the_type_of_a_key_chooses_the_gate_and_its_end_to_end_id_is_the_ref() {
    let server = TestServer::with_catalog(LOOKUP);
    let headers = [("PI-RequestingParticipant", "12345678"), ("PI-EndToEndId", "E1")];
    let quota = |key: &str| ask(&server, &format!("GET /entries/{key}"), &headers);
    assert!(quota("12345678909").1.starts_with("\"numbers\""));
    assert!(quota("%2B5561912345678").1.starts_with("\"contacts\""));
    assert!(quota("a@example.com").1.starts_with("\"contacts\""));
    let evp = quota("123e4567-e12b-12d1-a456-426655440000");
    assert_eq!((evp.0, evp.1.as_str()), (400, "unmapped-gate"));
    let (status, code, body) = quota("123.456.789-09");
    assert_eq!((status, code.as_str()), (400, "bad-attribute"));
    assert!(!body.contains("123.456"), "{body}");
    // The reference finds the check for a later credit.
    let credit = r#"{"ref":"E1","event":"payment","subject":{"participant":"12345678"}}"#;
    let answer = server.post("/v1/credit", credit);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.body.contains("unknown"), "{}", answer.body);
}

#[test]
fn a_cookie_names_the_caller_in_any_spelling() {
    let server = TestServer::with_catalog(LOOKUP);
    let account = |cookie: &str| ask(&server, "GET /account", &[("Cookie", cookie)]);
    assert_eq!(account("a=1; session=abc").0, 200);
    assert_eq!(account("session=\"abc\"").0, 200);
    assert_eq!(account("session=%61bc").0, 429);
    let (status, code, _) = account("session=abc; session=abd");
    assert_eq!((status, code.as_str()), (400, "ambiguous-request"));
    assert_eq!(account("other=1").1, "missing-attribute");
}

#[test]
fn the_cost_of_a_request_is_read_and_a_body_is_not() {
    let server = TestServer::with_catalog(LOOKUP);
    let (_, quota, _) = ask(&server, "GET /list?page_size=40", &[]);
    assert!(quota.contains("r=60"), "{quota}");
    assert_eq!(ask(&server, "GET /list?page_size=-1", &[]).1, "bad-cost");
    assert_eq!(ask(&server, "GET /list?page_size=x", &[]).1, "bad-request-value");
    let (status, code, body) = ask(&server, "POST /chat", &[]);
    assert_eq!((status, code.as_str()), (400, "request-body-unread"));
    assert!(body.contains("reverse proxy"), "{body}");
}

const TOKENS: &str = r#"
[network]
trusted_proxies = ["127.0.0.0/8"]

[jwt]
secret_file = "jwt.secret"
audience    = "api"

[policy.user]
by     = ["user"]
window = "2 per 1h"

[[route]]
match = "/api/**"
gate  = "user"
set   = { user = "jwt:sub" }
"#;

/// The secret of tokens.
pub const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The header value of a token with these claims.
pub fn bearer(secret: &str, claims: &str) -> String {
    let signed = [r#"{"alg":"HS256"}"#, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes()));
    let signed = signed.join(".");
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("Bearer {signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
}

/// Claims that are valid for an hour.
pub fn claims(user: &str, audience: &str) -> String {
    let hour = Duration::from_secs(3_600);
    let end = (SystemTime::now() + hour).duration_since(UNIX_EPOCH).unwrap().as_secs();
    format!(r#"{{"sub":"{user}","aud":"{audience}","exp":{end}}}"#)
}

#[test]
fn the_claims_of_a_verified_token_name_the_caller() {
    let file = catalog_file(TOKENS);
    fs::write(file.with_file_name("jwt.secret"), format!("{SECRET}\n")).unwrap();
    let server = TestServer::from_file(&file);
    let api = |token: &str| ask(&server, "GET /api/x", &[("Authorization", token)]);
    let ana = bearer(SECRET, &claims("ana", "api"));
    assert_eq!([api(&ana).0, api(&ana).0, api(&ana).0], [200, 200, 429]);
    assert_eq!(api(&bearer(SECRET, &claims("bob", "api"))).0, 200);
    for (token, code) in [
        (bearer("another secret of 32 bytes or more", &claims("eve", "api")), "jwt-signature"),
        (bearer(SECRET, &claims("eve", "other")), "jwt-audience"),
        (bearer(SECRET, r#"{"sub":"eve","aud":"api","exp":1}"#), "jwt-expired"),
        ("Bearer x".to_owned(), "jwt-malformed"),
    ] {
        let (status, found, body) = api(&token);
        assert_eq!((status, found.as_str()), (401, code));
        assert!(!body.contains("eve"), "{body}");
    }
    assert_eq!(api("Basic YTpi").1, "missing-attribute");
    assert_eq!(ask(&server, "GET /api/x", &[]).1, "missing-attribute");
}

#[test]
fn a_route_that_reads_claims_needs_keys() {
    let without = TOKENS.replace("secret_file = \"jwt.secret\"\n", "");
    let file = catalog_file(&without);
    let lint = crate::test_server::binary().arg("lint").arg(&file).output().unwrap();
    let text = String::from_utf8(lint.stderr).unwrap() + &String::from_utf8(lint.stdout).unwrap();
    assert!(!lint.status.success() && text.contains("misplaced-setting"), "{text}");
    assert!(text.contains("jwks_file or secret_file"), "{text}");
}
