//! Calls at a steady pace over a few connections.
//!
//! Must count from when a call was due, not from when it could be sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Connections that share the pace.
const CONNECTIONS: usize = 8;

/// How long each call took, with the second in which it was due.
pub(super) type Latencies = Vec<(u64, Duration)>;

/// What the calls of a run took: the first ones, and what followed each.
#[derive(Default)]
pub(super) struct Run {
    pub(super) first: Latencies,
    pub(super) second: Latencies,
}

/// A call, and perhaps one that gives back what it took.
pub(super) struct Call {
    path: &'static str,
    body: String,
    status: u16,
    back: Option<&'static str>,
}

impl Call {
    /// A grant that is given back at once.
    pub(super) fn pair((path, body): (&'static str, String), back: &'static str) -> Self {
        Self { path, body, status: 200, back: Some(back) }
    }

    /// A call with this answer.
    pub(super) fn single((path, body): (&'static str, String), status: u16) -> Self {
        Self { path, body, status, back: None }
    }
}

/// So many calls a second, for so long.
pub(super) fn run_at_rate(
    address: &str,
    pace: u64,
    seconds: u64,
    call: impl Fn(usize) -> Call + Sync,
) -> Result<Run> {
    let calls = usize::try_from(pace * seconds)?;
    let gap = Duration::from_secs_f64(1.0 / pace as f64);
    let begun = Instant::now() + Duration::from_millis(50);
    let parts: Vec<Result<Run>> = thread::scope(|scope| {
        let part = |first: usize| {
            let call = &call;
            scope.spawn(move || {
                let mut talk = HttpConnection::to(address)?;
                let mut run = Run::default();
                for number in (first..calls).step_by(CONNECTIONS) {
                    let due = begun + gap * u32::try_from(number)?;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    one(&mut talk, &call(number), (due, number as u64 / pace), &mut run)?;
                }
                Ok(run)
            })
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(part).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|run| run.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))).collect()
    });
    let mut run = Run::default();
    for part in parts {
        let part = part?;
        run.first.extend(part.first);
        run.second.extend(part.second);
    }
    Ok(run)
}

fn one(
    talk: &mut HttpConnection,
    call: &Call,
    (due, second): (Instant, u64),
    run: &mut Run,
) -> Result<()> {
    let (status, body) = talk.post(call.path, &call.body)?;
    run.first.push((second, due.elapsed()));
    ensure!(status == call.status, "{}: {status} {body}", call.path);
    let Some(back) = call.back else { return Ok(()) };
    let id = body.split_once(r#""lease_id":""#).map(|(_, rest)| rest);
    let id = id.and_then(|rest| rest.split('"').next()).context("a grant without a lease")?;
    let begun = Instant::now();
    let (status, body) = talk.post(back, &format!(r#"{{"lease_id":"{id}"}}"#))?;
    run.second.push((second, begun.elapsed()));
    ensure!(status == 200, "{back}: {status} {body}");
    Ok(())
}

/// One connection.
pub(super) struct HttpConnection(BufReader<TcpStream>);

impl HttpConnection {
    pub(super) fn to(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<(u16, String)> {
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    pub(super) fn get(&mut self, path: &str) -> Result<(u16, String)> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    fn ask(&mut self, request: &str) -> Result<(u16, String)> {
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.with_context(|| format!("no answer: {line:?}"))?;
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }
}
