//! The `dict` part: real traffic through the proxy, with the preset `dict`, to a simulator of the
//! DICT. The simulator must not answer 429.
//!
//! The participant has a category, which the bank and a fact of the server state; the server's
//! worker polls the bank over HTTP, and the answers of the bank take a while.

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
use crate::dict_simulator::{DictSimulator, Lookup, problem};
use crate::{TestContext, binary};

const SECONDS: u64 = 600;
const PARTICIPANT: &str = "12345678";
const CATEGORY: char = 'E';
/// Shorter than the shortest run; the bank allows six in a minute.
const POLL: &str = "15s";
/// The longest that an answer of the bank takes.
const DELAY_MAX_MS: u64 = 30;
/// People and companies; each has a thread.
const PAYERS: [&str; 6] = [
    "11144477735",
    "52998224725",
    "11222333000181",
    "12345678909",
    "12ABC34501DE35",
    "98765432100",
];
/// The pause of a caller between two requests, so that all of them meet their limits.
const PAUSE: Duration = Duration::from_millis(100);

/// The simulator with the clock of this process.
struct Bank {
    dict: Mutex<DictSimulator>,
    started: Instant,
    polls: AtomicU64,
    answers: AtomicU64,
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

    /// Answers after a moment, in which other requests arrive.
    fn answer(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let response = match request.line.starts_with("GET /api/v2/policies") {
            true => self.list_states(request),
            false => self.get_entry(request),
        };
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(number * 7 % DELAY_MAX_MS));
        response
    }

    fn list_states(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let participant = request.header("pi-requestingparticipant").unwrap_or_default();
        self.polls.fetch_add(1, Ordering::Relaxed);
        let states = self.with(|dict, now| dict.states(now, participant, "2026-01-01T00:00:00Z"));
        match states {
            Some(xml) => xml_response(200, xml),
            None => error_response(429),
        }
    }

    fn get_entry(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let header = |name| request.header(name).unwrap_or_default().to_owned();
        let lookup = Lookup {
            participant: header("pi-requestingparticipant"),
            payer: header("pi-payerid"),
            is_contact: request.line.contains('@'),
            reference: header("pi-endtoendid"),
        };
        let wanted = match request.line.rsplit('/').next() {
            Some(key) if key == FOUND || key == FOUND_CPF => 200,
            Some(key) if key == OWN => 400,
            _ => 404,
        };
        match self.with(|dict, now| dict.get_entry(now, &lookup, wanted)) {
            200 => xml_response(200, "<GetEntryResponse/>".to_owned()),
            error => error_response(error),
        }
    }
}

/// A key that the bank knows.
const FOUND: &str = "maria@example.com";
const FOUND_CPF: &str = "11144477735";
/// A key of an account of the participant itself, which it must not look up.
const OWN: &str = "own@example.com";
const NOT_FOUND: &str = "missing@example.com";
const NOT_FOUND_CPF: &str = "52998224725";

fn xml_response(status: u16, body: String) -> UpstreamResponse {
    let status = match status {
        200 => "200 OK",
        400 => "400 Bad Request",
        404 => "404 Not Found",
        _ => "429 Too Many Requests",
    };
    UpstreamResponse { status, content_type: "application/xml", parts: vec![body] }
}

fn error_response(status: u16) -> UpstreamResponse {
    let response = xml_response(status, problem(status).unwrap_or_default());
    UpstreamResponse { content_type: "application/problem+xml", ..response }
}

/// The `dict` part.
pub fn run(context: &TestContext) -> Result<()> {
    let binary = binary::build(context)?;
    let seconds = env::var("CATRACA_DICT_SECONDS").ok().map(|text| text.parse()).transpose();
    let seconds = seconds.context("CATRACA_DICT_SECONDS is not a number")?.unwrap_or(SECONDS);
    run_for(context, &binary, Duration::from_secs(seconds))
}

fn run_for(context: &TestContext, binary: &Path, time: Duration) -> Result<()> {
    let bank = Arc::new(Bank {
        dict: Mutex::new(DictSimulator::default()),
        started: Instant::now(),
        polls: AtomicU64::new(0),
        answers: AtomicU64::new(0),
    });
    bank.with(|dict, now| dict.set_category(now, PARTICIPANT, CATEGORY));
    let answering = Arc::clone(&bank);
    let url = upstream::start(move |request| answering.answer(request))?;
    let variables =
        [("DICT_UPSTREAM", url.as_str()), ("DICT_PARTICIPANT", PARTICIPANT), ("DICT_POLL", POLL)];
    let stage = Stage::start_with(context, binary, "dict", &variables)?;
    let fact = format!(r#"{{"facts":{{"category":"{CATEGORY}"}}}}"#);
    let line = format!("PUT /v1/facts/participant/{PARTICIPANT}");
    stage.call_as(&line, "application/json", &fact)?;
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
    bank.judge(time, denied.load(Ordering::Relaxed))?;
    stage.end()
}

impl Bank {
    /// What happened must prove something: about five lookups in each second, most of which the
    /// bank got, denials, and polls.
    fn judge(&self, time: Duration, denied: u64) -> Result<()> {
        let (requests, refusals) = self.with(|dict, _| (dict.requests(), dict.refusals()));
        let polls = self.polls.load(Ordering::Relaxed);
        println!(
            "{requests} requests at the bank, {polls} of them polls, {refusals} times 429; \
             {denied} denied before"
        );
        ensure!(refusals == 0, "the bank refused {refusals} requests");
        let least = 5 * time.as_secs();
        ensure!(requests > least && denied > least, "too little happened to prove anything");
        ensure!(polls > 0, "the worker has not polled");
        Ok(())
    }
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
                _ if number.is_multiple_of(50) => OWN,
                (true, true) => FOUND,
                (true, false) => NOT_FOUND,
                (false, true) => FOUND_CPF,
                (false, false) => NOT_FOUND_CPF,
            };
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
                200 => self.pay(&reference)?,
                400 | 404 => {}
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
