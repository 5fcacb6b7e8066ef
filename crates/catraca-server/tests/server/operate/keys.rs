//! API keys of the command line: read from a file or the environment, never from an argument, and
//! never printed.

use std::fs;

use crate::keys::keygen;
use crate::operate::helpers::{CATALOG, CliOutput, IP, command, run, url};
use crate::test_server::{TestServer, catalog_file};

#[test]
fn a_key_comes_from_a_file_or_from_the_environment() {
    let admin = keygen(&["--role", "admin", "--name", "ana"]);
    let check = keygen(&["--role", "check"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}\n{}\n{}", admin.table, check.table));
    let ana = catalog_file("").with_file_name("ana.key");
    fs::write(&ana, format!("{}\n", admin.key)).unwrap();
    let ana = ana.to_str().unwrap();

    let me = run(&server, &["whoami", "--key-file", ana, "-o", "json"]);
    assert_eq!(me.code, Some(0), "{}", me.err);
    assert!(me.out.contains(r#""operator":"ana""#), "{}", me.out);
    assert!(me.out.contains(r#""role":"admin""#), "{}", me.out);
    let with = |key: &str, args: &[&str]| {
        CliOutput::new(command(&url(&server), args).env("CATRACA_KEY", key).output().unwrap())
    };
    assert_eq!(with(&check.key, &["check", "login", IP]).code, Some(0));
    assert!(with(&check.key, &["whoami"]).out.contains("role       check\n"));
    // `--key-file` takes precedence over the environment.
    assert_eq!(with("nonsense", &["blocks", "list", "--key-file", ana]).code, Some(0));

    let output = with(&check.key, &["blocks", "list"]);
    output.assert_exit(2, &["403 role-too-low", "admin", "catraca whoami"]);
    run(&server, &["blocks", "list"]).assert_exit(2, &["401 no-key", "--key-file", "CATRACA_KEY"]);
    let wrong = format!("{}x", admin.key);
    let output = with(&wrong, &["blocks", "list"]);
    output.assert_exit(2, &["401 unknown-key", "CATRACA_KEY"]);
    assert!(!output.err.contains(&admin.key), "{}", output.err);
}

#[test]
fn a_key_file_that_holds_no_key_is_named_and_not_shown() {
    let server = TestServer::demo();
    let path = catalog_file("").with_file_name("bad.key");
    let name = path.to_str().unwrap();
    run(&server, &["whoami", "--key-file", name])
        .assert_exit(2, &["cannot read the key file", name]);
    for text in ["", "two words of a secret", "a secret\nand more"] {
        fs::write(&path, text).unwrap();
        let output = run(&server, &["whoami", "--key-file", name]);
        output.assert_exit(2, &["contains no key", name]);
        assert!(!output.err.contains("secret"), "{}", output.err);
    }
}

#[test]
fn an_operator_of_several_namespaces_names_one() {
    let admin = keygen(&["--role", "admin", "--name", "ana"]);
    let shop = keygen(&["--role", "check", "--namespace", "shop"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}\n{}\n{}", admin.table, shop.table));
    let with = |args: &[&str]| {
        let output = command(&url(&server), args).env("CATRACA_KEY", &admin.key).output();
        CliOutput::new(output.unwrap())
    };
    for args in [
        &["blocks", "add", "login", IP, "--for", "1h"][..],
        &["blocks", "release", IP],
        &["reset", "login", IP],
        &["peek", "login", IP],
    ] {
        with(args).assert_exit(2, &["default", "shop"]);
        let there = [args, &["--namespace", "shop"]].concat();
        assert_ne!(with(&there).code, Some(2), "{args:?}");
    }
    with(&["check", "login", IP, "--namespace", "shop"]).assert_exit(2, &["is for peek"]);
    with(&["blocks", "add", "login", IP, "--for", "1h", "--namespace", "shop"]);
    let list = with(&["blocks", "list"]);
    assert!(list.out.contains("namespace") && list.out.contains("shop"), "{}", list.out);
}

#[test]
fn support_sees_why_a_caller_is_denied_and_releases_it_with_a_reason_and_nothing_else() {
    let rui = keygen(&["--role", "support", "--name", "rui"]);
    let check = keygen(&["--role", "check"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}\n{}\n{}", rui.table, check.table));
    let with = |key: &str, args: &[&str]| {
        CliOutput::new(command(&url(&server), args).env("CATRACA_KEY", key).output().unwrap())
    };
    for _ in 0..3 {
        with(&check.key, &["check", "login", IP]);
    }
    let found = with(&rui.key, &["inspect", IP]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    for part in ["login", "blocked", "excess", "ip=198.51.100.7"] {
        assert!(found.out.contains(part), "{part} in {}", found.out);
    }
    assert!(with(&rui.key, &["blocks", "list"]).out.contains("198.51.100.7"));
    let listed = with(&rui.key, &["inspect", "ip=192.0.2.66"]);
    assert!(listed.out.contains("entry: 192.0.2.66, until it is removed"), "{}", listed.out);
    for list in ["blocklist", "allowlist"] {
        assert_eq!(with(&rui.key, &[list, "list"]).code, Some(0), "{list}");
    }
    let peek = with(&rui.key, &["peek", "login", IP]);
    assert_eq!(peek.code, Some(1), "{peek:?}");
    with(&rui.key, &["blocks", "release", IP, "--yes"]).assert_exit(2, &["reason-required"]);
    let released = with(&rui.key, &["blocks", "release", IP, "--yes", "--why", "she called"]);
    assert_eq!(released.code, Some(0), "{}", released.err);
    assert!(with(&rui.key, &["inspect", IP]).out.contains("There are no active blocks."));
    let audit = with(&rui.key, &["audit"]);
    assert!(audit.out.contains("ip=198.51.100.7"), "{audit:?}");
    for args in [
        &["check", "login", IP][..],
        &["blocks", "add", "login", IP, "--for", "1h"],
        &["reset", "login", IP],
        &["blocklist", "add", "192.0.2.1"],
        &["allowlist", "remove", "192.0.2.1"],
        &["config", "mode", "login", "off"],
        &["locks", "list"],
    ] {
        with(&rui.key, args).assert_exit(2, &["403 role-too-low"]);
    }
}
