//! One line to one server, kept up in the background: probed, cut and made anew.
//!
//! A call takes the line as it is now or is told at once that there is none; it never waits for a
//! new one. Who gets no answer in time takes the line down for all until the server answers a
//! probe, so that nothing piles up behind a server that stands still. Must not send anything twice.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::error::ConnectError;
use super::failure::{Failed, reason};
use super::greet::{About, Greeted, Manners};
use super::url::Server;
use crate::store::StoreError;

/// A line that nobody used for so long is probed: a peer that vanished says nothing.
const IDLE: Duration = Duration::from_secs(1);
/// What a probe may take before the line is given up.
const PROBE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A line that is kept up until this is dropped.
pub(super) struct Link {
    heart: Arc<Heart>,
    tasks: Vec<AbortHandle>,
}

struct Heart {
    state: ArcSwap<State>,
    trouble: mpsc::Sender<Trouble>,
    /// The line went up, or cannot.
    up: Notify,
    /// It went up, for one who waits for that or comes later.
    back: Notify,
    /// Why it could not be made, last.
    refusal: ArcSwapOption<ConnectError>,
}

/// A hold on a line, for who hears of it from elsewhere.
#[derive(Clone)]
pub(super) struct Handle(Arc<Heart>);

enum State {
    Up(Line),
    Down(String),
}

/// A line as one call uses it.
#[derive(Clone)]
pub(super) struct Line {
    pub connection: MultiplexedConnection,
    pub about: Arc<About>,
    /// Which of the lines this is, of all that were made.
    number: u64,
    /// When the call is given up.
    until: Instant,
}

/// What a call noticed of line `number`.
#[derive(Clone, Copy)]
struct Trouble {
    number: u64,
    /// Whether the line is of no use any more, or only silent.
    over: bool,
}

/// Where a line leads.
pub(super) trait Source: Send + Sync + 'static {
    /// Makes a connection to who is in charge now.
    fn connect(&self) -> impl Future<Output = Result<Greeted, ConnectError>> + Send;
}

/// One server, whoever it is.
pub(super) struct Fixed {
    pub manners: Manners,
    pub server: Server,
}

impl Source for Fixed {
    async fn connect(&self) -> Result<Greeted, ConnectError> {
        self.manners.greet(&self.server).await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Link {
    /// Begins to keep a line.
    pub fn start(source: impl Source, patience: Duration) -> Self {
        let (trouble, troubles) = mpsc::channel(1);
        let state = ArcSwap::from_pointee(State::Down("not connected yet".to_owned()));
        let (up, back, refusal) = (Notify::new(), Notify::new(), ArcSwapOption::empty());
        let heart = Arc::new(Heart { state, trouble, up, back, refusal });
        let keeper = Keeper { heart: heart.clone(), source, patience, troubles, made: 0 };
        Self { heart, tasks: vec![tokio::spawn(keeper.keep()).abort_handle()] }
    }

    /// The same with another task that ends with it.
    pub fn with(mut self, task: AbortHandle) -> Self {
        self.tasks.push(task);
        self
    }

    /// Begins to keep a line, and waits until there is one or a reason why there is none.
    pub async fn connect(source: impl Source, patience: Duration) -> Result<Self, ConnectError> {
        let link = Self::start(source, patience);
        link.arrived().await?;
        Ok(link)
    }

    /// Waits until there is a line or a reason why there is none.
    pub async fn arrived(&self) -> Result<(), ConnectError> {
        loop {
            let told = self.heart.up.notified();
            if self.trouble().is_none() {
                return Ok(());
            }
            if let Some(refusal) = self.heart.refusal.load_full() {
                return Err((*refusal).clone());
            }
            told.await;
        }
    }

    /// A hold on this line.
    pub fn handle(&self) -> Handle {
        Handle(self.heart.clone())
    }

    /// Who is at the other end, if there is a line.
    pub fn server(&self) -> Option<Server> {
        self.handle().server()
    }

    /// Why there is no line, if there is none.
    pub fn trouble(&self) -> Option<String> {
        match &**self.heart.state.load() {
            State::Up(_) => None,
            State::Down(reason) => Some(reason.clone()),
        }
    }

    /// One trip, if there is a line, given up at this instant.
    pub async fn trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        until: Instant,
        go: impl FnOnce(Line) -> F,
    ) -> Result<T, Failed> {
        let patience = until.saturating_duration_since(Instant::now());
        let line = match &**self.heart.state.load() {
            State::Up(line) => Line { until, ..line.clone() },
            State::Down(reason) => {
                return Err(Failed::Silent(StoreError::unavailable(reason.clone())));
            }
        };
        match timeout_at(until, go(line.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if ends_line(&error) {
                    self.heart.take_down(&line, true, reason(&error));
                }
                Err(Failed::Told(error))
            }
            Err(_) => {
                let reason = format!("no answer from Redis within {} ms", patience.as_millis());
                self.heart.take_down(&line, false, reason.clone());
                Err(Failed::Silent(StoreError::unavailable(reason)))
            }
        }
    }
}

impl Line {
    /// The latest instant of the server's clock at which the call may still be done.
    pub fn latest(&self) -> i64 {
        self.about.ahead.there(self.until)
    }
}

impl Handle {
    /// Who is at the other end, if there is a line.
    pub fn server(&self) -> Option<Server> {
        match &**self.0.state.load() {
            State::Up(line) => Some(line.about.server.clone()),
            State::Down(_) => None,
        }
    }

    /// Ends when the line has gone up since this was asked last.
    pub async fn returns(self) {
        self.0.back.notified().await;
    }

    /// The line must be made anew: another server is in charge.
    pub fn renew(&self, reason: &str) {
        if let State::Up(line) = &**self.0.state.load() {
            self.0.take_down(line, true, reason.to_owned());
        }
    }
}

impl Heart {
    fn put_up(&self, line: &Line) {
        self.state.store(Arc::new(State::Up(line.clone())));
        self.back.notify_one();
    }

    fn take_down(&self, line: &Line, over: bool, reason: String) {
        let state = self.state.load();
        if matches!(&**state, State::Up(up) if up.number == line.number) {
            self.state.compare_and_swap(&*state, Arc::new(State::Down(reason)));
        }
        // When one is waiting to be heard already, that is enough.
        let _ = self.trouble.try_send(Trouble { number: line.number, over });
    }
}

/// Whether nothing good can come from this line any more.
fn ends_line(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::Server(ServerErrorKind::ReadOnly)
    )
}

/// What runs in the background.
struct Keeper<S> {
    heart: Arc<Heart>,
    source: S,
    /// The longest that making a connection may take.
    patience: Duration,
    troubles: mpsc::Receiver<Trouble>,
    made: u64,
}

impl<S: Source> Keeper<S> {
    async fn keep(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connect().await {
                Ok(line) => {
                    self.heart.put_up(&line);
                    self.heart.refusal.store(None);
                    self.heart.up.notify_waiters();
                    self.watch(line).await;
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    self.heart.state.store(Arc::new(State::Down(error.to_string())));
                    self.heart.refusal.store(Some(Arc::new(error)));
                    self.heart.up.notify_waiters();
                    sleep(pause.mul_f64(jitter())).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<Line, ConnectError> {
        self.made += 1;
        let greeted = timeout(self.patience, self.source.connect()).await;
        let Greeted { connection, about } = greeted.unwrap_or_else(|_| {
            let reason = format!("no answer within {} ms", self.patience.as_millis());
            Err(ConnectError::Unreachable { server: "its address".to_owned(), reason })
        })?;
        Ok(Line { connection, about, number: self.made, until: Instant::now() })
    }

    /// Returns when the line is over; its state is down then.
    async fn watch(&mut self, line: Line) {
        loop {
            let trouble = timeout(IDLE, self.troubles.recv()).await.ok().flatten();
            let ours = trouble.filter(|trouble| trouble.number == line.number);
            if ours.is_some_and(|trouble| trouble.over) {
                return;
            }
            if let Err(reason) = probe(line.clone()).await {
                self.heart.state.store(Arc::new(State::Down(reason)));
                return;
            }
            if ours.is_some() || self.is_down() {
                self.heart.put_up(&line);
            }
        }
    }

    fn is_down(&self) -> bool {
        matches!(&**self.heart.state.load(), State::Down(_))
    }
}

/// Whether somebody answers, and what time it is there.
async fn probe(mut line: Line) -> Result<(), String> {
    match timeout(PROBE, line.about.ahead.ask(&mut line.connection)).await {
        Ok(Err(error)) if ends_line(&error) => Err(reason(&error)),
        Ok(_) => Ok(()),
        Err(_) => Err(format!("Redis stands still: no answer within {} ms", PROBE.as_millis())),
    }
}

/// From 0.75 to 1.25, so that nodes do not come back all at once.
fn jitter() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    0.75 + f64::from(random) / f64::from(u32::MAX) / 2.0
}
