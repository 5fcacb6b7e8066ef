//! The OpenAPI document as it is served, and the pages made from it.

use serde_json::Value;

use crate::http::admin::CATALOG;
use crate::raw_connection::JSON;
use crate::test_server::TestServer;

/// The operations of the document: method, path and the operation object.
fn calls(document: &Value) -> impl Iterator<Item = (String, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, call)| (method.to_uppercase(), path.as_str(), call))
    })
}

/// The path of an operation with the examples of its parameters filled in.
fn example_path(path: &str, call: &Value) -> String {
    let mut path = path.to_owned();
    for one in call["parameters"].as_array().unwrap() {
        let name = format!("{{{}}}", one["name"].as_str().unwrap());
        path = path.replace(&name, one["example"].as_str().unwrap_or("x"));
    }
    path
}

#[test]
fn the_description_is_served_to_anybody_and_every_call_of_it_has_a_route() {
    let server = TestServer::with_catalog(CATALOG);
    let answer = server.request("GET /openapi.json", &[]);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut count = 0;
    for (method, path, call) in calls(&document) {
        let target = format!("{method} {}", example_path(path, call));
        let body = &call["requestBody"]["content"]["application/json"]["example"];
        // The live feed never ends, and a response to HEAD has no body.
        if path == "/v1/events" || method == "HEAD" || method == "TRACE" {
            continue;
        }
        let mut connection = server.connect();
        let sent = if body.is_null() { String::new() } else { body.to_string() };
        connection.send(&target, if body.is_null() { &[] } else { &[JSON] }, sent.as_bytes());
        let answer = connection.read_response();
        let described = call["responses"].get(answer.status.to_string());
        assert!(described.is_some(), "{target}: {answer:?}");
        if answer.status == 404 {
            assert_ne!(answer.problem_code(), "unknown-call", "{target}");
        }
        assert!(answer.status < 500, "{target}: {answer:?}");
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn examples_of_decisions_and_acts_are_taken_as_they_stand() {
    let server = TestServer::with_catalog(CATALOG);
    let document = server.request("GET /openapi.json", &[]).json();
    for (path, method) in [
        ("/v1/check", "POST"),
        ("/v1/peek", "POST"),
        ("/v1/blocks", "POST"),
        ("/v1/blocklist", "POST"),
        ("/v1/blocklist", "DELETE"),
        ("/v1/allowlist", "POST"),
        ("/v1/policies/{name}/mode", "PUT"),
        ("/v1/reset", "POST"),
        ("/v1/privacy/export", "POST"),
        ("/v1/privacy/erase", "POST"),
    ] {
        let call = &document["paths"][path][method.to_lowercase()];
        let body = &call["requestBody"]["content"]["application/json"]["example"];
        let mut connection = server.connect();
        let request = format!("{method} {}", example_path(path, call));
        connection.send(&request, &[JSON], body.to_string().as_bytes());
        let answer = connection.read_response();
        assert_eq!(answer.status, 200, "{request} {body}: {answer:?}");
        let example = &call["responses"]["200"]["content"]["application/json"]["example"];
        let names = |value: &Value| {
            let map = value.as_object().cloned().unwrap_or_default();
            map.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            names(&answer.json()),
            names(example),
            "{request}: the members differ from the example"
        );
    }
}

#[test]
fn the_pages_load_nothing_from_elsewhere_and_every_problem_leads_to_one() {
    let server = TestServer::with_catalog(CATALOG);
    for path in ["/", "/docs", "/docs/errors", "/docs/errors/bad-json"] {
        let page = server.request(&format!("GET {path}"), &[]);
        assert_eq!(page.status, 200, "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.body.contains("http://") && !page.body.contains("<script"), "{path}");
        let loaded = page.body.matches(" src=").count();
        assert_eq!(loaded, 0, "{path}");
    }
    let index = server.request("GET /", &[]).body;
    for link in index.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(server.request(&format!("GET /{link}"), &[]).status, 200, "/{link}");
    }
    let style = server.request("GET /docs/style.css", &[]);
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    let problem = server.post("/v1/check", "{").json();
    let page = server.request(&format!("GET {}", problem["type"].as_str().unwrap()), &[]);
    assert!(page.status == 200 && page.body.contains("bad-json"), "{page:?}");
    let unknown = server.request("GET /docs/errors/nothing", &[]);
    assert_eq!((unknown.status, unknown.problem_code().as_str()), (404, "unknown-code"));
    let broken = server.request("GET /docs/errors/%ff", &[]);
    assert_eq!((broken.status, broken.problem_code().as_str()), (400, "bad-path"));
    let broken = server.request("GET /v1/policies/%ff", &[]);
    assert_eq!((broken.status, broken.problem_code().as_str()), (400, "bad-path"));
}
