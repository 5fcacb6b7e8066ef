//! Keys: from a file or the environment, never from the command line, never shown.

#[path = "../http/keys.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, of which these need a part")]
mod made;

use std::fs;

use crate::desk::{CATALOG, IP, Ran, command, run, url};
use crate::served::{Served, file};
use made::keygen;

#[test]
fn a_key_comes_from_a_file_or_from_the_environment() {
    let (admin, check) =
        (keygen(&["--role", "admin", "--name", "ana"]), keygen(&["--role", "check"]));
    let served = Served::with(&format!("{CATALOG}\n{}\n{}", admin.table, check.table));
    let ana = file("").with_file_name("ana.key");
    fs::write(&ana, format!("{}\n", admin.key)).unwrap();
    let ana = ana.to_str().unwrap();

    let me = run(&served, &["whoami", "--key-file", ana, "-o", "json"]);
    assert_eq!(me.code, Some(0), "{}", me.err);
    assert!(me.out.contains(r#""operator":"ana""#), "{}", me.out);
    assert!(me.out.contains(r#""role":"admin""#), "{}", me.out);
    let with = |key: &str, args: &[&str]| {
        Ran::of(command(&url(&served), args).env("CATRACA_KEY", key).output().unwrap())
    };
    assert_eq!(with(&check.key, &["check", "login", IP]).code, Some(0));
    assert!(with(&check.key, &["whoami"]).out.contains("role       check\n"));
    // The file that was named goes first.
    assert_eq!(with("nonsense", &["blocks", "list", "--key-file", ana]).code, Some(0));

    let ran = with(&check.key, &["blocks", "list"]);
    ran.says(2, &["403 role-too-low", "admin", "catraca whoami"]);
    run(&served, &["blocks", "list"]).says(2, &["401 no-key", "--key-file", "CATRACA_KEY"]);
    let wrong = format!("{}x", admin.key);
    let ran = with(&wrong, &["blocks", "list"]);
    ran.says(2, &["401 unknown-key", "CATRACA_KEY"]);
    assert!(!ran.err.contains(&admin.key), "{}", ran.err);
}

#[test]
fn a_key_file_that_holds_no_key_is_named_and_not_shown() {
    let served = Served::demo();
    let path = file("").with_file_name("bad.key");
    let name = path.to_str().unwrap();
    run(&served, &["whoami", "--key-file", name]).says(2, &["cannot read the key file", name]);
    for text in ["", "two words of a secret", "a secret\nand more"] {
        fs::write(&path, text).unwrap();
        let ran = run(&served, &["whoami", "--key-file", name]);
        ran.says(2, &["holds no key", name]);
        assert!(!ran.err.contains("secret"), "{}", ran.err);
    }
}
