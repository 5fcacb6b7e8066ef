//! API keys: made by keygen, pasted into a catalog, sent, and refused.

use crate::keys::keygen;
use crate::test_server::{TestServer, binary, catalog_file};

const POLICY: &str = "[policy.login]\nby = ['tenant']\nwindow = '2 per 1h'\n\
                      [policy.bucket]\nby = ['tenant']\n\
                      bucket = { size = 5, refill = '1 per 1h' }\ncost = { default = 2 }\n";
const T1: &str = r#"{"gate":"login","subject":{"tenant":"t1"}}"#;
const NOBODY: &str = r#"{"gate":"login","subject":{}}"#;

/// Every invalid key gets the same response, byte for byte: it must not tell keys apart.
#[test]
fn unknown_and_malformed_keys_cannot_be_told_apart() {
    let key = keygen(&["--role", "check"]);
    let server = TestServer::with_catalog(&format!("{POLICY}{}", key.table));
    let whole = key.key.clone();
    let cut = &whole[..whole.len() - 1];
    let other = keygen(&["--role", "check"]).key;
    let long = "x".repeat(8_000);
    let upper = whole.to_uppercase();
    let first = server.request("POST /v1/check", &[("Authorization", "Bearer x")]);
    assert_eq!((first.status, first.problem_code().as_str()), (401, "unknown-key"));
    let challenge = first.header("www-authenticate");
    assert_eq!(challenge, Some("Bearer realm=\"catraca\", error=\"invalid_token\""));
    for value in [
        format!("Bearer {cut}"),
        format!("Bearer {other}"),
        format!("Bearer {upper}"),
        format!("Bearer {long}"),
        format!("Basic {whole}"),
        format!("Bearer{whole}"),
        format!("Bearer {whole} {whole}"),
        whole.clone(),
        "Bearer ".to_owned(),
        "\u{e9}".to_owned(),
    ] {
        let answer = server.request("POST /v1/check", &[("Authorization", &value)]);
        assert_eq!((answer.status, &answer.body), (401, &first.body), "{value}");
        assert_eq!(answer.header("www-authenticate"), challenge, "{value}");
    }
    let right = format!("bearer  {whole}");
    let twice = [("Authorization", right.as_str()), ("Authorization", right.as_str())];
    assert_eq!(server.request("POST /v1/check", &twice).status, 401);
    assert_eq!(server.request("POST /v1/check", &twice[..1]).status, 415);
}

#[test]
fn a_proxy_may_send_its_own_key_beside_the_callers() {
    let key = keygen(&["--role", "check"]);
    let server = TestServer::with_catalog(&format!(
        "[policy.a]\nby = ['ip']\nwindow = '9 per 1m'\n{}",
        key.table
    ));
    let request = "GET /v1/gates/a/authorize";
    let theirs = ("Authorization", "Bearer of-the-caller");
    assert_eq!(server.request(request, &[theirs, ("Catraca-Key", &key.key)]).status, 200);
    assert_eq!(server.request(request, &[theirs, ("Catraca-Key", "x")]).status, 401);
    assert_eq!(server.request(request, &[theirs]).status, 401);
}

/// covers: B-59, X-25
#[test]
fn keys_of_two_namespaces_share_no_count_no_ticket_and_no_bucket() {
    let [shop, bank] =
        ["shop", "bank"].map(|name| keygen(&["--role", "check", "--namespace", name]));
    let server = TestServer::with_catalog(&format!("{POLICY}{}{}", shop.table, bank.table));
    for _ in 0..2 {
        assert_eq!(shop.post(&server, "/v1/check", T1).json()["allowed"], true);
    }
    assert_eq!(shop.post(&server, "/v1/check", T1).json()["allowed"], false);
    assert_eq!(bank.post(&server, "/v1/check", T1).json()["remaining"], 1);
    let named = r#"{"gate":"login","namespace":"bank","subject":{"tenant":"t1"}}"#;
    assert_eq!(shop.post(&server, "/v1/check", named).problem_code(), "bad-field");
    let check = r#"{"gate":"bucket","subject":{"tenant":"t1"}}"#;
    let ticket =
        shop.post(&server, "/v1/check", check).json()["ticket"].as_str().unwrap().to_owned();
    let settle = format!(r#"{{"ticket":"{ticket}","outcome":{{"status":200}}}}"#);
    assert_eq!(bank.post(&server, "/v1/settle", &settle).problem_code(), "bad-ticket");
    assert_eq!(shop.post(&server, "/v1/settle", &settle).status, 200);
    let states = r#"{"subject":{"tenant":"t1"}}"#;
    let left = |key: &crate::keys::Key| {
        key.post(&server, "/v1/buckets/bucket", states).json()["balance"].clone()
    };
    assert_eq!((left(&shop), left(&bank)), (3.into(), 5.into()));
}

/// covers: B-59
#[test]
fn a_fixed_attribute_is_filled_in_and_nothing_else_is_believed() {
    let key = keygen(&["--role", "check"]);
    let route = "[[route]]\nmatch = 'GET /**'\ngate = 'login'\n\
                 set = { tenant = 'header:x-tenant' }\n\
                 [network]\ntrusted_proxies = ['127.0.0.1/32']\n";
    let server = TestServer::with_catalog(&format!(
        "{POLICY}{route}{}fix = {{ tenant = 't1' }}\n",
        key.table
    ));
    assert_eq!(key.post(&server, "/v1/check", NOBODY).json()["remaining"], 1);
    let other = r#"{"gate":"login","subject":{"tenant":"t2"}}"#;
    let subject = r#"{"subject":{"tenant":"t2"}}"#;
    let by_ref = r#"{"ref":"E","subject":{"tenant":"t2"},"outcome":{}}"#;
    let credit = r#"{"ref":"E","event":"p","subject":{"tenant":"t2"}}"#;
    for (path, body) in [
        ("/v1/check", other),
        ("/v1/peek", other),
        ("/v1/buckets", subject),
        ("/v1/buckets/bucket", subject),
        ("/v1/settle", by_ref),
        ("/v1/credit", credit),
    ] {
        let answer = key.post(&server, path, body);
        assert_eq!(
            (answer.status, answer.problem_code().as_str()),
            (403, "fixed-attribute"),
            "{path}"
        );
        assert!(!answer.body.contains("t1"), "{}", answer.body);
    }
    let list = key.post(&server, "/v1/check/batch", &format!("[{other},{T1}]")).json();
    assert_eq!((&list[0]["status"], &list[1]["remaining"]), (&403.into(), &0.into()));
    let own = ("Catraca-Key", key.key.as_str());
    let check_as = |tenant| {
        let headers = [own, ("X-Forwarded-Uri", "/x"), ("X-Tenant", tenant)];
        server.request("GET /v1/authorize", &headers).status
    };
    assert_eq!((check_as("t2"), check_as("t1")), (403, 429));
}

#[test]
fn with_keys_any_address_is_served_and_the_greeting_says_how_to_call() {
    let key = keygen(&["--role", "read"]);
    let by_address = "[policy.site]\nby = ['ip']\nwindow = '2 per 1h'\n";
    let text = format!("{POLICY}{by_address}{}", key.table);
    let server = TestServer::with_catalog(&text);
    assert!(server.greeting.contains("Authorization: Bearer KEY"), "{}", server.greeting);
    let anywhere = TestServer::listening_on("0.0.0.0:0", &text);
    let port = anywhere.address.rsplit(':').next().unwrap().to_owned();
    let mut connection = crate::raw_connection::RawConnection::open(&format!("127.0.0.1:{port}"));
    connection.post("/v1/check", T1);
    assert_eq!(connection.read_response().problem_code(), "no-key");
}

#[test]
fn a_mistake_in_a_key_stops_the_start_and_is_named() {
    let table = keygen(&["--role", "check", "--name", "ci"]).table;
    let changed = |from: &str, to: &str| table.replacen(from, to, 1);
    for (text, why) in [
        (changed("name", "nmae"), "a key has no field `nmae`"),
        (changed("\"check\"", "\"root\""), "`root` is not a valid value here"),
        (changed("blake3:", "md5:"), "write what `catraca keygen` prints"),
        (changed("\"ci\"", "\"a b\""), "`a b` cannot name a key"),
        (format!("{table}{table}"), "another key is called `ci` too"),
        (format!("{table}{}", changed("ci", "cd")), "another key has the same hash"),
        (format!("{table}namespace = ''\n"), "nothing cannot name a namespace"),
        (format!("{table}fix = {{ tenant = '' }}\n"), "the value is empty"),
        ("[auth]\nkeys = []\n".to_owned(), "an auth section has no field `keys`"),
        ("[auth]\nkey = 'x'\n".to_owned(), "expected tables such as [[auth.key]], found a text"),
        ("[server]\nhosts = ['http://a']\n".to_owned(), "write names without ports"),
    ] {
        let file = catalog_file(&format!("{POLICY}{text}"));
        let mut serve = binary();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
        let output = serve.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why) && stderr.contains(file.to_str().unwrap()), "{why}: {stderr}");
    }
}

#[test]
fn keygen_refuses_what_the_server_would() {
    for args in [&["--role", "check", "--name", "a b"][..], &["--role", "root"], &[]] {
        let output = binary().arg("keygen").args(args).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
    }
}
