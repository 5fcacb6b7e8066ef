//! Some batches in one transaction: lock their rows and read the clock, run the rules, write and
//! commit. Two trips, and one where nothing changes.
//!
//! Rows are made and locked in the order of their keys, so no two transactions ever wait for each
//! other in a circle. Until the second trip nothing can have been applied, and the batches may be
//! tried again; what was cut off after it is never sent again. Must not answer before the commit.

use catraca_core::batch::Reply;
use catraca_core::digest::Key;
use catraca_core::time::Time;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::error::store_error;
use super::held::{Changes, Held};
use super::keys::Keys;
use super::link::{Link, Patience};
use super::queue::{Ask, Queue};
use super::trouble::Trouble;
use crate::store::StoreError;

const TAKE: &str = "SELECT now, keys, bodies, missed FROM catraca_store.take($1, $2, $3)";
const PUT: &str = "SELECT catraca_store.put($1, $2, $3, $4)";
/// Rows that come and go while others are locked, and conflicts that the server calls, are rare
/// and over at once.
const ATTEMPTS: u32 = 5;

/// Batches on their way.
struct Group {
    asks: Vec<Ask>,
    keys: Keys,
    /// When the last caller leaves.
    until: Instant,
    /// Whether rows that others hold are passed over: once, after they were waited for.
    skip: bool,
    /// Whether a commit was sent, after which nobody knows what became of it.
    sent: bool,
}

/// How an attempt ended.
enum Attempt {
    /// Everybody has an answer.
    Done,
    /// Nothing was applied, and it may be tried again.
    Again,
}

/// Applies batches together and answers each of them. An error means that the connection is of no
/// use any more.
pub(super) async fn apply(link: &Link, queue: &Queue, asks: Vec<Ask>) -> Result<(), String> {
    let Some(until) = asks.iter().map(|ask| ask.until).max() else { return Ok(()) };
    let keys = Keys::of(asks.iter().map(|ask| &ask.batch));
    let mut group = Group { asks, keys, until, skip: false, sent: false };
    for _ in 0..ATTEMPTS {
        let trouble = match group.attempt(link).await {
            Ok(Attempt::Done) => return Ok(()),
            Ok(Attempt::Again) => continue,
            Err(trouble) => trouble,
        };
        match group.meet(&trouble) {
            Attempt::Again => {
                link.batch(group.until, "ROLLBACK").await.map_err(|t| t.to_string())?
            }
            Attempt::Done => return group.give_up(link, queue, trouble).await,
        }
    }
    group.refuse(|| StoreError::unavailable(CHANGING));
    Ok(())
}

const CHANGING: &str = "the rows of this call change faster than they can be locked";

impl Group {
    /// One transaction from begin to end.
    async fn attempt(&mut self, link: &Link) -> Result<Attempt, Trouble> {
        let row = self.take(link).await?;
        let mut held = self.read(&row).map_err(Trouble::Said)?;
        if held.is_torn() && !self.skip {
            link.batch(self.until, "ROLLBACK").await?;
            return Ok(Attempt::Again);
        }
        let apply = |ask: &Ask| held.apply(&ask.batch, ask.when);
        let replies: Vec<_> = self.asks.iter().map(apply).collect();
        let changes = match held.changes() {
            Ok(changes) => changes,
            Err(wrong) => {
                self.refuse(|| StoreError::corrupt(wrong.to_string()));
                return link.batch(self.until, "ROLLBACK").await.map(|()| Attempt::Done);
            }
        };
        if changes.is_empty() {
            // Nothing hangs on the commit, so nobody waits for it.
            self.answer(replies);
            return link.batch(self.until, "COMMIT").await.map(|()| Attempt::Done);
        }
        self.sent = true;
        put(link, self.until, &changes).await?;
        self.answer(replies);
        Ok(Attempt::Done)
    }

    async fn take(&self, link: &Link) -> Result<Row, Trouble> {
        let (make, look) = (bytes(&self.keys.make), bytes(&self.keys.look));
        let (make, look) = (slices(&make), slices(&look));
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&make, Type::BYTEA_ARRAY), (&look, Type::BYTEA_ARRAY), (&self.skip, Type::BOOL)];
        link.begin(self.patience(), TAKE, &values).await
    }

    /// Several batches leave themselves time to go on without those whose rows somebody holds.
    fn patience(&self) -> Patience {
        let left = self.until.saturating_duration_since(Instant::now());
        let share = if self.asks.len() > 1 && !self.skip { left / 2 } else { left / 8 * 7 };
        Patience { until: self.until, lock: share }
    }

    fn read(&self, row: &Row) -> Result<Held, tokio_postgres::Error> {
        let keys: Vec<&[u8]> = row.try_get::<_, Option<_>>(1)?.unwrap_or_default();
        let bodies: Vec<&[u8]> = row.try_get::<_, Option<_>>(2)?.unwrap_or_default();
        let missed: Vec<&[u8]> = row.try_get::<_, Option<_>>(3)?.unwrap_or_default();
        let mut locked: Vec<(&[u8], &[u8])> = keys.into_iter().zip(bodies).collect();
        locked.sort_unstable_by_key(|(key, _)| *key);
        Ok(Held::new(&self.keys, &locked, &missed, Time::from_micros(row.try_get(0)?)))
    }

    /// Whether to try again after what the server said. It said it inside the transaction, so
    /// nothing was applied.
    fn meet(&mut self, trouble: &Trouble) -> Attempt {
        let waited = matches!(trouble.code(), Some("55P03" | "57014"));
        let again = match trouble.code() {
            Some("40001" | "40P01") => true,
            _ => waited && !self.skip && self.asks.len() > 1,
        };
        self.skip |= waited;
        if again && Instant::now() < self.until {
            self.sent = false;
            return Attempt::Again;
        }
        Attempt::Done
    }

    /// Answers everybody, or lets them try another connection if this one was lost before anything
    /// could be applied.
    async fn give_up(mut self, link: &Link, queue: &Queue, trouble: Trouble) -> Result<(), String> {
        if let Trouble::Lost(why) = &trouble {
            if !self.sent {
                let asks = std::mem::take(&mut self.asks);
                let (lost, fresh): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| ask.again);
                self.asks = lost;
                queue.put_back(fresh.into_iter().map(|ask| Ask { again: true, ..ask }).collect());
            }
            self.refuse(|| store_error(&trouble));
            return Err(why.clone());
        }
        self.refuse(|| store_error(&trouble));
        match trouble {
            Trouble::Said(_) => {
                let until = Instant::now() + ENDING;
                link.batch(until, "ROLLBACK").await.map_err(|trouble| trouble.to_string())
            }
            Trouble::Lost(_) | Trouble::Late(_) => Err(trouble.to_string()),
        }
    }

    fn answer(&mut self, replies: Vec<Result<Reply, StoreError>>) {
        for (ask, reply) in self.asks.drain(..).zip(replies) {
            // Who has left does not want it any more.
            drop(ask.reply.send(reply));
        }
    }

    fn refuse(&mut self, why: impl Fn() -> StoreError) {
        self.asks.drain(..).for_each(|ask| drop(ask.reply.send(Err(why()))));
    }
}

/// How long the end of a failed transaction may take.
const ENDING: std::time::Duration = std::time::Duration::from_millis(250);

async fn put(link: &Link, until: Instant, changes: &Changes) -> Result<(), Trouble> {
    let (keys, gone) = (slices(&changes.keys), slices(&changes.gone));
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
        (&keys, Type::BYTEA_ARRAY),
        (&changes.bodies, Type::BYTEA_ARRAY),
        (&changes.ends, Type::INT8_ARRAY),
        (&gone, Type::BYTEA_ARRAY),
    ];
    link.commit(until, PUT, &values).await
}

fn bytes(keys: &[Key]) -> Vec<[u8; 16]> {
    keys.iter().map(|key| key.to_bytes()).collect()
}

fn slices(keys: &[[u8; 16]]) -> Vec<&[u8]> {
    keys.iter().map(<[u8; 16]>::as_slice).collect()
}
