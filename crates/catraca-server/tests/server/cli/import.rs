//! `catraca import configs`, `export configs`, and `conformance` without a server.

use std::fs;

use serde_json::Value;

use crate::cli::test_dir::TestDir;

const PRESET: &str = include_str!("../../../../../presets/checkout/catalog.toml");
const CONFIGS: &str = "\
import type { RateLimitConfig } from \"./types.ts\";

/** Exportar um relatório */
export const NOVA_ACAO: RateLimitConfig = {
  action: \"nova_acao\",
  maxAttempts: 3,
  windowMinutes: 1,
  blockDurationMinutes: 0,
};

export const RATE_LIMIT_CONFIGS = {
  NOVA_ACAO,
  DEFAULT: { action: \"default\", maxAttempts: 60, windowMinutes: 1, blockDurationMinutes: 2 * 60 },
} as const;
";

/// The catalog made of a source.
fn import(dir: &TestDir, args: &[&str]) -> String {
    let imported = dir.run(&[&["import", "configs"][..], args].concat());
    assert_eq!(imported.code, Some(0), "{imported:?}");
    imported.out
}

fn export(dir: &TestDir, file: &str) -> String {
    let exported = dir.run(&["export", "configs", "-c", file]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    exported.out
}

/// covers: 003-04, X-35
#[test]
fn the_limits_of_a_checkout_go_there_and_back_in_minutes() {
    let dir = TestDir::with_file("preset.toml", PRESET);
    let configs = export(&dir, "preset.toml");
    let login = "export const BUYER_AUTH_LOGIN = {\n  action: \"buyer_auth_login\",\n  \
                 maxAttempts: 10,\n  windowMinutes: 15,\n  blockDurationMinutes: 30,\n};\n";
    assert!(configs.contains(login), "{configs}");
    dir.write("configs.ts", &configs);
    for anchored in [&["configs.ts"][..], &["--anchored", "configs.ts"]] {
        let catalog = import(&dir, anchored);
        assert!(catalog.contains("default = \"default\""), "{catalog}");
        assert_eq!(catalog.matches("\n[policy.").count(), 21);
        dir.write("catalog.toml", &catalog);
        assert_eq!(dir.run(&["lint", "catalog.toml"]).code, Some(0));
        assert_eq!(export(&dir, "catalog.toml"), configs);
    }
}

/// Attempts at 0 s, twice at 59 s, and three times at 61 s, of three a minute: a window that
/// started with the first attempt has ended, and one that slides has not.
///
/// covers: B-50
#[test]
fn the_importer_states_how_its_windows_differ_from_the_source_and_can_write_both() {
    let dir = TestDir::with_file("configs.ts", CONFIGS);
    let event = |at: &u32| {
        let subject = r#"{"ip":"198.51.100.7"}"#;
        let at = at * 1_000;
        format!("{{\"at\":{at},\"gate\":\"nova_acao\",\"subject\":{subject}}}\n")
    };
    let events: Vec<String> = [0, 59, 59, 61, 61, 61].iter().map(event).collect();
    dir.write("events.jsonl", events.concat());
    let sliding = import(&dir, &["configs.ts"]);
    assert!(sliding.contains("# NOVA_ACAO: Exportar um relatório"), "{sliding}");
    assert!(
        sliding.contains("window     = \"3 per 1m\"") && sliding.contains("block      = \"120m\"")
    );
    assert!(sliding.contains("a window that starts with the first attempt"), "{sliding}");
    let anchored = import(&dir, &["--anchored", "--by", "customer|ip", "configs.ts"]);
    assert!(anchored.contains("fixed      = \"3 per 1m\""), "{anchored}");
    let note = dir.run(&["import", "configs", "configs.ts"]).err;
    assert!(note.contains("2 policies") && note.contains("start with the first attempt"), "{note}");
    let allowed = |catalog: &str| -> Vec<bool> {
        dir.write("catalog.toml", catalog);
        let run = dir.run(&["simulate", "-c", "catalog.toml", "-o", "json", "events.jsonl"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let decisions = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        decisions.map(|decision| decision["allowed"] == true).collect()
    };
    assert_eq!(allowed(&sliding), [true, true, true, true, false, false]);
    assert_eq!(allowed(&anchored), [true; 6]);
}

/// covers: 003-04
#[test]
fn a_config_with_another_field_is_refused_with_its_place() {
    let dir = TestDir::with_file("configs.ts", &CONFIGS.replace("maxAttempts: 3", "limit: 3"));
    let refused = dir.run(&["import", "configs", "configs.ts"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    assert!(refused.err.contains("configs.ts:6:3: unknown field `limit`"), "{refused:?}");
    dir.write("configs.ts", "export const A = 1;\n");
    let refused = dir.run(&["import", "configs", "configs.ts"]);
    assert!(refused.err.contains("has no config with action, maxAttempts"), "{refused:?}");
    dir.write(
        "configs.ts",
        CONFIGS.replace("windowMinutes: 1,\n  block", "windowMinutes: 0,\n  block"),
    );
    let refused = dir.run(&["import", "configs", "configs.ts"]);
    assert!(refused.err.contains("would be invalid"), "{refused:?}");
    assert_eq!(dir.run(&["import", "configs", "missing.ts"]).code, Some(2));
}

/// covers: 003-06
#[test]
fn limits_in_code_are_found_by_file_line_and_column_for_ci() {
    let dir = TestDir::with_file("catalog.toml", PRESET);
    fs::create_dir_all(dir.path("functions/pay")).unwrap();
    fs::create_dir_all(dir.path("functions/node_modules/x")).unwrap();
    let named = "await rateLimitMiddleware(supabase, req, RATE_LIMIT_CONFIGS.GDPR_FORGET, cors);\n";
    dir.write("functions/pay/index.ts", named);
    dir.write("functions/node_modules/x/index.ts", CONFIGS);
    let search = ["conformance", "-c", "catalog.toml", "--code", "functions"];
    let clean = dir.run(&search);
    assert_eq!(clean.code, Some(0), "{clean:?}");
    assert!(clean.out.contains("policies            21\ninline policies      0\n"), "{clean:?}");
    assert!(clean.out.contains("conformance       100%"), "{clean:?}");
    let inline = "const MY_RATE_LIMIT = {\n  action: \"my_action\",\n  maxAttempts: 5,\n};\n";
    dir.write("functions/pay/index.ts", format!("{named}{inline}"));
    dir.write("functions/configs.ts", CONFIGS);
    let found = dir.run(&[&search[..], &["--except", "functions/configs.ts"]].concat());
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.out.contains("inline policies      1\n"), "{found:?}");
    assert!(found.out.contains("inline: functions/pay/index.ts:2:23"), "{found:?}");
    assert!(!found.out.contains("configs.ts"), "{found:?}");
    let all = dir.run(&[&search[..], &["-o", "json"]].concat());
    let report: Value = serde_json::from_str(&all.out).unwrap();
    assert_eq!(report["inline"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(dir.run(&["conformance", "-c", "catalog.toml", "--code", "gone"]).code, Some(2));
}
