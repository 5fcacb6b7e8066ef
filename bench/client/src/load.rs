//! Callers that check one after the other, for a while.

use std::time::{Duration, Instant};

use catraca::{Check, Client};
use rustix::time::{ClockId, clock_gettime};

/// One who checks, and may not be denied.
pub trait Caller: Send + 'static {
    /// Checks once.
    fn check(&mut self) -> impl Future<Output = ()>;
}

/// What one subject did in one round.
#[derive(Clone, Copy)]
pub struct Measurement {
    calls: f64,
    callers: f64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Measurement {
    /// Calls per second of all callers.
    pub fn calls_per_second(&self) -> f64 {
        self.calls / self.seconds
    }

    /// How long a call took, on average.
    pub fn micros_per_call(&self) -> f64 {
        self.seconds * self.callers / self.calls * 1e6
    }

    /// Processor time of this process per call.
    pub fn cpu_micros_per_call(&self) -> f64 {
        self.cpu_seconds / self.calls * 1e6
    }
}

impl Caller for Client {
    async fn check(&mut self) {
        let check = Check::new("bench", [("ip", "198.51.100.7")]);
        let decision = Self::check(self, &check).await.expect("the server decides");
        assert!(decision.allowed, "the limit of the benchmark is too low");
    }
}

/// Runs all callers on this thread.
pub async fn measure<C: Caller>(callers: Vec<C>, length: Duration) -> Measurement {
    let count = callers.len();
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            let mut warm = Vec::new();
            for mut caller in callers {
                caller.check().await;
                warm.push(caller);
            }
            let begun = Instant::now();
            let cpu_begun = cpu_seconds();
            let tasks: Vec<_> = warm
                .into_iter()
                .map(|mut caller| {
                    tokio::task::spawn_local(async move {
                        let mut calls = 0_u64;
                        while begun.elapsed() < length {
                            caller.check().await;
                            calls += 1;
                        }
                        calls
                    })
                })
                .collect();
            let mut calls = 0;
            for task in tasks {
                calls += task.await.expect("no caller panics");
            }
            Measurement {
                calls: calls as f64,
                callers: count as f64,
                seconds: begun.elapsed().as_secs_f64(),
                cpu_seconds: cpu_seconds() - cpu_begun,
            }
        })
        .await
}

fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
