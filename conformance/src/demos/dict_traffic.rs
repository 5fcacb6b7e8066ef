//! The `dict` part: real traffic through the proxy, with the preset `dict`, to a simulator of the
//! DICT. The simulator must not answer 429.

use std::env;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::http_client::{DemoRequest, send};
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::dict_simulator::{DictSimulator, Lookup};
use crate::{TestContext, binary};

const SECONDS: u64 = 600;
const PARTICIPANT: &str = "12345678";
/// People and companies; each has a thread.
const PAYERS: [&str; 6] = [
    "11144477735",
    "52998224725",
    "11222333000181",
    "12345678909",
    "12ABC34501DE35",
    "98765432100",
];
/// The pause of a caller between two requests: two a second, so that all of them meet their limits.
const PAUSE: Duration = Duration::from_millis(500);

/// The simulator with the clock of this process.
struct Bank {
    dict: Mutex<DictSimulator>,
    started: Instant,
}

impl Bank {
    fn now_us(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn with<R>(&self, act: impl FnOnce(&mut DictSimulator, i64) -> R) -> R {
        let mut dict = self.dict.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that instants are in the order of the acts.
        let now_us = self.now_us();
        act(&mut dict, now_us)
    }

    fn answer(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let header = |name| request.header(name).unwrap_or_default().to_owned();
        let lookup = Lookup {
            participant: header("pi-requestingparticipant"),
            payer: header("pi-payerid"),
            is_contact: request.line.contains('@'),
            reference: header("pi-endtoendid"),
        };
        let is_known = request.line.contains("known");
        let status = match self.with(|dict, now| dict.get_entry(now, &lookup, is_known)) {
            200 => "200 OK",
            404 => "404 Not Found",
            _ => "429 Too Many Requests",
        };
        let parts = vec!["<answer/>".to_owned()];
        UpstreamResponse { status, content_type: "application/xml", parts }
    }
}

/// The `dict` part.
pub fn run(context: &TestContext) -> Result<()> {
    let binary = binary::build(context)?;
    let seconds = env::var("CATRACA_DICT_SECONDS").ok().map(|text| text.parse()).transpose();
    let seconds = seconds.context("CATRACA_DICT_SECONDS is not a number")?.unwrap_or(SECONDS);
    run_for(context, &binary, Duration::from_secs(seconds))
}

fn run_for(context: &TestContext, binary: &Path, time: Duration) -> Result<()> {
    let bank =
        Arc::new(Bank { dict: Mutex::new(DictSimulator::default()), started: Instant::now() });
    let answering = Arc::clone(&bank);
    let url = upstream::start(move |request| answering.answer(request))?;
    let stage = Stage::start(context, binary, "dict", "DICT_UPSTREAM", &url)?;
    let denied = AtomicU64::new(0);
    let deadline = Instant::now() + time;
    thread::scope(|scope| {
        let callers = PAYERS.iter().enumerate().map(|(index, payer)| {
            let caller = PayerThread { stage: &stage, bank: &bank, denied: &denied, payer, index };
            scope.spawn(move || caller.run(deadline))
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().try_for_each(|caller| {
            caller.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a caller panicked")))
        })
    })?;
    let (requests, refusals) = bank.with(|dict, _| (dict.requests(), dict.refusals()));
    let denied = denied.load(Ordering::Relaxed);
    println!("{requests} lookups at the bank, {refusals} times 429; {denied} denied before");
    ensure!(refusals == 0, "the bank refused {refusals} lookups");
    ensure!(requests > 20 && denied > 20, "too little happened to prove anything");
    stage.end()
}

struct PayerThread<'a> {
    stage: &'a Stage,
    bank: &'a Bank,
    denied: &'a AtomicU64,
    payer: &'a str,
    index: usize,
}

impl PayerThread<'_> {
    fn run(&self, deadline: Instant) -> Result<()> {
        let mut number: usize = 0;
        while Instant::now() < deadline {
            number += 1;
            let reference = format!("E{}x{number}", self.index);
            // Every second caller is honest; every third lookup is of an e-mail address.
            let is_known = self.index.is_multiple_of(2) || number.is_multiple_of(4);
            let key = match (number.is_multiple_of(3), is_known) {
                (true, true) => "known@example.com",
                (true, false) => "unknown@example.com",
                (false, _) => "52998224725",
            };
            let is_known = key.contains("known");
            let line = format!("GET /api/v2/entries/{key}");
            let headers = [
                ("PI-RequestingParticipant", PARTICIPANT),
                ("PI-PayerId", self.payer),
                ("PI-EndToEndId", &reference),
            ];
            let request = DemoRequest { line: &line, headers: &headers, body: "" };
            let response = send(&self.stage.proxy, &request)?;
            match response.status {
                429 => _ = self.denied.fetch_add(1, Ordering::Relaxed),
                200 if is_known => self.pay(&reference)?,
                200 | 404 => {}
                other => anyhow::bail!("{line}: {other} {}", response.body),
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// The payment order reaches the bank first.
    fn pay(&self, reference: &str) -> Result<()> {
        self.bank.with(|dict, now| dict.pay(now, reference));
        let subject = format!(r#"{{"participant":"{PARTICIPANT}","payer":"{}"}}"#, self.payer);
        let credit = format!(r#"{{"ref":"{reference}","event":"payment","subject":{subject}}}"#);
        self.stage.call("/v1/credit", &credit).map(drop)
    }
}
