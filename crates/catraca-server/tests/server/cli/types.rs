//! `catraca types`: the gates of a preset in each language.

use crate::cli::test_dir::TestDir;

const PRESET: &str = include_str!("../../../../../presets/window-block/catalog.toml");

const TYPESCRIPT: &str = "\
// Made by `catraca types --lang ts`: make it again instead of editing it.

/** The attributes that each gate of the catalog reads. */
export type Gates = {
  api: { token?: string; ip: string };
  ip: { ip: string };
  token: { token?: string; ip: string };
};
";

const GO: &str = r#"
// APIGate is the name of the gate.
const APIGate = "api"

// API is the attributes that the gate reads.
type API struct {
	Token string // optional
	IP    string
}

// Gate is the name of the gate.
func (API) Gate() string { return APIGate }

// Subject is the attributes for a check. Optional ones that are empty are left out.
func (g API) Subject() map[string]string {
	subject := map[string]string{}
	if g.Token != "" {
		subject["token"] = g.Token
	}
	subject["ip"] = g.IP
	return subject
}
"#;

#[test]
fn a_preset_in_typescript() {
    let dir = TestDir::with_file("catalog.toml", PRESET);
    let printed = dir.run(&["types", "--lang", "ts", "-c", "catalog.toml"]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(0), TYPESCRIPT), "{}", printed.err);
    assert_eq!(dir.run(&["types", "--lang", "ts", "catalog.toml"]).out, TYPESCRIPT);
}

/// Regression: only `presets/checkout` had constants for the helpers of a checkout.
#[test]
fn a_catalog_with_a_policy_of_its_own_has_configs() {
    let catalog = "[policy.coupon_redeem]\nby = ['ip']\nwindow = '8 per 10m'\nblock = '1h'\n\
                   [policy.coupon-redeem]\nby = ['ip']\nwindow = '9 per 1h'\n\
                   [policy.seconds]\nby = ['ip']\nwindow = '9 per 10s'\n\
                   [policy.account]\nby = ['user']\nwindow = '9 per 1m'\n";
    let dir = TestDir::with_file("catalog.toml", catalog);
    let printed = dir.run(&["types", "--lang", "ts", "--configs", "-c", "catalog.toml"]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let expected = r#"
export const RATE_LIMIT_CONFIGS = {
  COUPON_REDEEM: rateLimitConfig("coupon_redeem", 8, 10, 60),
  COUPON_REDEEM_: rateLimitConfig("coupon-redeem", 9, 60, 0),
  // SECONDS is left out: it is not one limit in whole minutes.
  // ACCOUNT is left out: it reads more than `ip`.
} as const;
"#;
    assert!(printed.out.ends_with(expected), "{}", printed.out);
    assert!(printed.out.contains("import { rateLimitConfig } from \"@catraca/client/checkout\";"));
    assert!(printed.out.contains("  coupon_redeem: { ip: string };\n"), "{}", printed.out);
    assert_eq!(dir.run(&["types", "--lang", "go", "--configs", "catalog.toml"]).code, Some(2));
}

#[test]
fn a_preset_in_go() {
    let dir = TestDir::with_file("catalog.toml", PRESET);
    let printed = dir.run(&["types", "--lang", "go", "-c", "catalog.toml"]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(printed.out.contains(GO), "{}", printed.out);
    assert!(printed.out.contains("\npackage gates\n"), "{}", printed.out);
}

#[test]
fn a_catalog_and_a_known_language_are_required() {
    let dir = TestDir::with_file("catalog.toml", PRESET);
    for args in [&["types", "--lang", "ts"][..], &["types", "--lang", "cobol", "catalog.toml"]] {
        assert_eq!(dir.run(args).code, Some(2), "{args:?}");
    }
    assert_eq!(dir.run(&["types", "--lang", "go", "missing.toml"]).code, Some(2));
}
