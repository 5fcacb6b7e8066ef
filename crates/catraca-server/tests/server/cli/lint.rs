//! `catraca lint`.

use crate::cli::test_dir::TestDir;

const GOOD: &str = r#"
[policy.login]
by     = ["ip"]
window = "10 per 15m"
block  = "30m"

[policy.pay]
by     = ["ip"]
window = "60 per 1m"

[gate.front]
policies = ["login", "pay"]

[[route]]
match = "POST /login"
gate  = "front"
"#;

const TWENTY: &str = include_str!("../../../../catraca-core/tests/fixtures/catalog/twenty.toml");

#[test]
fn a_good_catalog_is_told_in_one_line() {
    let output = TestDir::with_file("shop.toml", GOOD).run(&["lint", "shop.toml"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let expected = "shop.toml: ok: 2 policies, 1 gate, 1 route, revision ";
    let revision = output.out.strip_prefix(expected).unwrap_or_else(|| panic!("{}", output.out));
    assert_eq!(revision.trim_end().len(), 16, "{revision}");
}

#[test]
fn a_catalog_may_be_given_as_an_option_but_not_in_both_ways() {
    let dir = TestDir::with_file("shop.toml", GOOD);
    let expected = dir.run(&["lint", "shop.toml"]).out;
    for option in ["-c", "--catalog", "--config"] {
        let output = dir.run(&["lint", option, "shop.toml"]);
        assert_eq!((output.code, &output.out), (Some(0), &expected), "{option}: {}", output.err);
        let output = dir.run(&["lint", "shop.toml", option, "shop.toml"]);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{option}");
        assert!(output.err.contains("cannot be used with"), "{}", output.err);
    }
}

#[test]
fn twenty_mistakes_are_twenty_located_errors() {
    let output = TestDir::with_file("bad.toml", TWENTY).run(&["lint", "bad.toml"]);
    assert_eq!((output.code, output.err.as_str()), (Some(1), ""));
    let end = "\nbad.toml: refused: 20 errors\nMore on a code: catraca lint --explain ";
    assert!(output.out.contains(end), "{}", output.out);
    let positions: Vec<_> =
        output.out.lines().filter(|line| line.contains("--> bad.toml:")).collect();
    assert_eq!(positions.len(), 20, "{}", output.out);
    assert_eq!(output.out.lines().filter(|line| line.starts_with("error[")).count(), 20);
    assert!(output.out.lines().filter(|line| line.contains("^")).count() >= 20);
    let first = "\
error[unknown-field]: a policy has no field `windw`
 --> bad.toml:6:1
  |
6 | windw  = \"10 per 15m\"
  | ^^^^^
  |
  = fix: did you mean `window`?
";
    assert!(output.out.contains(first), "{}", output.out);
}

#[test]
fn json_has_one_object_per_file() {
    let dir = TestDir::with_file("shop.toml", GOOD);
    dir.write("bad.toml", TWENTY);
    let output = dir.run(&["lint", "-o", "json", "shop.toml", "bad.toml"]);
    assert_eq!(output.code, Some(1));
    let [good, bad] = &output.json()[..] else { panic!("{}", output.out) };
    assert_eq!(good["ok"], true);
    assert_eq!(
        (&good["policies"], &good["gates"], &good["routes"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(good["diagnostics"].as_array().map(Vec::len), Some(0));
    assert_eq!(
        (&bad["ok"], &bad["errors"], &bad["revision"]),
        (&false.into(), &20.into(), &().into())
    );
    let first = &bad["diagnostics"][0];
    assert_eq!(first["code"], "unknown-field");
    assert_eq!(
        (&first["line"], &first["column"], &first["text"]),
        (&6.into(), &1.into(), &"windw".into())
    );
    assert_eq!((&first["file"], &first["severity"]), (&"bad.toml".into(), &"error".into()));
    assert!(first["fix"].as_str().is_some_and(|fix| fix.contains("window")));
}

/// covers: B-39
#[test]
fn a_warning_fails_only_when_strict() {
    let shorter = GOOD.replace("block  = \"30m\"", "block  = \"5m\"");
    let dir = TestDir::with_file("shop.toml", &shorter);
    let output = dir.run(&["lint", "shop.toml"]);
    assert_eq!(output.code, Some(0));
    assert!(output.out.contains("warning["), "{}", output.out);
    assert!(output.out.contains("--> shop.toml:5:"), "{}", output.out);
    assert!(output.out.contains(", 1 warning\n"), "{}", output.out);
    assert_eq!(dir.run(&["lint", "--strict", "shop.toml"]).code, Some(1));
}

#[test]
fn a_file_that_cannot_be_read_exits_2() {
    let output = TestDir::new().run(&["lint", "nowhere.toml"]);
    assert_eq!((output.code, output.out.as_str()), (Some(2), ""));
    assert!(output.err.starts_with("catraca: cannot read nowhere.toml: "), "{}", output.err);
}

#[test]
fn nothing_is_coloured_when_nobody_watches() {
    let output = TestDir::with_file("bad.toml", TWENTY).run(&["lint", "bad.toml"]);
    assert!(!output.out.contains('\u{1b}'), "{}", output.out);
}

/// Regression: an endless file was read until memory was full, and a pipe was waited for without
/// end.
#[test]
fn only_regular_files_called_toml_are_included() {
    let dir = TestDir::new();
    dir.write("passwd", "root:x:0:0\n");
    std::fs::create_dir(dir.path("folder.toml")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(dir.path("pipe.toml")).status();
    assert!(pipe.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", dir.path("endless.toml")).unwrap();
    for (name, why) in [
        ("passwd", "the name of an included file must end in .toml"),
        ("/dev/zero", "the name of an included file must end in .toml"),
        ("folder.toml", "it is not a regular file"),
        ("pipe.toml", "it is not a regular file"),
        ("endless.toml", "it is not a regular file"),
    ] {
        dir.write("shop.toml", format!("include = [\"{name}\"]\n{GOOD}"));
        let output = dir.run(&["lint", "shop.toml"]);
        assert_eq!(output.code, Some(1), "{name}");
        let message = format!("error[include-unreadable]: `{name}` cannot be read: {why}");
        assert!(output.out.contains(&message), "{}", output.out);
        assert!(!output.out.contains("root:x"), "{}", output.out);
    }
}

/// A pipe as the catalog itself is intended; it is read only up to the size limit.
#[test]
fn a_catalog_may_come_through_a_pipe_and_is_read_to_its_bound() {
    let dir = TestDir::new();
    let output = dir.run_with_stdin(&["lint", "/dev/stdin"], GOOD.as_bytes());
    assert_eq!(output.code, Some(0), "{}", output.err);
    let output = dir.run(&["lint", "/dev/zero"]);
    assert_eq!(output.code, Some(1));
    assert!(output.out.contains("error[too-large]"), "{}", output.out);
}

/// Regression: the same file under another path was read twice, and its names were duplicates.
#[test]
fn a_file_is_one_file_however_it_is_spelt() {
    let dir =
        TestDir::with_file("shop.toml", &format!("include = [\"./a.toml\", \"a.toml\"]\n{GOOD}"));
    std::fs::create_dir(dir.path("sub")).unwrap();
    dir.write("a.toml", "[policy.a]\nby = []\nwindow = \"1 per 1s\"\n");
    let output = dir.run(&["lint", "shop.toml"]);
    assert_eq!(output.code, Some(0), "{}", output.out);
    assert!(output.out.contains("3 policies"), "{}", output.out);
    for (root, back) in [("shop.toml", "./shop.toml"), ("./shop.toml", "sub/../shop.toml")] {
        dir.write("a.toml", format!("include = [\"{back}\"]\n"));
        let output = dir.run(&["lint", root]);
        assert_eq!(output.code, Some(1));
        assert!(output.out.contains("error[include-cycle]"), "{}", output.out);
        assert!(!output.out.contains("duplicate-name"), "{}", output.out);
    }
}

/// Regression: `catraca lint bad.toml | head -1` exited with 0 for an invalid catalog.
#[test]
fn the_exit_code_does_not_depend_on_who_reads_on() {
    let dir = TestDir::with_file("bad.toml", TWENTY);
    dir.write("shop.toml", GOOD);
    dir.write("differs.scenario.toml", DIFFERS);
    for (args, code) in [
        (&["lint", "bad.toml"][..], 1),
        (&["lint", "-o", "json", "bad.toml", "shop.toml"], 1),
        (&["lint", "shop.toml"], 0),
        (&["test", "differs.scenario.toml"], 1),
        (&["explain", "-c", "shop.toml", "login", "ip=198.51.100.7"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = dir.command(args).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

/// Regression: a closed standard error made the process panic and exit with 101.
#[test]
fn nor_on_who_reads_what_is_wrong() {
    let dir = TestDir::with_file("bad.toml", TWENTY);
    for args in [&["explain", "-c", "bad.toml", "login"][..], &["lint", "none.toml"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = dir.command(args).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}

const DIFFERS: &str = "catalog = \"shop.toml\"\n[[scenario]]\nname = \"a\"\n[[scenario.step]]\n\
                       check = { gate = \"login\", subject = { ip = \"198.51.100.7\" } }\n\
                       expect = { allowed = false }\n";

/// `catraca lint --explain` describes a code.
#[test]
fn a_code_is_explained_with_its_example() {
    let dir = TestDir::with_file("shop.toml", GOOD);
    let output = dir.run(&["lint", "--explain", "bad-rate"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(
        output.out.starts_with("bad-rate: A text that is not a rate. *(error)*\n"),
        "{}",
        output.out
    );
    assert!(
        output.out.contains("error[bad-rate]") && output.out.contains("fix: "),
        "{}",
        output.out
    );
    let output = dir.run(&["lint", "--explain", "bad-rat"]);
    assert_eq!((output.code, output.out.as_str()), (Some(2), ""));
    assert!(output.err.ends_with("did you mean `bad-rate`?\n"), "{}", output.err);
    let clean = dir.run(&["lint", "shop.toml"]);
    assert!(!clean.out.contains("--explain"), "{}", clean.out);
}

/// Regression: errors of a key were found only when the server started, and without a position.
#[test]
fn mistakes_of_keys_are_located() {
    let hash = format!("blake3:{}", "0f".repeat(32));
    let key = "catraca_qnjuxtezgpuwxvh2kgaw3fnmnhjlmmg4ea4xtxeejskt3qfl5cza";
    let text = format!(
        "{GOOD}\n[[auth.key]]\nname = \"ci\"\nrole = \"chek\"\nhash = \"{hash}\"\n\
         [[auth.key]]\nname = \"a b\"\nrole = \"read\"\nhash = \"{key}\"\n\
         [[auth.key]]\nrole = \"read\"\nhash = \"{hash}\"\nfix = {{ ip = \"x\" }}\n"
    );
    let dir = TestDir::with_file("keys.toml", &text);
    let output = dir.run(&["lint", "keys.toml"]);
    assert_eq!(output.code, Some(1));
    for text in [
        "did you mean `check`?",
        "`a b` cannot name a key",
        "this is an API key, and must be its hash",
        "the field `name` is missing",
        "another key has the same hash",
        "the value is not an address",
    ] {
        assert!(output.out.contains(text), "{text}: {}", output.out);
    }
    assert!(!output.out.contains("qnjuxtezg"), "the key is shown: {}", output.out);
}

#[cfg(unix)]
#[test]
fn a_secret_that_others_can_read_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::with_file("shop.toml", GOOD);
    let secret = dir.path("catraca.secret");
    std::fs::write(&secret, "00".repeat(32)).unwrap();
    let lint = |mode| {
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        dir.run(&["lint", "--strict", "shop.toml"])
    };
    let output = lint(0o644);
    assert_eq!(output.code, Some(1), "{}", output.out);
    assert!(output.out.contains("readable-secret") && output.out.contains("chmod 600"));
    assert_eq!(lint(0o600).code, Some(0));
    let output = dir.run(&["lint", "--explain", "readable-secret"]);
    assert!(output.out.contains("other users"), "{}", output.out);
}
