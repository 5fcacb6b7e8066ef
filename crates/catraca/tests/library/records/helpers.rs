//! Records and engines for the tests of both dialects.

use std::sync::Arc;

use catraca::records::{BlockEvent, Operator, Record, RecordKind, Records, SubjectKey};
use catraca::{App, Builder, Catalog, Check, Engine, ManualClock, Secret, Span, Subject, Time};
use catraca_core::cell::block::{Block, BlockNote, Origin};
use catraca_core::digest::{Digester, Domain};

pub use super::test_database::TestDatabase;

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
pub const SECRET: Secret = Secret::from_bytes([7; 32]);
/// An operator who gives no reason.
pub const ANA: Operator<'static> = Operator { name: "ana", why: None };

/// An engine that writes its events to the records, and its clock.
pub fn engine(catalog: &str, records: &Arc<Records>) -> (Engine, ManualClock) {
    let clock = ManualClock::at(START);
    (engine_at(catalog, records, &clock), clock)
}

pub fn engine_at(catalog: &str, records: &Arc<Records>, clock: &ManualClock) -> Engine {
    let recorder = Arc::clone(records);
    builder(catalog, clock).listener(move |event| recorder.on_event(event)).build()
}

/// An application that writes to the records, and its clock.
pub fn app(catalog: &str, records: &Arc<Records>) -> (App, ManualClock) {
    let clock = ManualClock::at(START);
    (app_over(builder(catalog, &clock).build(), records), clock)
}

pub fn app_over(engine: Engine, records: &Arc<Records>) -> App {
    App::local(engine).records(Arc::clone(records)).build()
}

pub fn builder(catalog: &str, clock: &ManualClock) -> Builder {
    Engine::builder(Catalog::parse(catalog).unwrap()).clock(clock.clone()).secret(SECRET)
}

/// Runs an operation of an application on a runtime of its own: the queries of these tests block,
/// which is not possible on a runtime.
pub fn block_on<T>(operation: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(operation)
}

pub fn passes(engine: &Engine, gate: &str, subject: &[(&str, &str)]) -> bool {
    engine
        .check(&Check::new(gate, subject.iter().copied().collect::<Subject<'_>>()))
        .unwrap()
        .allowed
}

/// As [`passes`], through an application.
pub fn app_passes(app: &App, gate: &str, subject: &[(&str, &str)]) -> bool {
    let subject: Subject<'_> = subject.iter().copied().collect();
    block_on(app.check(&Check::new(gate, subject))).unwrap().allowed
}

pub fn secs(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

pub fn at(seconds: i64) -> Time {
    START.after(secs(seconds))
}

/// The subject of a record: one address under one policy.
pub fn subject_key(policy: &str, address: &str) -> SubjectKey {
    let mut hasher = Digester::new(&SECRET).start(Domain::Cell);
    SubjectKey {
        key: hasher.part(policy.as_bytes()).part(address.as_bytes()).finish(),
        namespace: "default".to_owned(),
        policy: policy.to_owned(),
        parts: vec![("ip".to_owned(), address.to_owned())],
    }
}

pub fn block_record(
    subject_key: SubjectKey,
    until: Time,
    origin: Origin,
    reason: Option<&str>,
) -> RecordKind {
    let note = BlockNote { reason: reason.map(Into::into), ..BlockNote::default() };
    let block = Block { until, origin, shadow: false, level: 0, forget: Span::ZERO, note };
    RecordKind::Block(Box::new(BlockEvent {
        subject: subject_key,
        epoch: Time::ZERO,
        first_of_act: None,
        block,
    }))
}

/// A block that the engine started for an excess.
pub fn excess_block(policy: &str, address: &str, from: Time, until: Time) -> Record {
    Record::automatic(from, block_record(subject_key(policy, address), until, Origin::Excess, None))
}

pub fn write(records: &Records, all: Vec<Record>) {
    assert!(records.record(all).wait().is_durable());
}
