//! A catalog that makes other keys orphans blocks in force: the dry run, the reload, the list and
//! `catraca lint --against` say so.

use std::fs;

use serde_json::{Value, json};

use crate::test_server::{TestServer, binary, catalog_file};

fn catalog(prefix: u32) -> String {
    format!(
        "[policy.login]\nby = ['ip']\nwindow = '2 per 1h'\n\n[network]\nipv6_prefix = {prefix}\n"
    )
}

fn block(server: &TestServer, ip: &str) {
    let order = json!({ "policy": "login", "subject": { "ip": ip }, "for": "1h" });
    assert_eq!(server.json("/v1/blocks", &order.to_string()).0, 200);
}

fn reload(server: &TestServer, query: &str) -> Value {
    let (status, done) = server.json(&format!("/v1/config/reload{query}"), "{}");
    assert_eq!(status, 200, "{done}");
    done
}

#[test]
fn a_change_of_prefix_names_the_blocks_that_it_orphans() {
    let file = catalog_file(&catalog(64));
    let server = TestServer::from_file(&file);
    block(&server, "198.51.100.7");
    // The file watcher may load the file before the call, which then finds nothing to change.
    let previewed = (40..60).find_map(|prefix| {
        block(&server, "2001:db8::1");
        fs::write(&file, catalog(prefix)).unwrap();
        let preview = reload(&server, "?dry_run=true");
        (preview["changes"] != json!([])).then_some(preview)
    });
    let preview = previewed.expect("one of the calls is before the watcher");
    assert_eq!((&preview["dry_run"], &preview["orphaned"]), (&json!(true), &json!(1)), "{preview}");
    let orphan = &preview["orphaned_blocks"][0];
    assert_eq!(orphan["why"], "the values of `ip` are normalised differently");
    let changes = preview["changes"].to_string();
    assert!(changes.contains("1 block in force is orphaned"), "{changes}");

    let url = format!("http://{}", server.address);
    let mut lint = binary();
    lint.args(["lint", "--strict", "--against", &url]).arg(&file).env_remove("CATRACA_KEY");
    let output = lint.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("in force, which would deny no request"), "{stdout}");
    assert!(stdout.contains("login: the values of `ip` are normalised differently"), "{stdout}");

    reload(&server, "");
    let blocks = server.request("GET /v1/blocks", &[]).json()["blocks"].clone();
    for row in blocks.as_array().unwrap() {
        let is_v4 = row["subject"]["ip"] == "198.51.100.7";
        assert_eq!(row["orphaned"].is_null(), is_v4, "{row}");
    }
    assert_eq!(reload(&server, "")["orphaned"], 0, "they were orphans before");
}
