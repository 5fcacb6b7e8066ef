//! Malformed, truncated and huge inputs: the reader returns a catalog or diagnostics, and never
//! panics.

use catraca_core::catalog::diagnostic::Severity;
use catraca_core::catalog::read::{GATE_POLICIES_MAX, IncludedFile, read};

use crate::helpers::{codes, diagnostics_of, fixture, read_text};

/// The texts that the tests truncate and modify.
fn texts() -> Vec<String> {
    ["good/example.toml", "good/everything.toml", "twenty.toml", "codes/syntax.toml"]
        .map(fixture)
        .into()
}

/// Reads a text and asserts that the result is consistent.
fn probe(text: &str) {
    let found = match read_text(text) {
        Ok(reading) => {
            assert!(reading.warnings.iter().all(|found| found.severity == Severity::Warning));
            reading.warnings
        }
        Err(refused) => {
            assert!(refused.errors().next().is_some(), "refused without an error: {text}");
            refused.all
        }
    };
    for found in &found {
        assert!(found.start <= found.end && found.end <= text.len(), "{found:?}");
        assert!(found.line <= text.lines().count() + 1, "{found:?}");
        assert!(!found.to_string().is_empty());
    }
}

///
#[test]
fn no_cut_of_a_catalog_makes_the_reader_panic() {
    for text in texts() {
        let cuts = (0..text.len()).filter(|at| text.is_char_boundary(*at));
        cuts.step_by(7).for_each(|at| probe(&text[..at]));
    }
}

#[test]
fn no_bent_byte_makes_the_reader_panic() {
    let replacements =
        [b'"', b'[', b']', b'{', b'}', b'\n', b'=', b'#', b'.', b'0', b'-', b'|', b'\\', 0];
    for text in texts() {
        for (at, byte) in (0..text.len()).zip(replacements.iter().cycle()).step_by(11) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = *byte;
            probe(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn no_lost_line_makes_the_reader_panic() {
    for text in texts() {
        let lines: Vec<&str> = text.lines().collect();
        for lost in 0..lines.len() {
            let remaining = lines.iter().enumerate().filter(|(at, _)| *at != lost);
            let remaining: Vec<&str> = remaining.map(|(_, line)| *line).collect();
            probe(&remaining.join("\n"));
        }
    }
}

#[test]
fn ten_megabytes_are_refused_by_name() {
    let huge = "# nothing to read here\n".repeat(10 * 1024 * 1024 / 23 + 1);
    let refused = read("huge.toml", &huge, &mut |_| Err("must not be read".to_owned()), &|_| None)
        .unwrap_err();
    let message = refused.to_string();
    assert!(
        message.starts_with(
            "huge.toml:1:1: error[too-large]: the catalog is larger than 4194304 bytes"
        )
    );
    assert_eq!(refused.all.len(), 1);
    let load = &mut |_: &str| Ok(IncludedFile::Text(huge.clone()));
    let refused = read("small.toml", "include = [\"huge.toml\"]", load, &|_| None).unwrap_err();
    assert_eq!((&*refused.all[0].file, refused.all[0].code), ("huge.toml", "too-large"));
}

#[test]
fn hostile_shapes_are_read_in_bounded_time_and_stack() {
    let deep = |open: &str, count: usize| open.repeat(count);
    for text in [
        format!("x = {}", deep("[", 100_000)),
        format!("x = {}", deep("{a=", 100_000)),
        deep("[", 100_000),
        deep("[a]\n", 50_000),
        deep("a.", 50_000) + "b = 1",
        deep("a = 1\n", 50_000),
        format!("[policy.p]\nby = []\nban = [{{ when = \"{}\", for = \"1m\" }}]", deep("(", 1_000)),
        format!("[policy.p]\nby = []\nban = [{{ when = \"{}\", for = \"1m\" }}]", deep("!", 1_999)),
    ] {
        assert!(read_text(&text).is_err());
        probe(&text);
    }
}

/// Regression: lists that are too long were compared item by item before they were refused, which
/// took most of a minute.
#[test]
fn what_is_too_much_is_refused_before_it_is_judged() {
    let same = |count| vec!["\"a\""; count].join(", ");
    let windows = vec!["\"1 per 1s\""; 100_000].join(", ");
    let policy = |rest: &str| format!("[policy.a]\n{rest}\n");
    for (text, code) in [
        (format!("by = [{}]\nwindow = \"1 per 1s\"", same(100_000)), "too-many-parts"),
        (format!("each = [{}]\nwindow = \"1 per 1s\"", same(100_000)), "too-many-parts"),
        (
            format!("by = [\"{}\"]\nwindow = \"1 per 1s\"", vec!["a"; 100_000].join("|")),
            "too-many-parts",
        ),
        (format!("by = []\nwindow = [{windows}]"), "too-many-windows"),
    ] {
        assert_eq!(codes(&policy(&text)), [code]);
    }
    let gate = format!("by = []\nwindow = \"1 per 1s\"\n[gate.g]\npolicies = [{}]", same(100_000));
    let found = codes(&policy(&gate));
    assert_eq!(found.iter().filter(|code| **code == "too-many-policies").count(), 1);
    assert!(found.len() <= GATE_POLICIES_MAX, "{} diagnostics", found.len());
}

/// Regression: every value was searched linearly in the values of every other tier.
#[test]
fn long_lists_of_values_are_compared_in_bounded_time() {
    let values =
        |from: usize| -> String { (from..from + 60_000).map(|at| format!("\"v{at}\",")).collect() };
    let tier = |from| format!("{{ when = {{ plan = [{}] }}, cost = 1 }},", values(from));
    let text = format!(
        "[policy.a]\nby = []\nwindow = \"1 per 1s\"\ntier = [{}{}{}]\n",
        tier(0),
        tier(1),
        tier(0)
    );
    let found = diagnostics_of(&text);
    let found_codes: Vec<_> = found.iter().map(|found| found.code).collect();
    assert_eq!(found_codes, ["tier-unreachable"]);
}

/// Regression: a value of three megabytes was repeated in full.
#[test]
fn what_is_said_of_a_long_value_is_short() {
    let long = "x".repeat(3 * 1024 * 1024);
    for text in [
        format!("[policy.a]\nby = [\"{long}\"]\nwindow = \"1 per 1s\"\n"),
        format!("[policy.a]\nby = []\nwindow = \"{long}\"\n"),
        format!("[policy.a]\nby = []\nwindow = \"1 per 1s\"\nmode = \"{long}\"\n"),
        format!("[policy.a]\n{long} = 1\nby = []\nwindow = \"1 per 1s\"\n"),
        format!("include = [\"{long}\"]\n"),
        format!("[{long}]\n"),
    ] {
        let found = diagnostics_of(&text);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().len() < 4_000, "{} bytes", found[0].to_string().len());
        assert!(found[0].message.contains('…'), "{}", found[0].message);
    }
}
