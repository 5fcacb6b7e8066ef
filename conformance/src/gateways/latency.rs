//! The time that the question to Catraca adds to a request. Printed, never judged: machines differ.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::client::{BYSTANDER, Route};
use super::message::Request;

const REQUESTS: usize = 300;

/// Medians of requests through one gateway, without and with Catraca.
pub(crate) struct Medians {
    plain: Duration,
    guarded: Duration,
}

impl fmt::Display for Medians {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.guarded.saturating_sub(self.plain).as_micros();
        let plain = self.plain.as_micros();
        let guarded = self.guarded.as_micros();
        write!(out, "p50 {plain} us without Catraca, {guarded} us with it, {added} us added")
    }
}

pub(crate) fn measure(guarded: &dyn Route, plain: &dyn Route) -> Result<Medians> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        // In turns, so that both see the same machine.
        for (route, times) in [plain, guarded].into_iter().zip(&mut times) {
            times.push(time(route)?);
        }
    }
    let [plain, guarded] = times.map(median);
    Ok(Medians { plain, guarded })
}

fn time(route: &dyn Route) -> Result<Duration> {
    let start = Instant::now();
    let answer = route.send(BYSTANDER, &Request::get("/free"))?;
    ensure!(answer.status == 200, "/free was answered {}", answer.status);
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
