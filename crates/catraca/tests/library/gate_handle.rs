//! Gates that are looked up once: the same decisions as by name, and errors when they are made.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use catraca::{Catalog, Check, Engine, Error, GateError, ManualClock, OwnedGate, Refusal};

const CATALOG: &str = "
    [attribute.email]
    kind = 'caseless'

    [facts.token.abc]
    plan = 'gold'

    [policy.login]
    by     = ['ip']
    window = '2 per 1m'
    block  = '15m'

    [policy.api]
    by        = ['tenant', 'token|ip']
    tier      = [{ when = { plan = 'gold' }, window = '9 per 1m' }]
    otherwise = 'login'

    [policy.strict]
    by     = ['account']
    window = '9 per 1m'

    [gate.all]
    policies = ['login', 'api']
";

fn engine() -> (Engine, ManualClock) {
    let clock = ManualClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600));
    let catalog = Catalog::parse(CATALOG).unwrap();
    (Engine::builder(catalog).clock(clock.clone()).build(), clock)
}

#[test]
fn a_handle_decides_as_a_check_by_name_does() {
    let (by_handle, clock) = engine();
    let (by_name, other_clock) = engine();
    let all = by_handle.gate_by("all", ["ip", "tenant", "token"]).unwrap().namespace("shop");
    let callers = [["198.51.100.7", "t", "abc"], ["198.51.100.7", "", ""], ["::1", "t", "x"]];
    for round in 0..12 {
        let values = callers[round % callers.len()];
        let subject = [("ip", values[0]), ("tenant", values[1]), ("token", values[2])];
        let check = Check::new("all", subject).namespace("shop");
        assert_eq!(all.peek(values).unwrap(), by_name.peek(&check).unwrap(), "{round}");
        assert_eq!(all.check(values).unwrap(), by_name.check(&check).unwrap(), "{round}");
        clock.advance(Duration::from_secs(10));
        other_clock.advance(Duration::from_secs(10));
    }
}

#[test]
fn a_misspelt_gate_or_attribute_is_an_error_with_the_nearest_name() {
    let (engine, _) = engine();
    let gate = engine.gate_by("logni", ["ip"]).unwrap_err();
    let nearest = Some("login".to_owned());
    assert_eq!(gate, GateError::UnknownGate { gate: "logni".to_owned(), nearest });
    let attribute = engine.gate_by("api", ["tennant", "token"]).unwrap_err();
    assert_eq!(
        attribute.to_string(),
        "gate `api` reads no attribute `tennant`, but tenant, token, ip: did you mean `tenant`?"
    );
    assert_eq!(engine.gate_attributes("api").unwrap(), ["tenant", "token", "ip"]);
    assert!(
        engine.gate_by("login", ["ip", "email"]).is_ok(),
        "lists may read any declared attribute"
    );
}

#[test]
fn attributes_with_which_every_check_would_be_refused_are_an_error() {
    let (engine, _) = engine();
    let missing =
        Refusal::MissingAttribute { policy: "strict".to_owned(), attribute: "account".to_owned() };
    assert_eq!(engine.gate_by("strict", ["ip"]).unwrap_err(), GateError::Refused(missing));
    let reserved = engine.gate_by("api", ["tenant", "token", "plan"]).unwrap_err();
    assert!(matches!(reserved, GateError::Refused(Refusal::ReservedAttribute { .. })));
    assert!(engine.gate_by("api", ["tenant"]).is_ok(), "`otherwise` may still apply");
}

#[test]
fn a_handle_follows_a_reload() {
    let (engine, _) = engine();
    let login = engine.gate_by("login", ["ip"]).unwrap();
    assert_eq!(login.check(["198.51.100.7"]).unwrap().limit, Some(2));
    engine.reload(Catalog::parse(&CATALOG.replace("'2 per 1m'", "'3 per 1m'")).unwrap());
    let decision = login.check(["198.51.100.7"]).unwrap();
    assert_eq!((decision.limit, decision.remaining), (Some(3), Some(1)));
    engine.reload(Catalog::parse("[policy.other]\nby = ['ip']\nwindow = '1 per 1m'").unwrap());
    let refused = login.check(["198.51.100.7"]).unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::UnknownGate(_))), "{refused}");
}

#[test]
fn a_cost_and_a_reference_can_be_added() {
    let (engine, _) = engine();
    let strict = engine.gate_by("strict", ["account"]).unwrap();
    assert_eq!(strict.check_cost(["a"], 4).unwrap().remaining, Some(5));
    let decision = strict.decide(&strict.request(["a"]).cost(3).reference("r")).unwrap();
    assert_eq!(decision.remaining, Some(2));
    let refused = strict.check_cost(["a"], -1).unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::BadCost(-1))), "{refused}");
    assert_eq!(strict.attributes().collect::<Vec<_>>(), ["account"]);
}

/// The state of an application, which threads share and which outlives the function that made it.
struct AppState {
    login: OwnedGate,
    api: OwnedGate<2>,
}

#[test]
fn an_owned_gate_keeps_its_engine_and_decides_as_the_borrowed_one_does() {
    let engine = Arc::new(engine().0);
    let login = engine.owned_gate("login").unwrap();
    let api = engine.owned_gate_by("api", ["tenant", "ip"]).unwrap().namespace("shop");
    let state = Arc::new(AppState { login, api });
    assert_eq!(engine.gate("login").unwrap().check(["::1"]).unwrap().remaining, Some(1));
    drop(engine);
    let other = Arc::clone(&state);
    let decided = thread::spawn(move || other.login.check(["::1"]).unwrap()).join().unwrap();
    assert_eq!(decided.remaining, Some(0), "one counter");
    let clone = state.login.clone();
    assert!(!clone.check(["::1"]).unwrap().allowed);
    assert!(state.api.check(["t", "::1"]).unwrap().allowed);
}

#[test]
fn an_owned_gate_follows_a_reload_and_has_the_same_errors() {
    let engine = Arc::new(engine().0);
    let login = engine.owned_gate("login").unwrap();
    engine.reload(Catalog::parse(&CATALOG.replace("'2 per 1m'", "'3 per 1m'")).unwrap());
    assert_eq!(login.check(["198.51.100.7"]).unwrap().limit, Some(3));
    let borrowed = engine.gate("logni").unwrap_err();
    assert_eq!(engine.owned_gate("logni").unwrap_err(), borrowed);
    let borrowed = engine.gate("all").unwrap_err();
    assert_eq!(engine.owned_gate("all").unwrap_err(), borrowed, "the attributes in their order");
    assert!(engine.owned_gate_by("api", ["tennant", "ip"]).is_err());
}

#[test]
fn a_gate_of_one_attribute_needs_no_names() {
    let (engine, _) = engine();
    let login = engine.gate("login").unwrap();
    assert_eq!(login.attributes().collect::<Vec<_>>(), ["ip"]);
    let address = std::net::IpAddr::from([198, 51, 100, 7]);
    let by_address = login.check([address]).unwrap();
    let by_text = login.check(["198.51.100.7"]).unwrap();
    assert_eq!(by_address.remaining.map(|left| left - 1), by_text.remaining, "one counter");
    let error = engine.gate("all").unwrap_err();
    assert!(matches!(&error, GateError::AttributesNotNamed { gate, .. } if gate == "all"));
    assert!(error.to_string().contains("gate_by(\"all\", [\"ip\", "), "{error}");
}
