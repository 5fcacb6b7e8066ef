//! Rotation of the secret: blocks stay active, subjects are found, and old pseudonyms go out of
//! use.

use std::fs;

use crate::http::admin::{
    CATALOG, CUSTOMER, PAYER, call, customer, expect_durable, expect_ok, payer, reason,
};
use crate::test_server::{TestServer, binary, catalog_file};

const NEW: &str = "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";

fn stop(server: TestServer) {
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
}

fn pseudonyms(server: &TestServer, attribute: &str, value: &str) -> Vec<String> {
    let found =
        expect_ok(server, &format!("GET /v1/blocks?attribute={attribute}&value={value}"), "");
    let blocks = found["blocks"].as_array().unwrap();
    blocks.iter().map(|block| block["subject"][attribute].as_str().unwrap().to_owned()).collect()
}

/// covers: B-14, X-26
#[test]
fn a_new_secret_above_the_old_one_frees_nobody() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let order = |subject: &str, policy: &str| {
        format!(r#"{{"policy":"{policy}","subject":{subject},"for":"1h","reason":"fraud"}}"#)
    };
    expect_durable(&server, "POST /v1/blocks", &order(&payer(), "lookup"));
    expect_durable(&server, "PUT /v1/facts/customer/customer-4711", r#"{"facts":{"plan":"gold"}}"#);
    let listed = r#"{"attribute":"customer","value":"listed-one"}"#;
    expect_durable(&server, "POST /v1/blocklist", listed);
    let old = pseudonyms(&server, "payer", PAYER);
    stop(server);

    let secret = file.with_file_name("catraca.secret");
    let before = fs::read_to_string(&secret).unwrap();
    fs::write(&secret, format!("{NEW}\n{before}")).unwrap();
    let server = TestServer::from_file(&file);
    assert_eq!(reason(&server, "lookup", &payer()), "blocked");
    assert_eq!(pseudonyms(&server, "payer", PAYER), old, "found by the real value");
    let gold = [0; 3].map(|_| reason(&server, "api", &customer()));
    assert_eq!(gold, ["ok"; 3], "the fact of {CUSTOMER} is known");
    assert_eq!(reason(&server, "api", r#"{"customer":"listed-one"}"#), "blocklisted");
    let other = r#"{"payer":"11144477735"}"#;
    expect_durable(&server, "POST /v1/blocks", &order(other, "lookup"));
    let new = pseudonyms(&server, "payer", "11144477735");
    assert_ne!(new[0][..3], old[0][..3], "the pseudonyms must differ: {new:?} {old:?}");
    stop(server);

    // Without the old secret the records could not be matched, so the start is refused.
    fs::write(&secret, format!("{NEW}\n")).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let output = binary().args(serve).arg(&file).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("bring the old secret back"), "{stderr}");
    assert!(!stderr.contains(NEW) && output.stdout.is_empty(), "{stderr}");
    fs::write(&secret, format!("{NEW}\n{before}")).unwrap();
    let server = TestServer::from_file(&file);
    assert_eq!(call(&server, "GET /v1/blocks", "").0, 200);
}
