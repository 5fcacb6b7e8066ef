//! Slots: half-open intervals that never overlap, held and then confirmed.

use std::sync::Barrier;
use std::thread;

use catraca_testkit::generate::Rng;
use serde_json::{Value, json};

use super::{CATALOG, catalog_with_lock_store, lock_server, post, status_and_code};
use crate::raw_connection::HttpResponse;
use crate::test_server::TestServer;

fn hold(server: &TestServer, calendar: &str, from: &str, to: &str) -> HttpResponse {
    let body = json!({ "calendar": calendar, "start": at(from), "end": at(to), "kind": "payment" });
    post(server, "/v1/slots/hold", &body)
}

fn at(time: &str) -> String {
    let seconds = if time.len() == 5 { ":00" } else { "" };
    format!("2030-01-07T{time}{seconds}Z")
}

fn confirm(server: &TestServer, lease: &Value, again: bool) -> HttpResponse {
    let body = json!({ "lease_id": lease["lease_id"], "reacquire_if_free": again });
    post(server, "/v1/slots/confirm", &body)
}

fn cancel(server: &TestServer, lease: &Value) -> String {
    let answer = post(server, "/v1/slots/cancel", &json!({ "lease_id": lease["lease_id"] }));
    answer.json()["outcome"].as_str().unwrap().to_owned()
}

fn availability(server: &TestServer, calendar: &str, more: &str) -> Value {
    let range = "from=2030-01-07T09:00:00Z&to=2030-01-07T12:00:00Z";
    let answer = server.request(&format!("GET /v1/slots?calendar={calendar}&{range}{more}"), &[]);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// S01, S02, S03.
/// covers: 004-34, B-63
#[test]
fn touching_is_allowed_and_any_overlap_is_not() {
    let server = lock_server(CATALOG);
    for (from, to) in [("10:00", "10:30"), ("10:30", "11:00"), ("09:30", "10:00")] {
        assert_eq!(hold(&server, "ana", from, to).status, 200, "{from}");
    }
    let overlaps =
        [("10:15", "10:45"), ("10:05", "10:10"), ("09:00", "12:00"), ("10:29:59.999", "10:30")];
    for (from, to) in overlaps {
        let answer = hold(&server, "ana", from, to);
        assert_eq!((answer.status, &answer.json()["taken"]), (409, &"ana".into()), "{from}");
        assert!(answer.json()["holder"]["version"].is_i64());
    }
    assert_eq!(hold(&server, "rui", "10:15", "10:45").status, 200);
    let other =
        json!({ "tenant": "t2", "calendar": "ana", "start": at("10:15"), "end": at("10:45") });
    assert_eq!(post(&server, "/v1/slots/hold", &other).status, 200);
}

/// S04, S07.
#[test]
fn a_late_confirmation_is_refused_unless_it_may_take_the_slot_anew() {
    let server = lock_server(CATALOG);
    let brief = |from: &str, to: &str| {
        let body = json!({ "calendar": "ana", "start": at(from), "end": at(to), "ttl_ms": 1 });
        post(&server, "/v1/slots/hold", &body).json()
    };
    let free = brief("10:00", "10:30");
    let taken = brief("11:00", "11:30");
    let winner = loop {
        let answer = hold(&server, "ana", "11:15", "11:45");
        if answer.status == 200 {
            break answer.json();
        }
    };
    let late = confirm(&server, &taken, true);
    assert_eq!((late.status, &late.json()["still_free"]), (410, &false.into()));
    let late = confirm(&server, &free, false);
    assert_eq!((late.status, &late.json()["still_free"]), (410, &true.into()));
    let again = confirm(&server, &free, true);
    assert_eq!(again.status, 200);
    assert!(again.json()["fence"].as_i64() > free["fence"].as_i64());
    assert_eq!(confirm(&server, &winner, false).status, 200);
}

/// S05, S06.
#[test]
fn what_is_confirmed_stays_until_it_is_cancelled() {
    let (file, lock_store) = catalog_with_lock_store(CATALOG);
    let server = TestServer::from_file(&file);
    let body =
        json!({ "calendar": "ana", "start": at("10:00"), "end": at("10:30"), "kind": "quick" });
    let lease = post(&server, "/v1/slots/hold", &body).json();
    let first = confirm(&server, &lease, false);
    assert_eq!(
        (first.status, &first.json()["durable"]),
        (200, &lock_store.is_durable().into()),
        "{first:?}"
    );
    assert_eq!(confirm(&server, &lease, false).json(), first.json());
    let stranger = json!({ "lease_id": "0123456789abcdef0123456789abcdef" });
    assert_eq!(
        status_and_code(&post(&server, "/v1/slots/confirm", &stranger)),
        (409, "not-holder".to_owned())
    );
    // A confirmed slot survives every end of the process.
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    assert_eq!(availability(&server, "ana", "")["busy"][0]["state"], "confirmed");
    assert_eq!(cancel(&server, &lease), "released");
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    assert_eq!(availability(&server, "ana", "")["available"], true);
}

/// S08, S10.
#[test]
fn a_move_frees_the_old_place_or_keeps_it_and_several_calendars_go_together() {
    let server = lock_server(CATALOG);
    let ana = hold(&server, "ana", "10:00", "10:30").json();
    hold(&server, "ana", "11:00", "11:30").json();
    let go = |from: &str, to: &str| {
        let body = json!({ "lease_id": ana["lease_id"], "start": at(from), "end": at(to) });
        post(&server, "/v1/slots/move", &body)
    };
    assert_eq!(go("11:15", "11:45").status, 409);
    assert_eq!(hold(&server, "ana", "10:00", "10:30").status, 409, "the old slot is still held");
    assert_eq!(go("10:15", "10:45").status, 200, "overlaps only its own old slot");
    assert_eq!(
        hold(&server, "ana", "10:00", "10:15").status,
        200,
        "the rest of the old slot is free"
    );
    hold(&server, "room", "09:00", "12:00").json();
    let both = json!({ "calendars": ["zoe", "room"], "start": at("11:00"), "end": at("11:30") });
    let conflict = post(&server, "/v1/slots/hold", &both);
    assert_eq!((conflict.status, &conflict.json()["taken"]), (409, &"room".into()));
    assert_eq!(availability(&server, "zoe", "")["available"], true, "nothing is held");
}

/// S12, and buffers.
/// covers: 004-30, B-62
#[test]
fn a_look_shows_gaps_and_leaves_out_ones_own() {
    let server = lock_server(CATALOG);
    let body = json!({
        "calendar": "ana", "start": at("10:00"), "end": at("10:30"),
        "buffer_before_ms": 300_000, "buffer_after_ms": 600_000, "kind": "payment",
    });
    let lease = post(&server, "/v1/slots/hold", &body).json();
    let seen = availability(&server, "ana", "&min_length_ms=3600000");
    assert_eq!(seen["busy"][0]["start"], "2030-01-07T09:55:00Z");
    assert_eq!(seen["busy"][0]["end"], "2030-01-07T10:40:00Z");
    assert_eq!(
        seen["free"],
        json!([{ "start": "2030-01-07T10:40:00Z", "end": "2030-01-07T12:00:00Z" }])
    );
    assert_eq!(seen["available"], false);
    let own = format!("&without={}", lease["lease_id"].as_str().unwrap());
    assert_eq!(availability(&server, "ana", &own)["available"], true);
    assert_eq!(hold(&server, "ana", "10:30", "10:40").status, 409, "the buffer is not bookable");
    assert_eq!(hold(&server, "ana", "10:40", "10:50").status, 200);
}

/// S13.
#[test]
fn what_is_no_range_is_refused_and_nothing_is_held() {
    let server = lock_server(CATALOG);
    let wrong = [
        (json!(at("10:00")), json!(at("10:00")), "bad-lock"),
        (json!(at("10:30")), json!(at("10:00")), "bad-lock"),
        (json!("2030-01-07T10:00:00"), json!(at("10:30")), "bad-instant"),
        (json!("2030-01-07T10:00:00Z"), json!("2030-01-08T11:00:00Z"), "bad-lock"),
        (json!(-1), json!(5), "bad-instant"),
    ];
    for (start, end, code) in wrong {
        let body = json!({ "calendar": "ana", "start": start, "end": end });
        let answer = post(&server, "/v1/slots/hold", &body);
        assert_eq!(status_and_code(&answer), (400, code.to_owned()), "{body}");
    }
    assert_eq!(server.request("GET /v1/stats/locks", &[]).json()["total"], 0);
    let millis =
        json!({ "calendar": "ana", "start": 1_900_000_000_000_i64, "end": 1_900_000_060_000_i64 });
    assert_eq!(post(&server, "/v1/slots/hold", &millis).status, 200);
}

/// S09, S14.
/// covers: 004-69, 004-87
#[test]
fn of_many_at_once_exactly_one_gets_each_moment() {
    let server = lock_server(CATALOG);
    let barrier = Barrier::new(8);
    let granted: Vec<(i64, i64)> = thread::scope(|scope| {
        let one = |seed| hold_at_random(&server, &barrier, seed);
        let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || one(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = granted.clone();
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|pair| pair[0].1 <= pair[1].0), "an overlap was granted");
    assert!(granted.len() > 20, "{}", granted.len());
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["total"], &stats["success"]), (&2_400.into(), &granted.len().into()));
}

/// Sends three hundred random holds on one connection; returns those that were granted.
fn hold_at_random(server: &TestServer, barrier: &Barrier, seed: u64) -> Vec<(i64, i64)> {
    let mut connection = server.connect();
    let mut granted = Vec::new();
    let mut rng = Rng::new(seed);
    barrier.wait();
    for _ in 0..300 {
        let start = 1_900_000_000_000 + rng.within(0, 2_000) * 1_000;
        let end = start + rng.within(1, 60) * 1_000;
        let body = json!({ "calendar": "ana", "start": start, "end": end, "ttl_ms": 300_000 });
        connection.post("/v1/slots/hold", &body.to_string());
        let answer = connection.read_response();
        match answer.status {
            200 => granted.push((start, end)),
            status => assert_eq!(status, 409, "{answer:?}"),
        }
    }
    granted
}
