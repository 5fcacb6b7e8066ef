//! The load driver: one thread, plain sockets, HTTP/1.1 with keep-alive.
//!
//! Closed loop: every connection asks again as soon as it is answered, and the driver never sleeps:
//! waking it would be charged to the server, and most to the one that it waits for longest. Open
//! loop: requests are due
//! at random instants at a fixed mean rate, and latency counts from when a request was *due*, so
//! that a slow server cannot slow its own examination. Bounded in time and in what may be waiting.

mod pace;
mod wire;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

use pace::Pace;
use wire::{Event, Wire};

/// Requests that may be due and not yet sent; beyond it the server has failed.
const WAITING_MAX: usize = 100_000;
/// The longest nap, so that the end of a run is not slept through.
const NAP: Duration = Duration::from_millis(5);

/// What to send.
pub struct LoadPlan<'a> {
    /// The port on loopback.
    pub port: u16,
    /// The path of a check.
    pub path: &'a str,
    /// The body, with `{key}` for eight digits.
    pub body: &'a str,
    /// Connections.
    pub connections: usize,
    /// Keys: drawn at random, or all in turn.
    pub keys: Keys,
    /// When to stop.
    pub until: Until,
    /// Requests per second, or as fast as answers come.
    pub rate: Option<f64>,
}

/// Which keys are asked for.
#[derive(Clone, Copy)]
pub enum Keys {
    /// Any of so many.
    Random(u64),
    /// Each of so many, in turn.
    Turn(u64),
}

/// When a run ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// After so long.
    Time(Duration),
    /// After so many answers.
    Count(u64),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Answers that let pass.
    pub passed: u64,
    /// Answers that did not, or were no answer.
    pub failed: u64,
    /// How long it took.
    pub took: Duration,
    /// Nanoseconds of each answer, sorted.
    pub latencies: Vec<u32>,
}

impl Outcome {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.passed as f64 / self.took.as_secs_f64()
    }

    /// Microseconds within which a share of the answers came.
    pub fn within_us(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let place = (self.latencies.len() as f64 * share).ceil() as usize;
        let found = self.latencies.get(place.saturating_sub(1).min(last));
        found.map_or(f64::NAN, |nanos| f64::from(*nanos) / 1e3)
    }
}

/// Runs an order; `each_second` is called with the seconds gone.
pub fn run(order: &LoadPlan<'_>, each_second: &mut dyn FnMut(u64)) -> Result<Outcome, String> {
    let mut driver = Driver::open(order)?;
    driver.drive(order, each_second)?;
    driver.outcome.latencies.sort_unstable();
    Ok(driver.outcome)
}

struct Driver {
    epoll: rustix::fd::OwnedFd,
    wires: Vec<Wire>,
    idle: Vec<usize>,
    due: VecDeque<Instant>,
    keys: pace::Draw,
    outcome: Outcome,
}

impl Driver {
    fn open(order: &LoadPlan<'_>) -> Result<Self, String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed("epoll", &e))?;
        let mut wires = Vec::with_capacity(order.connections);
        for place in 0..order.connections {
            let wire = Wire::connect(order.port, order.path, order.body)?;
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&epoll, &wire.stream, data, epoll::EventFlags::IN)
                .map_err(|e| failed("epoll", &e))?;
            wires.push(wire);
        }
        let idle = (0..order.connections).collect();
        let keys = pace::Draw::new(order.keys);
        Ok(Self { epoll, wires, idle, due: VecDeque::new(), keys, outcome: Outcome::default() })
    }

    fn drive(
        &mut self,
        order: &LoadPlan<'_>,
        each_second: &mut dyn FnMut(u64),
    ) -> Result<(), String> {
        let begun = Instant::now();
        let mut pace = Pace::new(order.rate, begun);
        let mut second = 1;
        loop {
            let now = Instant::now();
            let took = now - begun;
            if is_over(order.until, took, self.outcome.passed + self.outcome.failed) {
                self.outcome.took = took;
                return Ok(());
            }
            if took >= Duration::from_secs(second) {
                each_second(second);
                second += 1;
            }
            let next = self.send_due(&mut pace, now)?;
            self.hear(next.map_or(Duration::ZERO, |next| (next - now).min(NAP)))?;
        }
    }

    /// Sends what is due; the instant of the next one, if it is known.
    fn send_due(&mut self, pace: &mut Pace, now: Instant) -> Result<Option<Instant>, String> {
        let Some(rate) = pace.open() else {
            while let Some(place) = self.idle.pop() {
                self.wires[place].ask(self.keys.next(), now)?;
            }
            return Ok(None);
        };
        while rate.next <= now {
            self.due.push_back(rate.next);
            rate.advance();
        }
        if self.due.len() > WAITING_MAX {
            return Err(format!("{WAITING_MAX} requests are due and not answered"));
        }
        while let Some(place) = self.idle.pop() {
            let Some(due) = self.due.pop_front() else {
                self.idle.push(place);
                break;
            };
            self.wires[place].ask(self.keys.next(), due)?;
        }
        Ok(Some(rate.next))
    }

    /// Waits for answers, at most so long, and takes all that are there.
    fn hear(&mut self, patience: Duration) -> Result<(), String> {
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("epoll: {error}")),
        }
        for event in events {
            let place = event.data.u64() as usize;
            match self.wires[place].hear()? {
                Event::Nothing => {}
                Event::Answer { passed, asked } => {
                    self.note(passed, asked);
                    self.idle.push(place);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, passed: bool, asked: Instant) {
        *if passed { &mut self.outcome.passed } else { &mut self.outcome.failed } += 1;
        let nanos = asked.elapsed().as_nanos().min(u128::from(u32::MAX));
        self.outcome.latencies.push(nanos as u32);
    }
}

fn is_over(until: Until, took: Duration, answers: u64) -> bool {
    match until {
        Until::Time(limit) => took >= limit,
        // A server that answers nothing must not keep the run.
        Until::Count(count) => answers >= count || took >= Duration::from_secs(120),
    }
}
