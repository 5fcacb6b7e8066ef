//! `catraca policies`: the table of a catalog's policies.

use serde_json::{Value, json};

use crate::cli::test_dir::TestDir;

const CHECKOUT: &str = include_str!("../../../../../presets/checkout/catalog.toml");
const SOFT_BAN: &str = include_str!("../../../../../presets/soft-ban/catalog.toml");
const NEW_POLICY: &str = "
[policy.new_action]
group   = \"others\"
by      = [\"ip\"]
window  = \"20 per 5m\"
block   = \"15m\"
message = \"Uma | duas\"
";

fn table(dir: &TestDir, more: &[&str]) -> String {
    let printed = dir.run(&[&["policies", "-c", "catalog.toml"], more].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    printed.out
}

/// A policy that is added to the catalog is in the next table, without a change anywhere else.
///
/// covers: 003-07
#[test]
fn the_table_of_a_document_is_made_from_the_catalog() {
    let markdown = ["-o", "markdown"];
    let before = table(&TestDir::with_file("catalog.toml", CHECKOUT), &markdown);
    let lines: Vec<&str> = before.lines().collect();
    assert_eq!(lines[0], "| policy | group | counts | limit | block | message |");
    assert_eq!((lines[1], lines.len()), ("|---|---|---|---|---|---|", 2 + 21));
    let login = "| buyer_auth_login | authentication | by ip | window 10 per 15m | 30m | Houve \
                 tentativas demais de entrar. Tente de novo em {retry_after}. |";
    assert_eq!(lines[2], login);

    let changed = format!("{CHECKOUT}{NEW_POLICY}");
    let after = table(&TestDir::with_file("catalog.toml", &changed), &markdown);
    let added = "| new_action | others | by ip | window 20 per 5m | 15m | Uma \\| duas |";
    assert_eq!(after, format!("{before}{added}\n"));
}

/// covers: 003-09
#[test]
fn the_policies_of_one_group_are_listed() {
    let dir = TestDir::with_file("catalog.toml", CHECKOUT);
    let json: Value = serde_json::from_str(&table(&dir, &["--group", "webhooks", "-o", "json"]))
        .expect("a list of objects");
    let names: Vec<&Value> = json.as_array().unwrap().iter().map(|row| &row["policy"]).collect();
    assert_eq!(json!(names), json!(["webhook", "webhook_test"]));
    let human = table(&dir, &["--group", "privacy"]);
    assert!(human.contains("gdpr_forget") && !human.contains("webhook"), "{human}");
    let misspelt = dir.run(&["policies", "-c", "catalog.toml", "--group", "payment"]);
    assert_eq!(misspelt.code, Some(2), "{}", misspelt.out);
    assert!(misspelt.err.contains("no policy has the group `payment`"), "{}", misspelt.err);
    assert!(misspelt.err.contains("authentication, others, payments"), "{}", misspelt.err);
}

#[test]
fn tiers_and_bans_have_rows_of_their_own() {
    let markdown = ["-o", "markdown"];
    let bans = table(&TestDir::with_file("catalog.toml", SOFT_BAN), &markdown);
    let rejected = "| submit_payment, ban if body.reject_id == 5 | checkout | each of customer, \
                    session, instrument | the first one | 10m | Houve muitas tentativas";
    assert!(bans.contains(rejected), "{bans}");
    assert!(bans.contains("| submit_payment | checkout |"), "{bans}");
    let window_block = include_str!("../../../../../presets/window-block/catalog.toml");
    let tiers = table(&TestDir::with_file("catalog.toml", window_block), &markdown);
    assert!(tiers.contains("| token, if plan = partner | edge | by token | window 100"), "{tiers}");
}
