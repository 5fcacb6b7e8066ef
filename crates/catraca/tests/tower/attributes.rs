//! Attributes that are read from a request: addresses, headers, path segments, closures.

use catraca::tower::{
    AddressSource, AttributeExtractor, ExtractError, ForwardedAddress, ForwardedAddressError,
    RateLimitLayer,
};
use catraca::{Check, Engine, GateError};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};

use crate::helpers::{engine, json_of, remaining, request, request_from, send};
use crate::log_lines::LogLines;

const BY_IP: &str = "[policy.p]\n by = ['ip']\n window = '9 per 1m'";

fn with_header(mut request: Request<()>, name: &'static str, value: &'static str) -> Request<()> {
    request.headers_mut().append(name, HeaderValue::from_static(value));
    request
}

fn used(engine: &Engine, attribute: &str, value: &str) -> i64 {
    let decision = engine.peek(&Check::new("p", [(attribute, value)])).unwrap();
    9 - decision.remaining.unwrap()
}

#[tokio::test]
async fn trusted_proxies_are_read_from_the_right() {
    let (engine, _clock) = engine(BY_IP);
    let layer = RateLimitLayer::new(engine.clone(), "p")
        .by_forwarded_address(AddressSource::XForwardedFor, ["10.0.0.0/8"])
        .unwrap();
    let name = "x-forwarded-for";
    let forwarded = with_header(request_from("10.0.0.1"), name, "192.0.2.66, 203.0.113.9");
    send(&layer, with_header(forwarded, name, "10.0.0.2")).await;
    assert_eq!(used(&engine, "ip", "203.0.113.9"), 1, "the first untrusted hop from the right");
    assert_eq!(used(&engine, "ip", "192.0.2.66"), 0, "a hop that the client may have forged");

    send(&layer, with_header(request(), name, "203.0.113.9")).await;
    assert_eq!(used(&engine, "ip", "203.0.113.9"), 1, "an untrusted peer chooses no address");
    assert_eq!(remaining(&engine, "p"), Some(8));
}

#[tokio::test]
async fn addresses_of_one_ipv6_network_share_a_counter() {
    let (engine, _clock) = engine(BY_IP);
    let layer = RateLimitLayer::new(engine.clone(), "p").by_peer_address();
    send(&layer, request_from("2001:db8::1")).await;
    send(&layer, request_from("2001:db8::2")).await;
    send(&layer, request_from("::ffff:198.51.100.7")).await;
    assert_eq!(used(&engine, "ip", "2001:db8::3"), 2);
    assert_eq!(remaining(&engine, "p"), Some(8), "an IPv4-mapped address is the IPv4 address");
}

#[tokio::test]
async fn a_header_that_is_sent_twice_is_refused() {
    let (engine, _clock) = engine("[policy.p]\n by = ['tenant']\n window = '9 per 1m'");
    let layer = RateLimitLayer::new(engine.clone(), "p").by_header("tenant", "X-Tenant");
    send(&layer, with_header(request(), "x-tenant", "a")).await;
    assert_eq!(used(&engine, "tenant", "a"), 1);
    let twice = with_header(with_header(request(), "x-tenant", "a"), "x-tenant", "b");
    let response = send(&layer, twice).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(response).await["code"], "ambiguous-request");
}

#[tokio::test]
async fn path_segments_are_decoded_and_ambiguous_paths_refused() {
    let (engine, _clock) = engine("[policy.p]\n by = ['account']\n window = '9 per 1m'");
    let layer = RateLimitLayer::new(engine.clone(), "p").by_path_segment("account", 2);
    let get = |path: &str| Request::get(path).body(()).unwrap();
    send(&layer, get("/accounts/7/orders?x=1")).await;
    send(&layer, get("/accounts/%37/orders")).await;
    send(&layer, get("/accounts//7")).await;
    assert_eq!(used(&engine, "account", "7"), 3, "spellings of one path");
    let response = send(&layer, get("/accounts/7%2f8")).await;
    assert_eq!(json_of(response).await["code"], "ambiguous-path");
    let missing = send(&layer, get("/accounts")).await;
    assert_eq!(json_of(missing).await["code"], "missing-attribute");
}

#[tokio::test]
async fn several_attributes_make_one_key() {
    let (engine, _clock) = engine("[policy.p]\n by = ['ip', 'user']\n window = '9 per 1m'");
    let user = |request: &Parts| Some(request.uri.query()?.to_owned());
    let layer = RateLimitLayer::new(engine.clone(), "p").by_peer_address().by("user", user);
    let mut request = request();
    *request.uri_mut() = "/?ana".parse().unwrap();
    send(&layer, request).await;
    let left = |user| {
        let check = Check::new("p", [("ip", crate::helpers::CLIENT), ("user", user)]);
        engine.peek(&check).unwrap().remaining
    };
    assert_eq!((left("ana"), left("bob")), (Some(8), Some(9)));
}

#[tokio::test]
async fn a_forwarding_header_that_is_ignored_is_reported_once() {
    let (log, _guard) = LogLines::capture();
    let (engine, _clock) = engine(BY_IP);
    let peer = RateLimitLayer::new(engine.clone(), "p").by_peer_address();
    send(&peer, request()).await;
    assert_eq!(log.text(), "", "no header, no warning");
    for _ in 0..2 {
        send(&peer, with_header(request(), "x-forwarded-for", "192.0.2.1")).await;
    }
    let forwarded = RateLimitLayer::new(engine, "p")
        .by_forwarded_address(AddressSource::Forwarded, ["10.0.0.0/8"])
        .unwrap();
    for _ in 0..2 {
        send(&forwarded, with_header(request(), "forwarded", "for=192.0.2.1")).await;
    }
    let text = log.text();
    assert_eq!(text.matches("all clients share one counter").count(), 2, "{text}");
}

#[test]
fn proxies_that_cannot_be_trusted_are_errors_at_start() {
    let forwarded = |trusted: &[&'static str]| {
        let trusted = trusted.iter().copied();
        ForwardedAddress::new(AddressSource::XForwardedFor, trusted).map(drop)
    };
    assert_eq!(forwarded(&[]), Err(ForwardedAddressError::NoTrustedProxies));
    let error = forwarded(&["10.0.0.1/8"]).unwrap_err().to_string();
    assert!(error.contains("`10.0.0.1/8` is not the start of its range"), "{error}");
    assert_eq!(forwarded(&["10.0.0.0/8", "::1"]), Ok(()));
    let address = std::net::IpAddr::from([10, 0, 0, 1]);
    assert!(ForwardedAddress::new(AddressSource::Forwarded, [address]).is_ok());
    let peer = ForwardedAddress::new(AddressSource::Peer, [address]).map(drop);
    assert_eq!(peer, Err(ForwardedAddressError::NoHeader));
}

/// A visitor without a session must log in first.
struct Session;

impl AttributeExtractor for Session {
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        let session = request.headers.get("x-session").and_then(|value| value.to_str().ok());
        let session = session.ok_or_else(|| ExtractError::Custom {
            status: StatusCode::UNAUTHORIZED,
            code: "no-session",
            detail: "log in first".to_owned(),
        })?;
        Ok(Some(session.to_owned()))
    }
}

#[tokio::test]
async fn an_extractor_refuses_a_request_in_its_own_words() {
    let (engine, _clock) = engine("[policy.p]\n by = ['session']\n window = '9 per 1m'");
    let layer = RateLimitLayer::new(engine.clone(), "p").by("session", Session);
    let refused = send(&layer, request()).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let problem = json_of(refused).await;
    assert_eq!(
        (&problem["code"], &problem["detail"]),
        (&"no-session".into(), &"log in first".into())
    );
    send(&layer, with_header(request(), "x-session", "a")).await;
    assert_eq!(used(&engine, "session", "a"), 1);
}

#[test]
fn a_misspelt_gate_is_an_error_when_the_layer_is_made() {
    let (engine, _clock) = engine(BY_IP);
    assert!(RateLimitLayer::try_new(engine.clone(), "p").is_ok());
    let error = RateLimitLayer::try_new(engine, "pp").unwrap_err();
    assert!(matches!(&error, GateError::UnknownGate { gate, .. } if gate == "pp"), "{error}");
}
