//! The bodies that the client of the library sends are those that this server reads.
//!
//! Each call has every field set. The bodies are taken apart completely, so that a new field of the
//! server must be sent by the client, or be named here as one that it does not send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

use catraca::core::lock::requests::TimeRange;
use catraca::core::lock::{LeaseId, VersionPolicy};
use catraca::locks::{LeaseOptions, LockRequest, LockService, SlotRequest};
use catraca::{Check, CheckRef, Client, Credit, Settle, Span, Subject, Time};

use super::*;
use crate::http::bodies::lock_requests::{
    AcquireLock, ConfirmSlot, EndLease, HoldSlot, RenewLock, VersionPolicyBody,
};

const BODY_BYTES_MAX: usize = 65_536;
/// A call that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server that reads one request, refuses it, and sends its body to the receiver.
fn start_server() -> (Client, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut length = 0;
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 2 {
            let head = line.to_ascii_lowercase();
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let response = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        stream.get_mut().write_all(response).unwrap();
        sender.send(body).unwrap();
    });
    let client = Client::builder(&url).deadline(DEADLINE).build().unwrap();
    (client, receiver)
}

/// The body of one call, which the server refuses.
async fn body_of<T, E>(call: impl AsyncFnOnce(Client) -> Result<T, E>) -> Vec<u8> {
    let (client, bodies) = start_server();
    assert!(call(client).await.is_err());
    bodies.recv_timeout(DEADLINE).unwrap()
}

fn subject<'a>() -> Subject<'a> {
    Subject::from([("ip", "198.51.100.7"), ("user", "Ana \"A\"")])
}

fn assert_same_subject(parsed: &WireSubject<'_>) {
    assert_eq!(parsed.subject(), subject());
}

#[tokio::test]
async fn a_check_of_the_client_is_read_with_every_field() {
    let mut sent = Check::new("login", subject());
    sent.cost = Some(7);
    sent.reference = Some("E1");
    sent.lists = false;
    let checked = body_of(async |client| client.check(&sent).await).await;
    let peeked = body_of(async |client| client.peek(&sent).await).await;
    for json in [checked, peeked] {
        let WireCheck { gate, subject, cost, r#ref, lists } = read(&json).unwrap();
        assert_eq!((&*gate, cost, r#ref.as_deref()), ("login", Some(7), Some("E1")));
        assert_eq!(lists, Some(false));
        assert_same_subject(&subject);
    }
}

#[tokio::test]
async fn a_settle_of_the_client_is_read_with_every_field() {
    let outcome = |body: &[u8]| {
        let headers = [("retry-after".to_owned(), "9".to_owned())].into();
        let outcome = Outcome { status: Some(404), headers, cost: Some(3), ..Outcome::default() };
        outcome.with_body(OutcomeBody::from_json(body, BODY_BYTES_MAX))
    };
    // The client sends the second text in place of each that is not JSON.
    for sent in [outcome(br#"{"error":["no such key",null]}"#), outcome(b"not JSON")] {
        let checks = [CheckRef::Ticket("sealed"), CheckRef::Reference("E1", subject())];
        for (by_ticket, check) in [true, false].into_iter().zip(checks) {
            let call = Settle { namespace: "default", check, outcome: &sent };
            let json = body_of(async |client| client.settle(&call).await).await;
            let WireSettle { ticket, r#ref, subject, outcome } = read(&json).unwrap();
            if by_ticket {
                assert_eq!((ticket.as_deref(), r#ref), (Some("sealed"), None));
            } else {
                assert_eq!((ticket, r#ref.as_deref()), (None, Some("E1")));
                assert_same_subject(&subject);
            }
            let WireOutcome { status: _, body, body_text, headers: _, cost: _ } = &outcome;
            assert_eq!(
                (body.is_none(), body_text.is_some()),
                (sent.body_invalid, sent.body_invalid)
            );
            assert_eq!(outcome.read(BODY_BYTES_MAX).unwrap(), sent);
        }
    }
}

#[tokio::test]
async fn a_credit_of_the_client_is_read_with_every_field() {
    let subject_of_check = subject();
    let sent = Credit::new("E1", "payment", &subject_of_check);
    let json = body_of(async |client| client.credit(&sent).await).await;
    let WireCredit { r#ref, event, subject } = read(&json).unwrap();
    assert_eq!((&*r#ref, &*event), ("E1", "payment"));
    assert_same_subject(&subject);
}

fn lease_options() -> LeaseOptions {
    LeaseOptions {
        tenant: Some("t1".into()),
        kind: Some("payment".into()),
        ttl: Some(Duration::from_millis(30_001)),
        max_hold: Some(Duration::from_secs(90)),
        request_id: Some("request-7".into()),
        version: Some(12),
        owner_label: Some("worker 3".into()),
        meta: Some("{\"a\":1}".into()),
    }
}

#[tokio::test]
async fn an_acquire_of_the_client_is_read_with_every_field() {
    let sent = LockRequest {
        keys: vec!["order-7".into(), "order-8".into()],
        version_policy: Some(VersionPolicy::Monotonic),
        wait: Some(Duration::from_millis(1_500)),
        lease: lease_options(),
    };
    let json = body_of(async |client| client.acquire(&sent).await).await;
    let AcquireLock {
        tenant,
        kind,
        key,
        keys,
        ttl_ms,
        wait_ms,
        request_id,
        version,
        version_policy,
        owner_label,
        meta,
        max_hold_ms,
    } = read(&json).unwrap();
    assert_eq!((tenant.as_deref(), kind.as_deref()), (Some("t1"), Some("payment")));
    // The client sends one name as a list too.
    assert_eq!((key, keys), (None, Some(vec!["order-7".to_owned(), "order-8".to_owned()])));
    assert_eq!((ttl_ms, wait_ms), (Some(30_001), Some(1_500)));
    assert_eq!((request_id.as_deref(), version), (Some("request-7"), Some(12)));
    assert!(matches!(version_policy, Some(VersionPolicyBody::Monotonic)));
    assert_eq!(owner_label.as_deref(), Some("worker 3"));
    assert_eq!((meta.as_deref(), max_hold_ms), (Some("{\"a\":1}"), Some(90_000)));
    let sent = LockRequest { version_policy: Some(VersionPolicy::Opaque), ..sent };
    let json = body_of(async |client| client.acquire(&sent).await).await;
    let parsed: AcquireLock = read(&json).unwrap();
    assert!(matches!(parsed.version_policy, Some(VersionPolicyBody::Opaque)));
}

#[tokio::test]
async fn a_hold_of_the_client_is_read_with_every_field() {
    let range = TimeRange {
        start: Time::from_millis(2_000_000_000_000),
        end: Time::from_millis(2_000_001_800_000),
        before: Span::from_millis(60_001),
        after: Span::from_millis(120_000),
    };
    let sent =
        SlotRequest { calendars: vec!["ana".into(), "bia".into()], range, lease: lease_options() };
    let json = body_of(async |client| client.hold(&sent).await).await;
    let HoldSlot {
        tenant,
        kind,
        calendar,
        calendars,
        start,
        end,
        buffer_before_ms,
        buffer_after_ms,
        ttl_ms,
        request_id,
        version,
        owner_label,
        meta,
        max_hold_ms,
    } = read(&json).unwrap();
    assert_eq!((tenant.as_deref(), kind.as_deref()), (Some("t1"), Some("payment")));
    // The client sends one calendar as a list too.
    assert_eq!((calendar, calendars), (None, Some(vec!["ana".to_owned(), "bia".to_owned()])));
    assert_eq!(start.time("start").unwrap(), range.start);
    assert_eq!(end.time("end").unwrap(), range.end);
    assert_eq!((buffer_before_ms, buffer_after_ms), (Some(60_001), Some(120_000)));
    assert_eq!((ttl_ms, max_hold_ms), (Some(30_001), Some(90_000)));
    assert_eq!((request_id.as_deref(), version), (Some("request-7"), Some(12)));
    assert_eq!(owner_label.as_deref(), Some("worker 3"));
    assert_eq!(meta.as_deref(), Some("{\"a\":1}"));
}

#[tokio::test]
async fn calls_of_the_client_about_a_lease_are_read_with_every_field() {
    let lease = LeaseId::from_bytes([7; 16]);
    let ttl = Some(Duration::from_millis(5_001));
    let json = body_of(async |client| client.renew(lease, ttl).await).await;
    let RenewLock { lease_id, ttl_ms } = read(&json).unwrap();
    assert_eq!((lease_id, ttl_ms), (lease.reveal(), Some(5_001)));

    let json = body_of(async |client| client.confirm(lease, true).await).await;
    let ConfirmSlot { lease_id, reacquire_if_free } = read(&json).unwrap();
    assert_eq!((lease_id, reacquire_if_free), (lease.reveal(), true));

    let released = body_of(async |client| client.release(lease).await).await;
    let cancelled = body_of(async |client| client.cancel(lease).await).await;
    for json in [released, cancelled] {
        let EndLease { lease_id } = read(&json).unwrap();
        assert_eq!(lease_id, lease.reveal());
    }
}
