//! Writing: each deed's statements, all of a batch in one transaction and mostly in one round trip.
//!
//! Nodes write one after the other, under a lock that ends with the transaction, so that the order
//! of ids is the order of commits. A commit that was not answered may have happened: the batch is
//! looked for before it is written again. Must not let a later-arriving earlier step undo a newer
//! one.

mod blocks;
mod others;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use serde_json::Value as Json;
use tokio_postgres::Row;

use super::session::{Session, Statement, WRITING_MS};
use super::value::{Value, values};
use super::{LOCK, PostgresWriter};
use crate::postgres::trouble::Trouble;
use crate::records::error::WriteError;
use crate::records::port::{Purged, Retention, Swept, Writes};
use crate::records::privacy::Erased;
use crate::records::record::{About, Deed, Record};

/// Statements that are sent at once, so that none of them waits beyond its deadline.
const SENT_MAX: usize = 256;
/// In the audit, what nobody is named for.
const NOBODY: &str = "catraca";

impl Writes for PostgresWriter {
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError> {
        let written = self.attempt(records);
        self.uncertain |= matches!(written, Err(Trouble::Lost(_) | Trouble::Late(_)));
        written?;
        (self.uncertain, self.batch) = (false, self.batch + 1);
        Ok(())
    }

    fn purge(&mut self, now: Time, retention: &Retention) -> Result<Purged, WriteError> {
        Ok(transaction(&mut self.session, |session| super::purge::purge(session, now, retention))?)
    }

    fn sweep(&mut self, now: Time) -> Result<Swept, WriteError> {
        Ok(transaction(&mut self.session, |session| super::sweep::sweep(session, now))?)
    }

    fn erase(&mut self, about: &[About], now: Time) -> Result<Erased, WriteError> {
        Ok(transaction(&mut self.session, |session| super::erase::erase(session, about, now))?)
    }

    fn tie(&mut self, id: &str) -> Result<String, WriteError> {
        let new = "INSERT INTO catraca.secrets (id)
                   SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM catraca.secrets)";
        let rows = transaction(&mut self.session, |session| {
            session.ask(new, &values![id])?;
            session.ask("SELECT id FROM catraca.secrets", &[])
        })?;
        let kept = rows.first().and_then(|row| row.try_get(0).ok());
        kept.ok_or_else(|| WriteError::Bad("the fingerprint of the secret is gone".to_owned()))
    }

    fn identify(&mut self, id: &str) -> Result<String, WriteError> {
        let new = "INSERT INTO catraca.identity (id) VALUES ($1) ON CONFLICT DO NOTHING";
        let rows = transaction(&mut self.session, |session| {
            session.ask(new, &values![id])?;
            session.ask("SELECT id FROM catraca.identity", &[])
        })?;
        let kept = rows.first().and_then(|row| row.try_get(0).ok());
        kept.ok_or_else(|| WriteError::Bad("the identity of the records is gone".to_owned()))
    }

    /// The server does its own.
    fn tend(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Deleted rows are gone for everybody who asks; their bytes go when the server's own
    /// housekeeping uses the place again, which is not ours to hurry.
    fn scrub(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl PostgresWriter {
    fn attempt(&mut self, records: &[&Record]) -> Result<(), Trouble> {
        let (id, batch, look) = (self.id.as_str(), self.batch, self.uncertain);
        transaction(&mut self.session, |session| {
            if look && is_written(session, id, batch)? {
                return Ok(());
            }
            let mut scribe = Scribe { session, pending: Vec::new() };
            scribe.add(SIGN, values![id, batch]);
            for record in records {
                Act { scribe: &mut scribe, record }.write()?;
            }
            scribe.flush()
        })
    }
}

const SIGN: &str = "INSERT INTO catraca.writers (id, batch) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = now()";

fn is_written(session: &mut Session, id: &str, batch: i64) -> Result<bool, Trouble> {
    let sql = "SELECT 1 FROM catraca.writers WHERE id = $1 AND batch >= $2";
    Ok(!session.ask(sql, &values![id, batch])?.is_empty())
}

/// Runs work whose end is on disk, or of which nothing is left.
fn transaction<R>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> Result<R, Trouble>,
) -> Result<R, Trouble> {
    // Whatever the server's habit, a commit waits for the disk here: that is what we acknowledge.
    let begun = session.begin(&format!(
        "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL statement_timeout = {WRITING_MS};
         SELECT pg_advisory_xact_lock({LOCK})"
    ));
    let done = begun.and_then(|()| work(session));
    if let Err(Trouble::Said(_)) = &done {
        // A connection that is gone takes its transaction with it; this one has to be told.
        let _ = session.end("ROLLBACK");
    }
    let done = done?;
    session.end("COMMIT")?;
    Ok(done)
}

/// Statements on their way.
pub(super) struct Scribe<'s> {
    session: &'s mut Session,
    pending: Vec<Statement>,
}

impl Scribe<'_> {
    pub(super) fn add(&mut self, sql: &'static str, values: Vec<Value>) {
        self.pending.push((sql, values));
    }

    fn flush(&mut self) -> Result<(), Trouble> {
        let pending = std::mem::take(&mut self.pending);
        pending.chunks(SENT_MAX).try_for_each(|some| self.session.run(some))
    }

    /// Asks what is there after all that was written so far.
    fn ask(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, Trouble> {
        self.flush()?;
        Ok(self.session.ask(sql, values)?.into_iter().next())
    }
}

/// Writes one record.
pub(super) struct Act<'a, 's> {
    pub(super) scribe: &'a mut Scribe<'s>,
    record: &'a Record,
}

/// By what an audited act is found again.
enum Trail<'a> {
    None,
    About(&'a str),
    Subject(Key),
}

type Done = Result<(), Trouble>;

impl Act<'_, '_> {
    fn write(&mut self) -> Done {
        match &self.record.deed {
            Deed::Block(blocking) => self.block(blocking),
            Deed::Release(who) => self.free(who, "released"),
            Deed::Reset(who) => self.free(who, "reset"),
            Deed::ResetPolicy(reset) => self.reset_policy(reset),
            Deed::Owe(debt) => {
                self.owe(debt);
                Ok(())
            }
            Deed::List(list, entry) => self.list(*list, entry),
            Deed::Unlist(list, what) => self.unlist(*list, what),
            Deed::State(about, facts) => self.state(about, facts),
            Deed::Forget(about) => self.forget(about),
            Deed::Mode(policy, mode) => self.mode(policy, mode.map(|mode| mode.as_str())),
            Deed::Revise(revision) => self.revise(revision),
            Deed::RequireKeys(required) => self.require_keys(*required),
            Deed::Count(counts) => {
                counts.iter().for_each(|count| self.count(count));
                Ok(())
            }
            Deed::Lock(deed) => {
                self.lock(deed);
                Ok(())
            }
            Deed::Note(noted) => {
                self.audit(&noted.act, &noted.target, (None, None), Trail::None);
                Ok(())
            }
        }
    }

    fn at(&self) -> i64 {
        self.record.at.micros()
    }

    fn by(&self) -> Option<&str> {
        self.record.by.as_deref()
    }

    fn why(&self) -> Option<&str> {
        self.record.why.as_deref()
    }

    fn audit(
        &mut self,
        act: &str,
        target: &str,
        (before, after): (Option<Json>, Option<Json>),
        trail: Trail<'_>,
    ) {
        let (about, subject) = match trail {
            Trail::None => (None, None),
            Trail::About(about) => (Some(about), None),
            Trail::Subject(key) => (None, Some(key.to_bytes().to_vec())),
        };
        let [before, after] = [before, after].map(|value| value.map(|value| value.to_string()));
        let mut values = values![
            self.at(),
            self.by().unwrap_or(NOBODY),
            act,
            target,
            self.why(),
            before.as_deref(),
            after.as_deref(),
            about,
        ];
        values.push(Value::Bytes(subject));
        self.scribe.add(
            "INSERT INTO catraca.audit (at, by, act, target, why, before, after, about, subject)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8,
                    (SELECT id FROM catraca.subjects WHERE key = $9)",
            values,
        );
    }
}

/// An instant for people to read.
fn shown(micros: i64) -> String {
    Time::from_micros(micros).to_rfc3339()
}
