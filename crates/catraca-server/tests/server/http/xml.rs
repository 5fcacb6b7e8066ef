//! Bucket states in the XML of the DICT API, and denials in every configured shape.

use serde_json::json;

use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::TestServer;

const CATALOG: &str = r#"
[attribute.participant]
kind  = "caseless"
facts = ["category"]

[facts.participant.12345678]
category = "A"

[policy.entries_read]
by     = ["participant"]
bucket = { size = 100, refill = "2 per 1m" }

[policy.cids_files_write]
by     = ["participant"]
bucket = { size = 200, refill = "40 per 1d" }
"#;

const SUBJECT: &str = r#"{"subject":{"participant":"12345678"}}"#;

fn post_accepting(server: &TestServer, path: &str, accept: &str) -> HttpResponse {
    let mut connection = server.connect();
    let request = format!("POST {path}");
    connection.send(&request, &[JSON, ("Accept", accept)], SUBJECT.as_bytes());
    connection.read_response()
}

/// The body without the contents of the elements that differ in every response.
fn without_varying_elements(body: &str) -> String {
    let mut body = body.to_owned();
    for (from, to) in
        [("<ResponseTime>", "</ResponseTime>"), ("<CorrelationId>", "</CorrelationId>")]
    {
        let start = body.find(from).unwrap() + from.len();
        let end = body.find(to).unwrap();
        assert!(end - start >= 20, "{body}");
        body.replace_range(start..end, "");
    }
    body
}

/// covers: X-12, 001-34
#[test]
fn bucket_states_have_the_official_elements_for_whoever_prefers_xml() {
    let server = TestServer::with_catalog(CATALOG);
    let one = "<Policy><AvailableTokens>100</AvailableTokens><Capacity>100</Capacity>\
               <RefillTokens>2</RefillTokens><RefillPeriodSec>60</RefillPeriodSec>\
               <Name>ENTRIES_READ</Name></Policy>";
    let two = "<Policy><AvailableTokens>200</AvailableTokens><Capacity>200</Capacity>\
               <RefillTokens>40</RefillTokens><RefillPeriodSec>86400</RefillPeriodSec>\
               <Name>CIDS_FILES_WRITE</Name></Policy>";
    let head = "<Signature/><CorrelationId></CorrelationId><ResponseTime></ResponseTime>\
                <Category>A</Category>";
    let declared = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    let list = post_accepting(&server, "/v1/buckets", "application/xml");
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/xml")));
    assert_eq!(list.header("vary"), Some("accept"));
    let whole = format!(
        "{declared}<ListPoliciesResponse>{head}<Policies>{one}{two}</Policies>\
         </ListPoliciesResponse>"
    );
    assert_eq!(without_varying_elements(&list.body), whole);
    let single = post_accepting(&server, "/v1/buckets/entries_read", "application/xml");
    assert_eq!(
        without_varying_elements(&single.body),
        format!("{declared}<GetPolicyResponse>{head}{one}</GetPolicyResponse>")
    );
    let json = post_accepting(&server, "/v1/buckets/entries_read", "*/*");
    assert_eq!((json.json()["size"].as_i64(), json.header("vary")), (Some(100), Some("accept")));
}

/// covers: 000-39, 000-40, 003-41, 004-20, B-77
#[test]
fn a_gateways_denial_has_the_shape_that_the_catalog_chooses() {
    let policy = "[policy.login]\nby = ['ip']\nwindow = '1 per 1h'\nmessage = 'Espere.'\n";
    let json = Some("application/json");
    for (shape, kind, body) in [
        (
            "message",
            json,
            r#"{"success":false,"error":true,"errorMessage":"Espere.","retryAfter":WAIT}"#,
        ),
        ("error", json, r#"{"error":"Rate limit exceeded","retryAfter":WAIT}"#),
        ("conflict", json, r#"{"error":"Espere.","conflict":true,"retryAfter":WAIT}"#),
        ("empty", None, ""),
    ] {
        let server = TestServer::with_catalog(&format!("{policy}[server]\ndenial = '{shape}'\n"));
        assert_eq!(server.request("GET /v1/gates/login/authorize", &[]).status, 200);
        let denied = server.request("GET /v1/gates/login/authorize", &[]);
        assert_eq!((denied.status, denied.header("content-type")), (429, kind), "{shape}");
        let retry_after = denied.header("retry-after").unwrap();
        assert!(denied.header("ratelimit").unwrap().starts_with("\"login\";r=0;t="));
        assert_eq!(denied.body, body.replace("WAIT", retry_after), "{shape}");
    }
    let server = TestServer::with_catalog(&format!("{policy}[server]\ndenial = 'problem_xml'\n"));
    server.request("GET /v1/gates/login/authorize", &[]);
    let denied = server.request("GET /v1/gates/login/authorize", &[]);
    assert_eq!(denied.header("content-type"), Some("application/problem+xml"));
    assert!(denied.body.contains("<status>429</status><detail>Espere.</detail>"), "{denied:?}");
}

/// covers: 000-39, 000-40, 000-06
#[test]
fn the_storefronts_preset_denies_in_the_storefronts_own_shape() {
    let preset = include_str!("../../../../../presets/soft-ban/catalog.toml");
    let server = TestServer::with_catalog(preset);
    let described = [
        ("X-Forwarded-Method", "POST"),
        ("X-Forwarded-Uri", "/CheckoutServices-SubmitPayment"),
        ("X-Customer-No", "c1"),
        ("X-Session-Id", "s1"),
    ];
    assert_eq!(server.request("GET /v1/authorize", &described).status, 200);
    let check = r#"{"gate":"submit_payment","subject":{"customer":"c1","session":"s1"}}"#;
    let ticket = server.json("/v1/check", check).1["ticket"].clone();
    let settle =
        json!({ "ticket": ticket, "outcome": { "status": 200, "body": { "reject_id": 5 } } });
    assert_eq!(server.json("/v1/settle", &settle.to_string()).0, 200);
    let denied = server.request("GET /v1/authorize", &described);
    assert_eq!((denied.status, denied.header("content-type")), (429, Some("application/json")));
    let body = denied.json();
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["error", "errorMessage", "retryAfter", "success"]);
    assert_eq!((&body["success"], &body["error"]), (&false.into(), &true.into()));
    assert!(
        body["errorMessage"].as_str().unwrap().ends_with("Tente de novo em 10 minutos."),
        "{body}"
    );
    let retry_after: i64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(
        (body["retryAfter"].as_i64(), (590..=600).contains(&retry_after)),
        (Some(retry_after), true)
    );
}

#[test]
fn the_answer_of_the_directory_reconciles_and_unknown_policies_are_skipped() {
    let server = TestServer::with_catalog(CATALOG);
    let policy = |name: &str, tokens: &str| {
        format!("<Policy><AvailableTokens>{tokens}</AvailableTokens><Name>{name}</Name></Policy>")
    };
    let xml = format!(
        "<ListPoliciesResponse><ResponseTime>2026-01-31T12:00:00Z</ResponseTime><Policies>{}{}{}\
         </Policies></ListPoliciesResponse>",
        policy("ENTRIES_READ", "40"),
        policy("CLAIMS_READ", "7"),
        policy("CIDS_FILES_WRITE", "-2"),
    );
    let subject = json!({ "participant": "12345678" });
    let body = json!({ "subject": subject, "xml": xml });
    let (status, answer) = server.json("/v1/buckets/reconcile", &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let names: Vec<_> =
        answer["buckets"].as_array().unwrap().iter().map(|b| &b["policy"]).collect();
    assert_eq!(names, ["entries_read", "cids_files_write"]);
    assert_eq!(answer["skipped"][0]["policy"], "CLAIMS_READ");
    assert_eq!(answer["skipped"].as_array().unwrap().len(), 1);
    let state = server.json("/v1/buckets/entries_read", SUBJECT).1;
    assert!(state["balance"].as_i64().unwrap() <= 100, "{state}");
    for bad in [
        json!({ "subject": subject, "xml": "<R></R>" }),
        json!({ "subject": subject, "xml": xml, "states": [] }),
        json!({ "subject": subject }),
    ] {
        let (status, problem) = server.json("/v1/buckets/reconcile", &bad.to_string());
        assert_eq!((status, &problem["code"]), (400, &"bad-states".into()), "{bad}");
    }
}
