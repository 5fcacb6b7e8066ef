//! `catraca init`, `presets`, `variables` and `hash`.

use std::fs;

use crate::cli::test_dir::TestDir;

fn names(dir: &TestDir) -> Vec<String> {
    let listed = dir.run(&["presets"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    listed.out.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn every_preset_is_written_and_passes_its_scenarios() {
    let dir = TestDir::new();
    let names = names(&dir);
    assert_eq!(names.len(), 6, "{names:?}");
    for name in &names {
        let written = dir.run(&["init", name]);
        assert_eq!(written.code, Some(0), "{written:?}");
        assert!(written.out.contains(&format!("catraca serve -c {name}/catalog.toml")));
        let folder = fs::read_dir(dir.path(name)).unwrap();
        let files = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let files: Vec<String> = files.collect();
        assert!(files.contains(&"README.md".to_owned()), "{files:?}");
        let lint = dir.run(&["lint", &format!("{name}/catalog.toml")]);
        assert_eq!(lint.code, Some(0), "{lint:?}");
        let scenarios = files.iter().filter(|file| file.ends_with(".scenario.toml"));
        for scenario in scenarios {
            let tested = dir.run(&["test", &format!("{name}/{scenario}")]);
            assert_eq!(tested.code, Some(0), "{tested:?}");
        }
    }
}

/// The commands in a README, `$ catraca …` or in backticks.
fn commands(readme: &str) -> Vec<String> {
    let lines = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    let inline = readme.split('`').filter(|text| !text.contains('\n'));
    let all = lines.chain(inline).filter_map(|text| text.strip_prefix("catraca "));
    all.map(|text| text.replace('…', "x")).collect()
}

/// Regression: a README named options that the command does not have.
#[test]
fn the_commands_of_the_readmes_are_accepted() {
    let dir = TestDir::new();
    for name in names(&dir) {
        assert_eq!(dir.run(&["init", &name]).code, Some(0));
        let readme = fs::read_to_string(dir.path(&name).join("README.md")).unwrap();
        let commands = commands(&readme);
        assert!(commands.len() >= 2, "{name}: {commands:?}");
        for command in commands {
            // With `--help`, the arguments before it are parsed and nothing is done.
            let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
            let parsed = dir.run(&args);
            assert_eq!(parsed.code, Some(0), "{name}: {command}: {parsed:?}");
        }
    }
}

#[test]
fn init_overwrites_nothing_and_names_the_presets() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["init", "window-block", "limits"]).code, Some(0));
    dir.write("limits/README.md", "mine");
    let again = dir.run(&["init", "window-block", "limits"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("catalog.toml, README.md"), "{again:?}");
    // One file is enough, and then none is written.
    fs::create_dir(dir.path("half")).unwrap();
    dir.write("half/README.md", "mine");
    assert_eq!(dir.run(&["init", "booking", "half"]).code, Some(2));
    assert_eq!(fs::read_to_string(dir.path("half/README.md")).unwrap(), "mine");
    assert_eq!(fs::read_dir(dir.path("half")).unwrap().count(), 1);
    let unknown = dir.run(&["init", "windowblock"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("soft-ban, dict, window-block"), "{unknown:?}");
}

/// The lines NAME=VALUE of `catraca variables`.
fn variables(dir: &TestDir, file: &str) -> Vec<String> {
    let printed = dir.run(&["variables", file]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    printed.out.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// covers: X-35, B-78
#[test]
fn values_of_either_source_are_imported_in_its_own_unit_and_printed_again() {
    let dir = TestDir::new();
    let seconds =
        "RATE_LIMIT_IP: 7\nRATE_LIMIT_WINDOW_SECONDS: 90\nRATE_LIMIT_BLOCK_DURATION_SECONDS: 120\n";
    dir.write("seconds.yaml", seconds);
    let written = dir.run(&["init", "window-block", "--env", "seconds.yaml"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let printed = variables(&dir, "window-block/catalog.toml");
    for line in seconds.lines() {
        assert!(printed.contains(&line.replace(": ", "=")), "{line}: {printed:?}");
    }
    let millis = "RATE_LIMIT_GLOBAL_REQUESTS=300\nRATE_LIMIT_GLOBAL_WINDOW=90000\n\
                  RATE_LIMIT_PUBLIC_REQUESTS=30\nRATE_LIMIT_PUBLIC_WINDOW=30000\n\
                  OPTIMISTIC_LOCK_DEFAULT_TTL=6000\nOPTIMISTIC_LOCK_APPOINTMENT_TTL=15000\n\
                  OPTIMISTIC_LOCK_PAYMENT_TTL=45000\n";
    dir.write("millis.env", format!("# ours\nNODE_ENV=production\n{millis}"));
    let written = dir.run(&["init", "booking", "--env", "millis.env"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    assert!(written.out.contains("not of this preset: NODE_ENV"), "{written:?}");
    assert!(written.out.contains("with the preset's own values\n\nnext:"), "{written:?}");
    let printed = variables(&dir, "booking/catalog.toml");
    for line in millis.lines() {
        assert!(printed.contains(&line.to_owned()), "{line}: {printed:?}");
    }
    for preset in ["window-block", "booking"] {
        let tested = dir.run(&["test", &format!("{preset}/{preset}.scenario.toml")]);
        assert_eq!(tested.code, Some(0), "{tested:?}");
    }
    // Ninety seconds in both, in any unit of the source.
    for (file, gate, subject) in [
        ("window-block/catalog.toml", "ip", "ip=198.51.100.7"),
        ("booking/catalog.toml", "global", "ip=198.51.100.7"),
    ] {
        let shown = dir.run(&["explain", "-c", file, gate, subject]);
        assert!(shown.out.contains("per 90s") || shown.out.contains("per 1m30s"), "{shown:?}");
    }
}

/// The profile that the preset ships, taken over into its own catalog.
///
/// covers: 004-55
#[test]
fn the_production_profile_is_accepted_and_printed_again() {
    let profile = include_str!("../../../../../presets/booking/production.env");
    let dir = TestDir::with_file("production.env", profile);
    let written = dir.run(&["init", "booking", "--env", "production.env"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let printed = variables(&dir, "booking/catalog.toml");
    let values: Vec<&str> = profile.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(values.len(), 4, "{values:?}");
    for value in values {
        assert!(printed.contains(&value.to_owned()), "{value}: {printed:?}");
    }
}

/// covers: B-78
#[test]
fn a_variable_of_another_source_is_refused_with_its_owner() {
    let dir = TestDir::with_file("other.env", "RATE_LIMIT_WINDOW_SECONDS=1\n");
    let refused = dir.run(&["init", "booking", "--env", "other.env"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("of the preset window-block"), "{refused:?}");
    assert!(!dir.path("booking").exists());
    for (line, why) in [
        ("RATE_LIMIT_GLOBAL_REQUEST=1", "has no variable RATE_LIMIT_GLOBAL_REQUEST"),
        ("RATE_LIMIT_GLOBAL_REQUESTS=many", "would be invalid"),
        ("RATE_LIMIT_GLOBAL_REQUESTS=1\\\" per 1s", "no value needs"),
        ("RATE_LIMIT_GLOBAL_REQUESTS", "not NAME=VALUE"),
        ("RATE_LIMIT_GLOBAL_REQUESTS=", "RATE_LIMIT_GLOBAL_REQUESTS is empty"),
    ] {
        dir.write("wrong.env", line);
        let refused = dir.run(&["init", "booking", "--env", "wrong.env"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(why), "{line}: {refused:?}");
    }
}

#[test]
fn a_password_stays_in_the_environment() {
    let dir = TestDir::with_file("app.env", "REDIS_URL=redis://:hunter2@127.0.0.1:6379\n");
    let written = dir.run(&["init", "booking", "--env", "app.env"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let why = "\nREDIS_URL has a password; leave it in the environment\n";
    assert!(written.out.contains(why), "{written:?}");
    dir.write("other.env", "NODE_ENV=production\n");
    let other = dir.run(&["init", "booking", "other", "--env", "other.env"]);
    assert!(other.out.contains("no value of this preset is in the file\n"), "{other:?}");
    for entry in fs::read_dir(dir.path("booking")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
    // A catalog that has it anyway is not printed.
    let catalog = fs::read_to_string(dir.path("booking/catalog.toml")).unwrap();
    let url = "${REDIS_URL:redis://:hunter2@127.0.0.1:6379}";
    assert!(catalog.contains("${REDIS_URL:memory:}"));
    dir.write("own.toml", catalog.replace("${REDIS_URL:memory:}", url));
    let printed = dir.run(&["variables", "own.toml"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(!printed.out.contains("hunter2"), "{printed:?}");
}

#[test]
fn a_token_is_known_by_its_hash_alone() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["init", "window-block"]).code, Some(0));
    let catalog = fs::read_to_string(dir.path("window-block/catalog.toml")).unwrap();
    for token in ["abc123", "xyz789"] {
        let hash = dir.run_with_stdin(&["hash", "token"], token.as_bytes());
        assert_eq!(hash.code, Some(0), "{hash:?}");
        assert!(catalog.contains(&format!("[facts.token.\"{}\"]", hash.out.trim())), "{hash:?}");
        let with_newline = dir.run_with_stdin(&["hash", "token"], format!("{token}\n").as_bytes());
        assert_eq!(with_newline.out, hash.out);
    }
    let file = "window-block/catalog.toml";
    let known = dir.run(&["explain", "-c", file, "api", "token=abc123", "ip=198.51.100.7"]);
    assert!(known.out.contains("100 per 1s"), "{known:?}");
    let unknown = dir.run(&["explain", "-c", file, "api", "token=other", "ip=198.51.100.7"]);
    assert!(unknown.out.contains("10 per 1s"), "{unknown:?}");
    assert_eq!(dir.run(&["hash", "token"]).code, Some(2), "no value");
    dir.write("bad.toml", "[facts.token.'blake3:00']\nplan = 'x'\n");
    let bad = dir.run(&["lint", "bad.toml"]);
    assert!(bad.out.contains("64 hexadecimal digits"), "{bad:?}");
    let policy = "[policy.p]\nby = ['token']\nwindow = '1 per 1s'\n";
    for place in [
        "tier = [ { when = { token = 'blake3:00' }, window = '2 per 1s' } ]",
        "[[blocklist]]\nattribute = 'token'\nvalue = 'blake3:00'",
        "[[allowlist]]\nattribute = 'token'\nvalue = 'blake3:00'",
    ] {
        dir.write("bad.toml", format!("{policy}{place}\n"));
        let bad = dir.run(&["lint", "bad.toml"]);
        assert_eq!(bad.code, Some(1), "{bad:?}");
        assert!(bad.out.contains("only facts may name a value by its hash"), "{bad:?}");
    }
}

/// covers: B-76
#[test]
fn every_policy_states_what_happens_without_its_store() {
    for (name, text) in [
        ("soft-ban", include_str!("../../../../../presets/soft-ban/catalog.toml")),
        ("dict", include_str!("../../../../../presets/dict/catalog.toml")),
        ("window-block", include_str!("../../../../../presets/window-block/catalog.toml")),
        ("checkout", include_str!("../../../../../presets/checkout/catalog.toml")),
        ("booking", include_str!("../../../../../presets/booking/catalog.toml")),
        ("llm-budget", include_str!("../../../../../presets/llm-budget/catalog.toml")),
    ] {
        let catalog: toml::Table = text.parse().unwrap();
        for (policy, fields) in catalog["policy"].as_table().unwrap() {
            for field in ["on_failure", "hold"] {
                assert!(fields.get(field).is_some(), "{name}: {policy}: no {field}");
            }
            let says_so =
                ["on_missing", "otherwise"].iter().any(|field| fields.get(field).is_some());
            assert!(says_so, "{name}: {policy}: neither on_missing nor otherwise");
        }
    }
}
