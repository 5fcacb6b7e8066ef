//! Access logs: gates from routes, addresses, attributes, outcomes, order and errors.

use serde_json::Value;

use super::{numbers, reasons};
use crate::cli::test_dir::{CliOutput, TestDir};

const SITE: &str = r#"
default = "site"

[policy.site]
by     = ["ip"]
window = "100 per 1m"

[policy.login]
by     = ["ip"]
window = "2 per 1m"
block  = "15m"

[policy.lookup]
by     = ["tenant"]
bucket = { size = 100, refill = "1 per 1m" }
cost   = { "404" = 20, default = 1 }
on_missing = "deny"

[[route]]
match = "POST /login"
gate  = "login"

[[route]]
match = "GET /api/*/items/**"
gate  = "lookup"
set   = { tenant = "header:user-agent" }

[network]
trusted_proxies = ["10.0.0.0/8"]
"#;

fn line(second: u32, ip: &str, request: &str, status: u16) -> String {
    format!(r#"{ip} - - [06/Jan/2026:09:00:{second:02} +0000] "{request}" {status} 12 "-" "t1""#)
}

fn login(second: u32) -> String {
    line(second, "198.51.100.7", "POST /login HTTP/1.1", 401)
}

fn replay(catalog: &str, lines: &[String], more: &[&str]) -> CliOutput {
    let dir = TestDir::with_file("catalog.toml", catalog);
    dir.write("access.log", lines.join("\n"));
    let args = ["simulate", "-c", "catalog.toml", "--format", "combined", "access.log"];
    dir.run(&[&args[..], &["-o", "json"], more].concat())
}

#[test]
fn routes_choose_the_gate_and_every_spelling_of_a_path_is_one() {
    let spellings = ["/login", "/login//", "/./login?next=/", "/login;a=1", "/%6cogin"];
    let request = |target: &str| format!("POST {target} HTTP/1.1");
    let lines: Vec<_> = (0..).zip(spellings).collect();
    let lines: Vec<_> =
        lines.iter().map(|(at, target)| line(*at, "::1", &request(target), 200)).collect();
    let output = replay(SITE, &lines, &[]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let all = output.json();
    assert_eq!(reasons(&all), ["ok", "ok", "over_limit", "blocked", "blocked"]);
    assert_eq!(all[0]["at"], "2026-01-06T09:00:00Z");
}

#[test]
fn what_no_route_takes_meets_the_default_and_never_nothing() {
    let requests = ["GET /login HTTP/1.1", "GET /a%20b HTTP/1.1", "-", "POST /login/x HTTP/1.1"];
    let lines = requests.map(|request| line(0, "198.51.100.7", request, 200));
    let all = replay(SITE, &lines, &[]).json();
    for result in &all {
        assert_eq!((&result["policy"], &result["unlisted"]), (&"site".into(), &true.into()));
    }
    assert_eq!(numbers(&all, "/remaining"), [99, 98, 97, 96].map(Some));
    let bare = SITE.replace("default = \"site\"", "");
    let output = replay(&bare, &lines[..1], &[]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.out.starts_with(r#"{"line":1,"error":"no `[[route]]` matches this GET"#),
        "{}",
        output.out
    );
}

/// The server answers such requests with 400, so the replay skips them and succeeds.
#[test]
fn an_ambiguous_path_is_told_and_is_no_failure() {
    let requests = ["POST /a/../login HTTP/1.1", "POST //x/login HTTP/1.1", "POST /login HTTP/1.1"];
    let output = replay(SITE, &requests.map(|request| line(0, "::1", request, 200)), &[]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let all = output.json();
    assert!(all[0]["error"].as_str().unwrap().contains("ambiguous path"), "{}", all[0]);
    assert_eq!(reasons(&all), ["", "", "ok"]);
}

/// Regression: such a request was replayed with the cost of a request that names none.
#[test]
fn a_cost_that_is_no_number_is_refused_as_the_server_does() {
    let catalog =
        SITE.replace("GET /api/*/items/**\"", "GET /api/*/items/**\"\ncost  = \"query:n\"");
    let targets = ["/api/a/items/1?n=x", "/api/a/items/1?n=%207", "/api/a/items/1"];
    let lines = targets.map(|target| line(0, "::1", &format!("GET {target} HTTP/1.1"), 200));
    let output = replay(&catalog, &lines, &[]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let all = output.json();
    let error = "`query:n` of the request is not a whole number, which the server answers with 400";
    assert_eq!(all[0]["error"], error);
    assert_eq!(reasons(&all), ["", "ok", "ok"]);
}

#[test]
fn one_gate_for_all_instead_of_routes() {
    let lines = ["GET / HTTP/1.1", "-"].map(|request| line(0, "198.51.100.7", request, 200));
    let all = replay(SITE, &lines, &["--gate", "login"]).json();
    assert_eq!(numbers(&all, "/remaining"), [Some(1), Some(0)]);
}

#[test]
fn the_status_settles_at_once_and_headers_are_attributes() {
    let get = |status| line(0, "198.51.100.7", "GET /api/v1/items/7 HTTP/1.1", status);
    let all = replay(SITE, &[get(404), get(200)], &[]).json();
    assert_eq!(numbers(&all, "/settled/policies/0/charged"), [Some(20), Some(1)]);
    assert_eq!(numbers(&all, "/remaining"), [Some(99), Some(79)]);
    let anonymous = get(200).replace("\"t1\"", "\"-\"");
    let all = replay(SITE, &[anonymous], &[]).json();
    assert_eq!((&all[0]["reason"], &all[0]["settled"]), (&"missing".into(), &Value::Null));
}

#[test]
fn lines_a_little_out_of_order_are_decided_in_the_order_of_the_file_and_counted() {
    let lines = [login(30), login(10), login(31), line(5, "::1", "GET / HTTP/1.1", 200)];
    let output = replay(SITE, &lines, &[]);
    assert_eq!(output.code, Some(0));
    let all = output.json();
    assert_eq!(reasons(&all), ["ok", "ok", "over_limit", "ok"]);
    // The output shows the time of the line, but the second line counts at the time of the first
    // one: both leave the window at 31:30.
    assert_eq!(all[1]["at"], "2026-01-06T09:00:10Z");
    assert_eq!(numbers(&all, "/reset_after_ms")[1], Some(60_000));
    let note = "note: 2 lines are older than an earlier line, by 26s at most; decided in the order \
                of the file\n";
    assert_eq!(output.err, note);
}

#[test]
fn lines_far_out_of_order_are_bad() {
    let early = login(0).replace("09:00:00", "07:59:59");
    let output = replay(SITE, &[login(0), early, login(1)], &[]);
    assert_eq!((output.code, output.json().len()), (Some(2), 3));
    let error = output.json()[1]["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("more than 1h before") && error.contains("oldest file first"),
        "{error}"
    );
    assert_eq!(reasons(&output.json())[2], "ok");
}

#[test]
fn bad_lines_are_told_and_change_nothing() {
    let lines = [login(0), "what is this".to_owned(), String::new(), login(1), login(2)];
    let output = replay(SITE, &lines, &[]);
    assert_eq!(output.code, Some(2));
    let all = output.json();
    assert_eq!(all[1]["line"], 2);
    assert_eq!(reasons(&all), ["ok", "", "ok", "over_limit"]);
    let named = line(3, "localhost", "GET / HTTP/1.1", 200);
    let output = replay(SITE, &[named], &[]);
    assert!(output.out.contains("attribute `ip`: this is not an address"), "{}", output.out);
}

#[test]
fn a_json_log_is_read_with_trusted_proxies_and_by_fields() {
    let dir = TestDir::with_file("catalog.toml", SITE);
    let caddy = |ip: &str, forwarded: &str| {
        format!(
            "{}{}",
            r#"{"ts":1767690001.5,"status":200,"request":{"method":"POST","uri":"/login","#,
            format_args!(
                r#""remote_ip":"{ip}","headers":{{"X-Forwarded-For":["{forwarded}"]}}}}}}"#
            )
        )
    };
    let lines = [
        caddy("10.0.0.1", "198.51.100.7, 10.0.0.2"),
        caddy("198.51.100.7", "203.0.113.9"),
        caddy("10.0.0.9", "6.6.6.6, 198.51.100.7"),
    ];
    dir.write("caddy.log", lines.join("\n"));
    let args = ["simulate", "-c", "catalog.toml", "-f", "json", "caddy.log", "-o", "json"];
    let output = dir.run(&args);
    assert_eq!(reasons(&output.json()), ["ok", "ok", "over_limit"], "{}", output.err);
    dir.write(
        "mixed.log",
        r#"{"when":"2026-01-06T09:00:00Z","peer":"::1","request":"GET / HTTP/1.1"}"#,
    );
    let args = ["simulate", "-c", "catalog.toml", "-f", "json", "mixed.log"];
    assert!(dir.run(&args).err.starts_with("line 1: `time` not found at the default paths"));
    let output = dir.run(&[&args[..], &["--field", "time=when", "--field", "ip=peer"]].concat());
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(output.out.contains("note: 1 request matches no route; the default policy decides"));
}

#[test]
fn a_gzipped_log_is_read_as_it_is() {
    let text = [login(0), login(1)].join("\n");
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut zipped, text.as_bytes()).unwrap();
    let dir = TestDir::with_file("catalog.toml", SITE);
    let args = ["simulate", "-c", "catalog.toml", "-f", "combined", "-", "-o", "json"];
    let output = dir.run_with_stdin(&args, &zipped.finish().unwrap());
    assert_eq!(output.json().len(), 2, "{}", output.err);
    assert_eq!(output.out, dir.run_with_stdin(&args, text.as_bytes()).out);
}

#[test]
fn options_that_do_not_belong_together_are_refused() {
    let dir = TestDir::with_file("catalog.toml", SITE);
    dir.write("x", "");
    let args = ["simulate", "-c", "catalog.toml", "x"];
    for (more, hint) in [
        (&["--field", "ip=a"][..], "--format json"),
        (&["--gate", "login"], "has its own gate"),
        (&["--field", "ipp=a", "-f", "json"], "header:NAME"),
    ] {
        let output = dir.run(&[&args[..], more].concat());
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{more:?}");
        assert!(output.err.contains(hint), "{}", output.err);
    }
}
