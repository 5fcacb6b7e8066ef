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

/// A catalog that counts by `by`, with customers of this kind; it is applied only when asked to.
fn catalog_of_customers(by: &str, kind: &str) -> String {
    format!(
        "[policy.login]\nby = [{by}]\nwindow = '2 per 1h'\n\n\
         [attribute.customer]\nkind = '{kind}'\n\n[server]\nwatch_files = false\n"
    )
}

/// The reason of each block's orphanhood, by customer.
fn orphans(server: &TestServer) -> Vec<(String, Value)> {
    let page = server.request("GET /v1/blocks", &[]).json();
    let rows = page["blocks"].as_array().unwrap().iter();
    let of_row = |row: &Value| {
        (row["subject"]["customer"].as_str().unwrap().to_owned(), row["orphaned"].clone())
    };
    rows.map(of_row).collect()
}

fn is_denied(server: &TestServer, subject: &Value) -> bool {
    let check = json!({ "gate": "login", "subject": subject });
    server.json("/v1/peek", &check.to_string()).1["reason"] == "blocked"
}

/// A change of `by` and one of `kind`: the preview, the reload, the list, `lint --against` and the
/// requests agree about which blocks are orphans, and the way back makes them deny again.
#[test]
fn changes_of_by_and_of_kind_name_the_blocks_that_they_orphan() {
    let text = catalog_of_customers("'customer'", "text");
    let [written, plain] = ["529.982.247-25", "11144477735"];
    let other_kind = "the values of `customer` are normalised differently";
    let other_by = "the policy counts by other attributes";
    for (changed, expected) in [
        (catalog_of_customers("'customer'", "cpf_cnpj"), vec![(written, other_kind)]),
        (
            catalog_of_customers("'customer', 'session'", "text"),
            vec![(written, other_by), (plain, other_by)],
        ),
    ] {
        let file = catalog_file(&text);
        let server = TestServer::from_file(&file);
        for customer in [written, plain] {
            let order = json!({ "policy": "login", "subject": { "customer": customer },
                "for": "1h" });
            assert_eq!(server.json("/v1/blocks", &order.to_string()).0, 200);
        }
        fs::write(&file, &changed).unwrap();
        let preview = reload(&server, "?dry_run=true");
        assert_eq!(preview["orphaned"], expected.len(), "{preview}");
        for (customer, why) in &expected {
            let named = preview["orphaned_blocks"].as_array().unwrap().iter();
            let mut named = named.filter(|row| row["subject"]["customer"] == *customer);
            assert_eq!(named.next().unwrap()["why"], *why, "{preview}");
        }
        let url = format!("http://{}", server.address);
        let mut lint = binary();
        lint.args(["lint", "--strict", "--against", &url]).arg(&file).env_remove("CATRACA_KEY");
        let output = lint.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stdout}");
        assert!(stdout.contains(expected[0].1), "{stdout}");
        assert!(orphans(&server).iter().all(|(_, why)| why.is_null()), "nothing is changed yet");

        assert_eq!(reload(&server, "")["orphaned"], expected.len());
        for (customer, why) in orphans(&server) {
            let of_customer = expected.iter().find(|(name, _)| *name == customer);
            assert_eq!(why.as_str(), of_customer.map(|(_, why)| *why), "{customer}");
            let subject = json!({ "customer": customer, "session": "s" });
            assert_eq!(is_denied(&server, &subject), of_customer.is_none(), "{customer}");
        }
        fs::write(&file, &text).unwrap();
        assert_eq!(reload(&server, "")["orphaned"], 0);
        assert!(orphans(&server).iter().all(|(_, why)| why.is_null()));
        assert!(is_denied(&server, &json!({ "customer": written })));
    }
}
