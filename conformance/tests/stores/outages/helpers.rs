//! A node over a real Redis, continuous callers, and a report of what they observed in an outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::shared::SharedStats;
use catraca::{
    App, BlockProposal, Builder, Catalog, Check, Clock, Decision, Engine, Secret, SharedOptions,
    Span, Subject,
};
use tokio::runtime::Runtime;

/// The documented maximum duration of a call to the store.
pub const DEADLINE: Duration = Duration::from_millis(50);
/// The additional latency of a busy test machine.
pub const NOISE: Duration = Duration::from_millis(150);
/// The maximum time until the circuit breaker opens.
pub const OPENS: Duration = Duration::from_secs(1);
/// The maximum time until a recovered store is used again.
pub const RECOVERS: Duration = Duration::from_secs(2);
/// Concurrent callers.
const CALLERS: usize = 16;

pub const CATALOG: &str = r#"
[policy.local]
by     = ["ip"]
bucket = { size = 1000000, refill = "1000000 per 1m" }
[policy.login]
by     = ["ip"]
window = "5 per 1m"
block  = "10m"
[policy.slow]
by     = ["ip"]
bucket = { size = 5, refill = "5 per 10m" }
[policy.count]
by     = ["ip"]
bucket = { size = 1000000, refill = "1 per 1h" }
[policy.closed]
by     = ["ip"]
bucket = { size = 1000000, refill = "1000000 per 1m" }
on_failure = "closed"
"#;

/// A node that sends heartbeats to its store.
pub struct Node {
    pub app: App,
    pub runtime: Runtime,
}

/// What callers observed between the start of a fault and some time after its end.
#[derive(Debug)]
pub struct OutageReport {
    pub answers: usize,
    pub errors: usize,
    pub degraded: usize,
    pub p99: Duration,
    pub worst: Duration,
    /// The time from the start of the fault until the breaker opened, if it did.
    pub opened: Option<Duration>,
    /// The time from the end of the fault until the store decided again, if it did.
    pub recovered: Option<Duration>,
}

struct Answer {
    at: Instant,
    took: Duration,
    degraded: bool,
    failed: bool,
}

/// Whether `CATRACA_DEEP` asks for long runs.
pub fn is_deep() -> bool {
    std::env::var_os("CATRACA_DEEP").is_some()
}

impl Node {
    /// One of `nodes` nodes over the store at a URL.
    pub fn over(url: &str, nodes: u32) -> Self {
        Self::with(url, nodes, RedisOptions::default())
    }

    /// One of four nodes, with its own clock.
    pub fn at(url: &str, clock: impl Clock + 'static) -> Self {
        Self::build(url, 4, RedisOptions::default(), |builder| builder.clock(clock))
    }

    pub fn with(url: &str, nodes: u32, options: RedisOptions) -> Self {
        Self::build(url, nodes, options, |builder| builder)
    }

    fn build(
        url: &str,
        nodes: u32,
        options: RedisOptions,
        more: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let store = runtime.block_on(RedisStore::connect(url, options)).unwrap();
        let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
        let builder = more(builder.secret(Secret::from_bytes([7; 32])));
        let sharing = SharedOptions { nodes, ..SharedOptions::default() };
        let app = App::over_store(builder, Arc::new(store), sharing).unwrap().build();
        runtime.block_on(app.heartbeat());
        let _guard = runtime.enter();
        drop(app.start_heartbeat(|_| ()));
        Self { app, runtime }
    }

    pub fn stats(&self) -> SharedStats {
        self.app.shared_stats().unwrap()
    }

    pub fn check(&self, gate: &str, ip: &str) -> Decision {
        self.runtime.block_on(self.app.check(&Check::new(gate, [("ip", ip)]))).unwrap()
    }

    /// An operator's block.
    pub fn block(&self, ip: &str) {
        self.block_for(ip, 3_600);
    }

    /// An operator's block of this length.
    pub fn block_for(&self, ip: &str, seconds: i64) {
        let subject = Subject::from_iter([("ip", ip)]);
        let proposal = BlockProposal::by_operator(Span::from_secs(seconds), Some("acknowledged"));
        let blocked = self.app.block_unaudited("default", "login", &subject, proposal);
        assert_eq!(self.runtime.block_on(blocked).unwrap().len(), 1);
    }

    /// Runs callers while `breaks` starts a fault, `mends` ends it after `length`, and the store
    /// recovers.
    pub fn outage(
        &self,
        length: Duration,
        breaks: impl FnOnce(),
        mends: impl FnOnce(),
    ) -> OutageReport {
        let stop = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicU32::new(0));
        let caller = || {
            let app = self.app.clone();
            let stop = Arc::clone(&stop);
            let next = Arc::clone(&next);
            self.runtime.spawn(async move { call_until_stopped(&app, &stop, &next).await })
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| caller()).collect();
        // Every caller gets an answer before the fault.
        pause(Duration::from_millis(200));
        let broken = Instant::now();
        breaks();
        let opened = self.wait_for_breaker(broken, length);
        pause(length.saturating_sub(broken.elapsed()));
        mends();
        let mended = Instant::now();
        let back = self.wait_for_recovery(mended);
        stop.store(true, Ordering::Relaxed);
        let all = callers.into_iter().map(|one| self.runtime.block_on(one).unwrap());
        OutageReport::of(all.flatten().filter(|answer| answer.at >= broken), opened, back)
    }

    /// Waits until the breaker opens; returns how long that took.
    fn wait_for_breaker(&self, broken: Instant, length: Duration) -> Option<Duration> {
        while broken.elapsed() < length {
            if !self.stats().up {
                return Some(broken.elapsed());
            }
            pause(Duration::from_millis(5));
        }
        None
    }

    /// Waits until the store decides again for a new caller; returns how long that took.
    fn wait_for_recovery(&self, mended: Instant) -> Option<Duration> {
        while mended.elapsed() < RECOVERS * 3 {
            if !self.check("local", "203.0.113.9").degraded {
                return Some(mended.elapsed());
            }
            pause(Duration::from_millis(10));
        }
        None
    }
}

/// Checks new callers in a loop until `stop`.
async fn call_until_stopped(app: &App, stop: &AtomicBool, next: &AtomicU32) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let ip = std::net::Ipv4Addr::from(0x0A00_0000 | next.fetch_add(1, Ordering::Relaxed));
        let ip = ip.to_string();
        let at = Instant::now();
        let answer = app.check(&Check::new("local", [("ip", ip.as_str())])).await;
        let took = at.elapsed();
        let failed = answer.is_err();
        let degraded = answer.is_ok_and(|decision| decision.degraded);
        answers.push(Answer { at, took, degraded, failed });
        // Without a pause, callers would starve each other on two cores.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    answers
}

impl OutageReport {
    fn of(
        answers: impl Iterator<Item = Answer>,
        opened: Option<Duration>,
        recovered: Option<Duration>,
    ) -> Self {
        let answers: Vec<Answer> = answers.collect();
        let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 1_000).copied().unwrap_or_default();
        Self {
            answers: answers.len(),
            errors: answers.iter().filter(|answer| answer.failed).count(),
            degraded: answers.iter().filter(|answer| answer.degraded).count(),
            p99: at(990),
            worst: times.last().copied().unwrap_or_default(),
            opened,
            recovered,
        }
    }

    /// Prints the figures and asserts the documented bounds.
    pub fn assert_bounds(&self, what: &str) {
        println!("{what}: {self}");
        assert_eq!(
            self.errors, 0,
            "{what}: a failure of the store must not be an error for callers"
        );
        assert!(self.p99 <= DEADLINE + NOISE, "{what}: p99 {:?}", self.p99);
        assert!(self.worst <= OPENS, "{what}: a caller waited {:?}", self.worst);
        assert!(self.opened.is_some_and(|after| after <= OPENS), "{what}: {:?}", self.opened);
        assert!(
            self.recovered.is_some_and(|after| after <= RECOVERS),
            "{what}: not recovered in time"
        );
    }
}

impl std::fmt::Display for OutageReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, errors, degraded, p99, worst, opened, recovered } = self;
        let show =
            |time: &Option<Duration>| time.map_or("never".to_owned(), |t| format!("{t:.1?}"));
        write!(f, "{answers} answers, {degraded} degraded, {errors} errors, p99 {p99:.1?}, ")?;
        write!(f, "worst {worst:.1?}; breaker open after {}, ", show(opened))?;
        write!(f, "store used again after {}", show(recovered))
    }
}

pub fn pause(length: Duration) {
    std::thread::sleep(length);
}
