//! The reader of configs: what it takes, and the place of what it refuses.

use super::*;

const SOURCE: &str = r#"
import type { RateLimitConfig } from "./types.ts";

// configs.ts
export const CORS = { "Access-Control-Allow-Origin": "*" };
const later = (x: number) => { return { x }; };

/** Login of
 *  buyers */
export const BUYER_AUTH_LOGIN: RateLimitConfig = {
  action: "buyer_auth_login",
  maxAttempts: 10, // attempts
  windowMinutes: 15,
  blockDurationMinutes: 24 * 60,
};

export const WEBHOOK: RateLimitConfig = { 'action': 'webhook', maxAttempts: 1_000,
  windowMinutes: 1, blockDurationMinutes: 0 }

export const RATE_LIMIT_CONFIGS = {
  BUYER_AUTH_LOGIN,
  WEBHOOK, /* gateways */
  /** everything else */
  DEFAULT: { action: "default", maxAttempts: 60, windowMinutes: 1, blockDurationMinutes: 5 },
} as const satisfies Record<string, RateLimitConfig>;
"#;

#[test]
fn constants_and_maps_are_read_with_products_and_comments() {
    let configs = read(SOURCE).unwrap();
    let numbers: Vec<_> = configs
        .iter()
        .map(|config| (config.name.as_str(), config.attempts, config.block_minutes))
        .collect();
    let expected = [("BUYER_AUTH_LOGIN", 10, 1_440), ("WEBHOOK", 1_000, 0), ("DEFAULT", 60, 5)];
    assert_eq!(numbers, expected);
    assert_eq!(configs[0].about.as_deref(), Some("Login of buyers"));
    assert_eq!(configs[2].about.as_deref(), Some("everything else"));
    assert_eq!(configs[0].action, "buyer_auth_login");
}

/// covers: 003-04
#[test]
fn a_mistake_is_refused_with_its_line_and_column() {
    let fields = "action: 'a', maxAttempts: 1, windowMinutes: 1, blockDurationMinutes: 1";
    let config = |fields: &str| format!("const A = {{\n  {fields}\n}};");
    assert_eq!(read(&config(fields)).unwrap().len(), 1);
    let wrong = |source: &str| read(source).unwrap_err().to_string();
    for (from, to, message) in [
        ("maxAttempts", "maxAttempt", "2:16: unknown field `maxAttempt`: a config has action,"),
        ("windowMinutes: 1", "windowMinutes: 1.5", "2:47: `1` is not a whole number"),
        ("windowMinutes: 1", "windowMinutes: MINUTE", "2:47: `MINUTE` is not a number"),
        ("'a'", "`a`", "2:11: an expression is not a text"),
        (", blockDurationMinutes: 1", "", "1:7: A has no `blockDurationMinutes`"),
        ("windowMinutes: 1", "maxAttempts: 1", "2:32: the field `maxAttempts` is there twice"),
        (": 1,", " 1,", "2:28: `1` is not `:`"),
    ] {
        let found = wrong(&config(&fields.replacen(from, to, 1)));
        assert!(found.starts_with(message), "{found} instead of {message}");
    }
    let source = config(fields);
    assert_eq!(wrong(source.trim_end_matches("\n};")), "2:72: the file ends where `}` should be");
    let twice = format!("{source}\n{}", source.replace("const A", "const B"));
    assert_eq!(wrong(&twice), "4:7: the action \"a\" is at 1:7 already");
    let unknown = format!("{source}\nexport const ALL = {{ A, B }};");
    assert_eq!(wrong(&unknown), "4:25: there is no config `B` in this file");
}

#[test]
fn any_text_is_read_without_a_panic() {
    for end in 0..SOURCE.len() {
        if SOURCE.is_char_boundary(end) {
            let _ = read(&SOURCE[..end]);
            let _ = read(&SOURCE[end..]);
        }
    }
}
