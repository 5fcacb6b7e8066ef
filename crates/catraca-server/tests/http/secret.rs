//! The secret is changed: blocks stand, people are found, and the old names go out of use.

use std::fs;

use crate::admin::{CATALOG, CUSTOMER, PAYER, call, customer, done, durable, payer, reason};
use crate::served::{Served, binary, file};

const NEW: &str = "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";

fn stopped(served: Served) {
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success(), "{said}");
}

fn names(served: &Served, attribute: &str, value: &str) -> Vec<String> {
    let found = done(served, &format!("GET /v1/blocks?attribute={attribute}&value={value}"), "");
    let blocks = found["blocks"].as_array().unwrap();
    blocks.iter().map(|block| block["subject"][attribute].as_str().unwrap().to_owned()).collect()
}

/// covers: B-14, X-26
#[test]
fn a_new_secret_above_the_old_one_frees_nobody() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let order = |subject: &str, policy: &str| {
        format!(r#"{{"policy":"{policy}","subject":{subject},"for":"1h","reason":"fraud"}}"#)
    };
    durable(&served, "POST /v1/blocks", &order(&payer(), "lookup"));
    durable(&served, "PUT /v1/facts/customer/customer-4711", r#"{"facts":{"plan":"gold"}}"#);
    let listed = r#"{"attribute":"customer","value":"listed-one"}"#;
    durable(&served, "POST /v1/blocklist", listed);
    let old = names(&served, "payer", PAYER);
    stopped(served);

    let secret = file.with_file_name("catraca.secret");
    let before = fs::read_to_string(&secret).unwrap();
    fs::write(&secret, format!("{NEW}\n{before}")).unwrap();
    let served = Served::of(&file);
    assert_eq!(reason(&served, "lookup", &payer()), "blocked");
    assert_eq!(names(&served, "payer", PAYER), old, "found by the real value");
    let gold = [0; 3].map(|_| reason(&served, "api", &customer()));
    assert_eq!(gold, ["ok"; 3], "the fact of {CUSTOMER} is known");
    assert_eq!(reason(&served, "api", r#"{"customer":"listed-one"}"#), "blocklisted");
    let other = r#"{"payer":"11144477735"}"#;
    durable(&served, "POST /v1/blocks", &order(other, "lookup"));
    let new = names(&served, "payer", "11144477735");
    assert_ne!(new[0][..3], old[0][..3], "another secret, another id: {new:?} {old:?}");
    stopped(served);

    // Without the old one nothing would be found, so nothing starts.
    fs::write(&secret, format!("{NEW}\n")).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let ran = binary().args(serve).arg(&file).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("bring the old secret back"), "{said}");
    assert!(!said.contains(NEW) && ran.stdout.is_empty(), "{said}");
    fs::write(&secret, format!("{NEW}\n{before}")).unwrap();
    let served = Served::of(&file);
    assert_eq!(call(&served, "GET /v1/blocks", "").0, 200);
}
