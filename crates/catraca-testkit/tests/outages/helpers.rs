//! A node over a real Redis, callers that never stop, and what they saw of an outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::shared::run_heartbeat;
use catraca::{BlockOrder, Catalog, Check, Decision, Engine, Secret, SharedEngine, SharedOptions};
use catraca::{Builder, Clock, Span, Subject};
use tokio::runtime::Runtime;

/// What the docs promise of a call, and what a busy machine may add.
pub const DEADLINE: Duration = Duration::from_millis(50);
pub const NOISE: Duration = Duration::from_millis(150);
/// When the breaker must be open, and when a healed store must be asked again.
pub const OPENS: Duration = Duration::from_secs(1);
pub const RECOVERS: Duration = Duration::from_secs(2);
/// Callers at once.
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

pub type Shared = SharedEngine<RedisStore>;

/// A node that keeps in touch with its store.
pub struct Node {
    pub engine: Arc<Shared>,
    pub runtime: Runtime,
}

/// What callers saw between a fault and some time after it was mended.
#[derive(Debug)]
pub struct Seen {
    pub answers: usize,
    pub errors: usize,
    pub degraded: usize,
    pub p99: Duration,
    pub worst: Duration,
    /// From the fault to the breaker, if it opened.
    pub opened: Option<Duration>,
    /// From the mending to the first answer of the store, if there was one.
    pub recovered: Option<Duration>,
}

struct Answer {
    at: Instant,
    took: Duration,
    degraded: bool,
    failed: bool,
}

/// Whether the long runs are wanted.
pub fn is_deep() -> bool {
    std::env::var_os("CATRACA_DEEP").is_some()
}

impl Node {
    /// One of so many nodes over the store of a URL.
    pub fn over(url: &str, nodes: u32) -> Self {
        Self::with(url, nodes, RedisOptions::default())
    }

    /// One of a few with a clock of its own.
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
        let engine = Arc::new(builder.share(store, sharing).unwrap());
        runtime.block_on(engine.heartbeat());
        let _guard = runtime.enter();
        drop(run_heartbeat(&engine, |_| ()));
        Self { engine, runtime }
    }

    pub fn check(&self, gate: &str, ip: &str) -> Decision {
        self.runtime.block_on(self.engine.check(&Check::new(gate, [("ip", ip)]))).unwrap()
    }

    /// An operator's block.
    pub fn block(&self, ip: &str) {
        self.block_for(ip, 3_600);
    }

    /// The same for so many seconds.
    pub fn block_for(&self, ip: &str, seconds: i64) {
        let order = BlockOrder {
            namespace: "default",
            policy: "login",
            subject: Subject::from_iter([("ip", ip)]),
            span: Span::from_secs(seconds),
            reason: Some("acknowledged"),
        };
        assert_eq!(self.runtime.block_on(self.engine.block(&order)).unwrap().len(), 1);
    }

    /// Callers ask without a pause while something breaks, is mended after a while, and comes back.
    pub fn outage(&self, length: Duration, breaks: impl FnOnce(), mends: impl FnOnce()) -> Seen {
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let caller = || {
            let (engine, stop, next) =
                (Arc::clone(&self.engine), Arc::clone(&stop), Arc::clone(&next));
            self.runtime.spawn(async move { calling(&engine, &stop, &next).await })
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| caller()).collect();
        // So that every caller has been answered before.
        pause(Duration::from_millis(200));
        let broken = Instant::now();
        breaks();
        let opened = self.opens(broken, length);
        pause(length.saturating_sub(broken.elapsed()));
        mends();
        let mended = Instant::now();
        let back = self.comes_back(mended);
        stop.store(true, Ordering::Relaxed);
        let all = callers.into_iter().map(|one| self.runtime.block_on(one).unwrap());
        Seen::of(all.flatten().filter(|answer| answer.at >= broken), opened, back)
    }

    fn opens(&self, broken: Instant, length: Duration) -> Option<Duration> {
        while broken.elapsed() < length {
            if !self.engine.stats().up {
                return Some(broken.elapsed());
            }
            pause(Duration::from_millis(5));
        }
        None
    }

    /// The store decides again, for a caller that nobody has seen.
    fn comes_back(&self, mended: Instant) -> Option<Duration> {
        while mended.elapsed() < RECOVERS * 3 {
            if !self.check("local", "203.0.113.9").degraded {
                return Some(mended.elapsed());
            }
            pause(Duration::from_millis(10));
        }
        None
    }
}

async fn calling(engine: &Shared, stop: &AtomicBool, next: &AtomicU32) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let ip = std::net::Ipv4Addr::from(0x0A00_0000 | next.fetch_add(1, Ordering::Relaxed));
        let ip = ip.to_string();
        let at = Instant::now();
        let answer = engine.check(&Check::new("local", [("ip", ip.as_str())])).await;
        let (took, failed) = (at.elapsed(), answer.is_err());
        let degraded = answer.is_ok_and(|decision| decision.degraded);
        answers.push(Answer { at, took, degraded, failed });
        // A caller that never waits would starve the others of two cores.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    answers
}

impl Seen {
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

    /// Prints the figures, then holds them to what the docs promise.
    pub fn hold(&self, what: &str) {
        println!("{what}: {self}");
        assert_eq!(self.errors, 0, "{what}: a store's failure is no caller's error");
        assert!(self.p99 <= DEADLINE + NOISE, "{what}: p99 {:?}", self.p99);
        assert!(self.worst <= OPENS, "{what}: somebody waited {:?}", self.worst);
        assert!(self.opened.is_some_and(|after| after <= OPENS), "{what}: {:?}", self.opened);
        assert!(self.recovered.is_some_and(|after| after <= RECOVERS), "{what}: not back in time");
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, errors, degraded, p99, worst, opened, recovered } = self;
        let told =
            |time: &Option<Duration>| time.map_or("never".to_owned(), |t| format!("{t:.1?}"));
        write!(f, "{answers} answers, {degraded} degraded, {errors} errors, p99 {p99:.1?}, ")?;
        write!(f, "worst {worst:.1?}; left alone after {}, ", told(opened))?;
        write!(f, "asked again after {}", told(recovered))
    }
}

pub fn pause(length: Duration) {
    std::thread::sleep(length);
}
