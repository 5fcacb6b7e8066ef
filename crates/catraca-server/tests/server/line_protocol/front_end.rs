//! A line protocol over TCP: one command and one answer per line.
//!
//! `AUTH key` sets the key of the connection, `CHECK gate name=value ...` decides, `QUIT` closes.
//! An answer is `OK`, `ALLOW remaining=N`, `DENY reason retry_after_ms=N` or `ERROR text`.

use std::sync::Arc;
use std::time::Instant;

use catraca::{Check, CheckMode, Error, Subject};
use catraca_server::{
    CallResult, Connection, ConnectionLimit, ConnectionStream, FrontEnd, Phase, Role, ServerContext,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// The longest line, in bytes.
const LINE_BYTES_MAX: u64 = 4_096;

/// The line protocol.
pub struct LineFrontEnd {
    context: Arc<ServerContext>,
}

/// An answer, without its end of line.
struct Answer {
    text: String,
    result: CallResult,
    is_last: bool,
}

impl LineFrontEnd {
    pub fn new(context: Arc<ServerContext>) -> Self {
        Self { context }
    }
}

impl FrontEnd for LineFrontEnd {
    const ALPN: &'static [&'static [u8]] = &[];

    async fn serve(self: Arc<Self>, stream: ConnectionStream, connection: Arc<Connection>) {
        let mut stream = BufReader::new(stream);
        let mut key = None;
        while let Some(line) = read_line(&mut stream, &connection).await {
            let started = Instant::now();
            connection.enter(Phase::Answer);
            let answer = self.answer(&line, &mut key).await;
            let is_check = line.starts_with("CHECK ");
            self.context.calls.note(answer.result, started.elapsed(), is_check);
            let text = format!("{}\n", answer.text);
            let written = connection.unless_closed(stream.write_all(text.as_bytes())).await;
            if answer.is_last || !matches!(written, Some(Ok(()))) {
                return;
            }
            connection.enter(Phase::Idle);
        }
    }

    fn refusal(&self, _: ConnectionLimit) -> &'static [u8] {
        b"ERROR too many connections\n"
    }
}

/// The next line; none when the connection ends. A line of which a part has arrived is read also
/// while the server stops.
async fn read_line(
    stream: &mut BufReader<ConnectionStream>,
    connection: &Connection,
) -> Option<String> {
    let has_begun = !stream.buffer().is_empty()
        || connection.unless_stopped(stream.fill_buf()).await.is_some()
        || stream.get_ref().has_unread();
    if !has_begun {
        return None;
    }
    connection.enter(Phase::Head);
    let mut line = Vec::new();
    let mut bounded = stream.take(LINE_BYTES_MAX);
    connection.unless_closed(bounded.read_until(b'\n', &mut line)).await?.ok()?;
    let line = String::from_utf8(line).ok()?;
    line.strip_suffix('\n').map(|line| line.trim_end().to_owned())
}

impl LineFrontEnd {
    async fn answer(&self, line: &str, key: &mut Option<String>) -> Answer {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("AUTH", presented) => {
                *key = Some(presented.to_owned());
                match self.context.find_caller(key.as_deref().map(str::as_bytes)) {
                    Ok(_) => Answer::done("OK"),
                    Err(error) => Answer::client_error(error),
                }
            }
            ("CHECK", check) => {
                self.check(check, key.as_deref()).await.unwrap_or_else(|error| error)
            }
            ("QUIT", _) => Answer { is_last: true, ..Answer::done("OK") },
            // Closes: the line may belong to another protocol, such as the request of a web page.
            _ => Answer { is_last: true, ..Answer::client_error("unknown command") },
        }
    }

    /// The key is looked up for every line: a reload may have removed it.
    async fn check(&self, line: &str, key: Option<&str>) -> Result<Answer, Answer> {
        let caller = self.context.find_caller(key.map(str::as_bytes));
        let caller = caller.map_err(Answer::client_error)?;
        caller.require_role(Role::Check).map_err(Answer::client_error)?;
        let (gate, attributes) = line.split_once(' ').unwrap_or((line, ""));
        let pairs: Option<Subject<'_>> =
            attributes.split_whitespace().map(|pair| pair.split_once('=')).collect();
        let subject = pairs.ok_or_else(|| Answer::client_error("write name=value"))?;
        let subject = caller.with_fixed_attributes(subject).map_err(Answer::client_error)?;
        let check = Check::new(gate, subject).namespace(caller.namespace());
        match self.context.decide(&check, CheckMode::Check).await {
            Ok(decision) if decision.allowed => {
                Ok(Answer::done(format!("ALLOW remaining={}", decision.remaining.unwrap_or(0))))
            }
            Ok(decision) => {
                let wait = decision.retry_after.map_or(0, |wait| wait.ceil_millis());
                let reason = decision.reason.as_str();
                Ok(Answer::done(format!("DENY {reason} retry_after_ms={wait}")))
            }
            Err(Error::Refused(refusal)) => Err(Answer::client_error(refusal)),
            Err(error) => {
                let result = CallResult::ServerError;
                Err(Answer { result, ..Answer::client_error(error) })
            }
        }
    }
}

impl Answer {
    fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), result: CallResult::Done, is_last: false }
    }

    fn client_error(error: impl ToString) -> Self {
        let text = format!("ERROR {}", error.to_string());
        Self { text, result: CallResult::ClientError, is_last: false }
    }
}
