//! Connections at work: each takes what waits, and is made anew when it is lost.
//!
//! Where no connection is left, calls are answered at once and the server is tried with growing
//! pauses. Must not let a call wait for a server that is known to be away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

use super::error::store_error;
use super::group;
use super::link::{Link, Patience};
use super::locks;
use super::options::PostgresOptions;
use super::place::Place;
use super::queue::{Errand, Job, Queue, Work};
use super::trouble::Trouble;
use crate::store::StoreError;

/// The pause before a lost connection is made anew, doubled at each failure.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause: who waits for a server that is back waits no longer.
const PAUSE_LONGEST: Duration = Duration::from_millis(500);

/// What connections and callers share.
#[derive(Debug)]
pub(super) struct Desk {
    pub queue: Queue,
    connected: AtomicUsize,
    /// Why the last connection was lost or not made.
    why: Mutex<String>,
}

impl Desk {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let queue = Queue::new(options.waiting_max);
        Self { queue, connected: AtomicUsize::new(0), why: Mutex::default() }
    }

    pub(super) fn connected(&self) -> usize {
        self.connected.load(Ordering::Acquire)
    }

    /// A connection has come.
    pub(super) fn join(&self) {
        self.connected.fetch_add(1, Ordering::AcqRel);
    }

    /// Lets a call wait, if there is anybody to take it.
    pub(super) fn hand_in(&self, job: Job) -> Result<(), StoreError> {
        if self.connected() == 0 {
            return Err(StoreError::unavailable(self.why.lock().clone()));
        }
        if self.queue.push(job) { Ok(()) } else { Err(StoreError::unavailable(FULL)) }
    }

    /// A connection has gone; with the last one, nobody is left to wait for.
    fn leave(&self, why: String) {
        self.why.lock().clone_from(&why);
        if self.connected.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.queue.drain().into_iter().for_each(|job| job.refuse(&why));
        }
    }
}

const FULL: &str = "too many calls wait for PostgreSQL";
const CLOSED: &str = "PostgreSQL is out of reach: it closed the connection";

/// Serves calls over one connection after the other, for ever.
pub(super) async fn work(
    desk: Arc<Desk>,
    place: Place,
    options: PostgresOptions,
    first: Option<Link>,
) {
    let mut next = first;
    loop {
        let mut link = match next.take() {
            Some(link) => link,
            None => connect(&desk, &place, &options).await,
        };
        let why = serve(&desk, &mut link, &options).await;
        drop(link);
        desk.leave(why);
    }
}

async fn connect(desk: &Desk, place: &Place, options: &PostgresOptions) -> Link {
    let mut pause = PAUSE_FIRST;
    loop {
        sleep(pause).await;
        match Link::open(place, options.connect_timeout).await {
            Ok(link) => {
                desk.join();
                return link;
            }
            Err(trouble) => *desk.why.lock() = trouble.to_string(),
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// Works until the connection is of no use any more; says why.
async fn serve(desk: &Desk, link: &mut Link, options: &PostgresOptions) -> String {
    loop {
        let work = tokio::select! {
            biased;
            () = link.closed() => return CLOSED.to_owned(),
            work = desk.queue.next() => work,
        };
        let done = match work {
            Work::Group(asks) => group::apply(link, &desk.queue, asks).await,
            Work::Errand(errand) => run(link, errand, options).await,
            Work::Lock(ask) => locks::apply(link, *ask).await,
        };
        if let Err(why) = done {
            return why;
        }
    }
}

async fn run(link: &Link, errand: Errand, options: &PostgresOptions) -> Result<(), String> {
    let patience = Patience { until: errand.until, lock: options.deadline / 8 * 7 };
    let answer = match &errand.text {
        Some(text) => link.ask(patience, errand.sql, &[(text, Type::TEXT)]).await,
        None => link.ask(patience, errand.sql, &[]).await,
    };
    let (answer, lost) = match answer {
        Ok(row) => (Ok(row), None),
        Err(Trouble::Said(said)) => {
            let ended = link.batch(Instant::now() + options.deadline, "ROLLBACK").await;
            let lost = ended.err().map(|trouble| trouble.to_string());
            (Err(store_error(&Trouble::Said(said))), lost)
        }
        Err(trouble) => (Err(store_error(&trouble)), Some(trouble.to_string())),
    };
    drop(errand.reply.send(answer));
    lost.map_or(Ok(()), Err)
}
