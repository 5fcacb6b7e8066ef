//! Help, completions and manual pages.

use std::fs;

use crate::operate::helpers::{CliOutput, command};
use crate::test_server::catalog_file;

const VERBS: [&str; 21] = [
    "check",
    "peek",
    "settle",
    "credit",
    "blocks",
    "blocklist",
    "allowlist",
    "facts",
    "locks",
    "slots",
    "reset",
    "stats",
    "audit",
    "events",
    "config",
    "whoami",
    "privacy",
    "backup",
    "restore",
    "completions",
    "man",
];

fn run(args: &[&str]) -> CliOutput {
    let output = CliOutput::new(command("http://127.0.0.1:9", args).output().unwrap());
    assert_eq!(output.code, Some(0), "{args:?}: {}", output.err);
    output
}

#[test]
fn help_groups_the_verbs_and_each_shows_an_example() {
    let tour = run(&["--help"]).out;
    for verb in VERBS {
        assert!(tour.contains(&format!("\n  {verb} ")), "{verb}: {tour}");
        let help = run(&["help", verb]).out;
        assert!(help.contains(&format!("\n  catraca {verb}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(!help.contains("127.0.0.1:9]"), "no value of the environment: {help}");
    }
    for group in ["Write and test policies:", "Call a server:", "Operate a server:", "Options:"] {
        assert!(tour.contains(group), "{group}: {tour}");
    }
    assert!(tour.lines().all(|line| line.chars().count() <= 100), "{tour}");
}

#[test]
fn every_shell_gets_a_script_that_knows_the_verbs() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = run(&["completions", shell]).out;
        assert!(script.contains("blocklist") && script.contains("key-file"), "{shell}");
    }
    // bash must be able to parse the script.
    let script = catalog_file("").with_file_name("catraca.bash");
    fs::write(&script, run(&["completions", "bash"]).out).unwrap();
    let read = std::process::Command::new("bash").arg("-n").arg(&script).status().unwrap();
    assert!(read.success());
    let output =
        CliOutput::new(command("http://127.0.0.1:9", &["completions", "tcsh"]).output().unwrap());
    output.assert_exit(2, &["tcsh"]);
}

#[test]
fn there_is_a_page_for_every_verb() {
    let first = run(&["man"]).out;
    assert!(first.contains(".TH catraca 1"), "{first}");
    let folder = catalog_file("").with_file_name("man1");
    run(&["man", folder.to_str().unwrap()]);
    for verb in VERBS {
        let page = fs::read_to_string(folder.join(format!("catraca-{verb}.1"))).unwrap();
        assert!(page.contains("SYNOPSIS"), "{verb}");
        // Examples keep their line breaks, so that they can be copied.
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{verb}: {page}");
        // Every page that is referred to exists.
        let named = page.split(['\n', ' ']).filter_map(|word| word.strip_suffix("(1)"));
        for other in named.map(|word| word.replace('\\', "")) {
            assert!(folder.join(format!("{other}.1")).exists(), "{verb}: {other}");
        }
    }
    assert!(folder.join("catraca-blocks-release.1").exists());
}
