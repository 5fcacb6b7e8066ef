//! Whatever the bytes, reading ends with a catalog or with located words.

use catraca_core::catalog::diagnostic::Severity;
use catraca_core::catalog::read::read;

use crate::support::{fixture, read_text};

/// Texts that are cut and bent.
fn texts() -> Vec<String> {
    ["good/example.toml", "good/everything.toml", "twenty.toml", "codes/syntax.toml"]
        .map(fixture)
        .into()
}

/// Reads a text; whatever comes of it must be consistent.
fn probe(text: &str) {
    let found = match read_text(text) {
        Ok(reading) => {
            assert!(reading.warnings.iter().all(|found| found.severity == Severity::Warning));
            reading.warnings
        }
        Err(refused) => {
            assert!(refused.errors().next().is_some(), "refused for nothing: {text}");
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
    let bent = [b'"', b'[', b']', b'{', b'}', b'\n', b'=', b'#', b'.', b'0', b'-', b'|', b'\\', 0];
    for text in texts() {
        for (at, bend) in (0..text.len()).zip(bent.iter().cycle()).step_by(11) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = *bend;
            probe(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn no_lost_line_makes_the_reader_panic() {
    for text in texts() {
        let lines: Vec<&str> = text.lines().collect();
        for lost in 0..lines.len() {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != lost);
            let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
            probe(&kept.join("\n"));
        }
    }
}

#[test]
fn ten_megabytes_are_refused_by_name() {
    let huge = "# nothing to read here\n".repeat(10 * 1024 * 1024 / 23 + 1);
    let refused = read("huge.toml", &huge, &mut |_| Err("never asked".to_owned())).unwrap_err();
    let shown = refused.to_string();
    assert!(
        shown.starts_with(
            "huge.toml:1:1: error[too-large]: the catalog is larger than 4194304 bytes"
        )
    );
    assert_eq!(refused.all.len(), 1);
    let load = &mut |_: &str| Ok(huge.clone());
    let refused = read("small.toml", "include = [\"huge.toml\"]", load).unwrap_err();
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
