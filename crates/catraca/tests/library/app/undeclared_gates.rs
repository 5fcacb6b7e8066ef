//! A check of a gate that the catalog does not declare: reported once per name, with the nearest
//! name, or refused.

use std::sync::{Arc, Mutex};

use catraca::core::route::UNROUTED;
use catraca::event::Event;
use catraca::{Catalog, Check, Engine, Error, Refusal};

const CATALOG: &str = "default = 'rest'\n[policy.rest]\nby = ['ip']\nwindow = '9 per 1m'\n\
                       [policy.login]\nby = ['ip']\nwindow = '2 per 1m'\n";

fn check(gate: &str) -> Check<'_> {
    Check::new(gate, [("ip", "192.0.2.1")])
}

#[test]
fn each_name_is_reported_once_with_the_nearest_gate() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let listener = move |event: &Event<'_>| {
        if let Event::UnlistedGate { gate, nearest, .. } = event {
            let nearest = nearest.as_ref().map(|name| name.to_string());
            into.lock().expect("not poisoned").push((gate.clone(), nearest));
        }
    };
    let catalog = Catalog::parse(CATALOG).expect("a valid catalog");
    let engine = Engine::builder(catalog).listener(listener).build();
    for gate in ["logn", "login", "logn", "search", UNROUTED] {
        assert!(engine.check(&check(gate)).expect("a valid call").allowed);
    }
    let seen = seen.lock().expect("not poisoned").clone();
    let nearest = Some("login".to_owned());
    assert_eq!(seen, [("logn".to_owned(), nearest), ("search".to_owned(), None)]);
    assert_eq!(engine.undeclared_gates(), ["logn", "search"]);
}

#[test]
fn deny_refuses_undeclared_gates_and_keeps_the_default_for_requests_without_a_route() {
    let text = format!("unlisted = 'deny'\n{CATALOG}");
    let engine = Engine::new(Catalog::parse(&text).expect("a valid catalog"));
    let refused = engine.check(&check("logn"));
    assert!(matches!(refused, Err(Error::Refused(Refusal::UnknownGate(gate))) if gate == "logn"));
    assert!(engine.check(&check("login")).expect("declared").allowed);
    assert!(engine.check(&check(UNROUTED)).expect("the default decides").unlisted);
}
