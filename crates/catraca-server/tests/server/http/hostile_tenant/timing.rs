//! What one tenant can learn of another by the time that an answer takes: the answers about a
//! customer of another namespace, and about one that does not exist, are the same.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{CUSTOMER, Tenants, send};

/// Calls of each kind, in turns, so that the load of the machine is the same for both.
const ROUNDS: usize = 200;

/// The median time of a call for each of two bodies, and the answers, which have to be equal once
/// the names are replaced.
fn compare(
    all: &Tenants,
    call: impl Fn(&str) -> String,
    body: impl Fn(&str) -> String,
    names: [&str; 2],
) {
    let mut times: [Vec<Duration>; 2] = Default::default();
    let mut answers: [Vec<String>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (index, name) in names.iter().enumerate() {
            let begun = Instant::now();
            let answer = send(&all.server, &all.hostile_admin, &call(name), &body(name));
            times[index].push(begun.elapsed());
            answers[index].push(format!("{} {}", answer.status, answer.body.replace(name, "X")));
        }
    }
    let [known, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    println!("{}: {known:?} for a name of the shop, {unknown:?} for an invented one", call("X"));
    assert_eq!(answers[0], answers[1], "{}", call("X"));
    let difference = known.abs_diff(unknown);
    let bound = known.max(unknown) / 2 + Duration::from_millis(2);
    assert!(difference < bound, "{}: {known:?} and {unknown:?}", call("X"));
}

#[test]
fn answers_about_a_customer_of_another_tenant_are_those_about_an_invented_one() {
    let all = Tenants::start();
    let block = json!({ "policy": "login", "subject": { "customer": CUSTOMER }, "for": "1h",
        "namespace": "shop" });
    let id = all.post(&all.operator, "/v1/blocks", &block)["blocks"][0]["id"].clone();
    let id = id.as_str().unwrap();
    // Another id of the same form: its last digit differs.
    let last = if id.ends_with('0') { '1' } else { '0' };
    let invented = format!("{}{last}", &id[..id.len() - 1]);
    let names = [CUSTOMER, "c-4712-invented---"];
    assert_eq!(names[0].len(), names[1].len());
    let subject = |name: &str| json!({ "subject": { "customer": name } }).to_string();
    compare(&all, |id| format!("GET /v1/blocks/{id}"), |_| String::new(), [id, &invented]);
    compare(&all, |_| "POST /v1/inspect".to_owned(), subject, names);
    let blocks = |name: &str| format!("GET /v1/blocks?attribute=customer&value={name}");
    compare(&all, blocks, |_| String::new(), names);
    let peek = |name: &str| json!({ "gate": "login", "subject": { "customer": name } }).to_string();
    compare(&all, |_| "POST /v1/peek".to_owned(), peek, names);
}
