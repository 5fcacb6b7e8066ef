//! The first start: the greeting, the commands that it shows, and the errors of a wrong start.

use std::path::Path;
use std::process::Command;

use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::{TestServer, binary, catalog_file};

/// covers: 004-60, 004-86, B-71
#[test]
fn the_pasted_curl_passes_five_times_and_then_says_when_to_come_back() {
    let server = TestServer::demo();
    let greeting = &server.greeting;
    let curl = format!("curl -i 'http://{}/v1/gates/demo/authorize'", server.address);
    assert!(greeting.contains(&curl) && greeting.contains("window 5 per 1m, by ip"), "{greeting}");
    assert!(greeting.contains("window 10 per 15m, block 30m, by ip"), "{greeting}");
    assert!(greeting.contains("the last call is denied:\n  for n in $(seq 5); do"), "{greeting}");
    for left in (0..5).rev() {
        let answer = server.request("GET /v1/gates/demo/authorize", &[]);
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        let limit = answer.header("ratelimit").unwrap();
        assert!(limit.starts_with(&format!("\"demo\";r={left};t=")), "{limit}");
        assert_eq!(answer.header("retry-after"), None);
    }
    let denied = server.request("GET /v1/gates/demo/authorize", &[]);
    assert_eq!(denied.status, 429);
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let problem = denied.json();
    assert_eq!((&problem["reason"], &problem["policy"]), (&"over_limit".into(), &"demo".into()));
    assert_eq!(problem["retry_after"], wait);
    assert!(problem["detail"].as_str().unwrap().starts_with("Slow down"), "{problem}");
}

/// Runs the commands that the greeting shows, as a shell reads them.
#[test]
fn the_commands_of_the_greeting_end_in_a_denial() {
    let catalog = "[policy.fast]\nby = ['ip']\nbucket = { size = 2, refill = '9 per 1s' }\n\
        [policy.tight]\nby = ['ip']\nbucket = { size = 3, refill = '1 per 1m' }\n\
        [gate.shop]\npolicies = ['fast', 'tight']\n\
        [[route]]\nmatch = 'POST /orders'\ngate = 'shop'\n";
    let server = TestServer::with_catalog(catalog);
    let greeting = &server.greeting;
    assert!(greeting.contains("gate    shop  fast, tight"), "{greeting}");
    assert!(greeting.contains("route   POST /orders  gate shop"), "{greeting}");
    let commands = greeting.split("Try it").nth(1).unwrap().lines();
    let commands: Vec<&str> = commands.filter(|line| line.starts_with("  ")).collect();
    let shell = Command::new("sh").arg("-c").arg(commands.join("\n")).output().unwrap();
    let printed = String::from_utf8(shell.stdout).unwrap();
    assert!(printed.starts_with("200\n200\n200\nHTTP/1.1 429 "), "{printed}");
}

#[test]
fn a_catalog_that_no_few_calls_exhaust_has_no_commands_to_try() {
    let catalog = "[policy.a]\nby = ['ip']\nwindow = '100 per 1m'\n\
        [policy.b]\nby = ['user']\nwindow = '3 per 1m'\n";
    let server = TestServer::with_catalog(catalog);
    assert!(!server.greeting.contains("Try it"), "{}", server.greeting);
}

fn call(server: &TestServer, request: &str, body: &str) -> HttpResponse {
    let mut connection = server.connect();
    connection.send(request, &[JSON], body.as_bytes());
    connection.read_response()
}

fn restart(server: TestServer, file: &Path) -> TestServer {
    server.signal("TERM");
    server.wait_for_exit();
    TestServer::from_file(file)
}

/// Regression: the command was shown under a mode, or an entry of the allowlist, that an operator
/// had set before the restart, and was not denied. Blocks under such a mode were shown as in force.
#[test]
fn modes_and_lists_from_before_a_restart_are_in_the_greeting() {
    let file = catalog_file("[policy.tight]\nby = ['ip']\nwindow = '3 per 1h'\n");
    let server = TestServer::from_file(&file);
    assert!(server.greeting.contains("Try it"), "{}", server.greeting);
    let block = r#"{"policy":"tight","subject":{"ip":"198.51.100.7"},"for":"1h"}"#;
    assert_eq!(call(&server, "POST /v1/blocks", block).status, 200);
    let mode = |server: &TestServer, mode: &str| {
        let body = format!(r#"{{"mode":{mode}}}"#);
        assert_eq!(call(server, "PUT /v1/policies/tight/mode", &body).status, 200);
    };
    mode(&server, "\"off\"");
    let server = restart(server, &file);
    let greeting = &server.greeting;
    assert!(!greeting.contains("Try it"), "{greeting}");
    assert!(greeting.contains("by ip, mode off, overridden\n"), "{greeting}");
    let listed = server.request("GET /v1/blocks", &[]).json();
    assert_eq!(listed["blocks"][0]["mode"], "off", "{listed}");
    mode(&server, "null");
    let entry = r#"{"range":"127.0.0.0/8"}"#;
    assert_eq!(call(&server, "POST /v1/allowlist", entry).status, 200);
    let server = restart(server, &file);
    assert!(!server.greeting.contains("Try it"), "{}", server.greeting);
    assert!(server.greeting.contains("by ip\n"), "{}", server.greeting);
}

#[test]
fn the_catalog_and_the_port_have_a_short_spelling() {
    let file = catalog_file("[policy.a]\nby = ['ip']\nwindow = '100 per 1m'\n");
    let path = file.to_str().unwrap();
    let output = binary().args(["serve", path, "--port", "0", "-c", path]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot be used with"), "{stderr}");
    let server = TestServer::serve(&[path, "--port", "0"]);
    assert!(server.greeting.contains("policy  a  window 100 per 1m"), "{}", server.greeting);
}

#[test]
fn an_address_that_others_can_reach_is_refused_by_name() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7878"] {
        let output = binary().args(["serve", "--listen", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(address) && stderr.contains("loopback"), "{stderr}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let server = TestServer::demo();
    let output = binary().args(["serve", "--listen", &server.address]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(&server.address) && stderr.contains("another process"), "{stderr}");
    assert!(stderr.contains("--listen 127.0.0.1:0"), "{stderr}");
}

#[test]
fn the_server_section_is_read_strictly() {
    let policy = "[policy.a]\nby = ['ip']\nwindow = '1 per 1m'\n[server]\n";
    for (setting, why) in [
        ("listne = '127.0.0.1:1'", "a server section has no field `listne`"),
        ("listen = 'here'", "`here` is not an address and a port"),
        ("listen = 7878", "expected an address and a port such as"),
        ("x_ratelimit = 'yes'", "expected true or false, found a text"),
        ("connections_max = 0", "`0` is too small"),
        ("head_timeout = 'soon'", "`soon` is not a duration"),
        ("idle_timeout = 'forever'", r#"write a duration from "20ms" to "1h""#),
        ("idle_timeout = '2h'", r#"write a duration from "20ms" to "1h""#),
        ("denial = 'json'", "`json` is not a valid value here"),
        ("client_address = 'a b'", r#"write "peer", or the header"#),
    ] {
        let file = catalog_file(&format!("{policy}{setting}\n"));
        let output = binary().args(["serve", "--config"]).arg(&file).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why) && stderr.contains(file.to_str().unwrap()), "{stderr}");
    }
}

#[test]
fn help_is_a_tour_of_the_server() {
    let output = binary().args(["serve", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["/v1/check", "/v1/authorize", "--catalog", "--listen", "curl", "Examples:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
