//! Locks and slots in PostgreSQL.
//!
//! Must not leave out a row that it cannot read: somebody would be granted what is taken.

use catraca_core::lock::kept::{KeptLease, LockDeed};

use super::read::Answer;
use super::restore::odd;
use super::session::Session;
use super::value::{Value, values};
use super::write::Act;
use crate::records::locks::{COLUMNS, Columns, KeptLock, Row, fence, name_text, version};

impl Act<'_, '_> {
    pub(super) fn lock(&mut self, deed: &LockDeed) {
        match deed {
            LockDeed::Fence(namespace, kept) => {
                let left = kept.left.map(|left| left.micros());
                let values = values![&**namespace, kept.ceiling, kept.longest.micros(), left];
                self.scribe.add(
                    "INSERT INTO catraca.fences (namespace, ceiling, longest, remaining)
                     VALUES ($1, $2, $3, $4) ON CONFLICT (namespace) DO UPDATE SET
                     ceiling = excluded.ceiling, longest = excluded.longest,
                     remaining = excluded.remaining",
                    values,
                );
            }
            LockDeed::Keep(namespace, lease) => self.keep_lease(namespace, lease),
            LockDeed::Drop(namespace, key) => self.scribe.add(
                "DELETE FROM catraca.leases WHERE namespace = $1 AND lease = $2",
                values![&**namespace, key.to_bytes()],
            ),
            LockDeed::Version(namespace, kept) => {
                let (name, until) = (name_text(&kept.name), kept.until.micros());
                self.scribe.add(
                    "INSERT INTO catraca.versions (namespace, name, version, until)
                     VALUES ($1, $2, $3, $4) ON CONFLICT (namespace, name) DO UPDATE SET
                     version = excluded.version, until = excluded.until",
                    values![&**namespace, &name, kept.version, until],
                );
            }
            LockDeed::Forget(namespace, at) => self.scribe.add(
                "DELETE FROM catraca.versions WHERE namespace = $1 AND until <= $2",
                values![&**namespace, at.micros()],
            ),
        }
    }

    fn keep_lease(&mut self, namespace: &str, lease: &KeptLease) {
        let columns = Columns::of(lease);
        let mut values = values![
            namespace,
            lease.key.to_bytes(),
            lease.tenant.as_deref(),
            &*lease.kind,
            &columns.names,
            lease.label.as_deref(),
            lease.meta.as_deref(),
            lease.state.as_str(),
            columns.range[0],
            columns.range[1],
            columns.range[2],
            columns.range[3],
            lease.fence,
            lease.version,
            lease.acquired_at.micros(),
            lease.expires_at.micros(),
            lease.hold_until.micros(),
            lease.ttl.micros(),
        ];
        values.push(Value::Bytes(columns.request));
        self.scribe.add(KEEP, values);
    }
}

const KEEP: &str = "INSERT INTO catraca.leases (namespace, lease, tenant, kind, names, label, \
    meta, state, starts, ends, before, after, fence, version, acquired, expires, hold_until, ttl, \
    request) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
    $18, $19) ON CONFLICT (namespace, lease) DO UPDATE SET names = excluded.names, \
    starts = excluded.starts, ends = excluded.ends, fence = excluded.fence, \
    acquired = excluded.acquired, expires = excluded.expires, hold_until = excluded.hold_until, \
    ttl = excluded.ttl, state = excluded.state";

pub(super) fn locks(session: &mut Session, visit: &mut dyn FnMut(KeptLock)) -> Answer<()> {
    let sql = "SELECT namespace, ceiling, longest, remaining FROM catraca.fences";
    for row in session.ask(sql, &[])? {
        let numbers = (row.try_get(1)?, row.try_get(2)?);
        visit(fence(row.try_get(0)?, numbers, row.try_get(3)?));
    }
    let sql = "SELECT namespace, name, version, until FROM catraca.versions";
    for row in session.ask(sql, &[])? {
        let (name, numbers) = (row.try_get::<_, String>(1)?, (row.try_get(2)?, row.try_get(3)?));
        visit(version(row.try_get(0)?, &name, numbers).ok_or_else(|| odd("version"))?);
    }
    let sql = format!("SELECT {COLUMNS} FROM catraca.leases");
    for row in session.ask(&sql, &[])? {
        let read = Row {
            namespace: row.try_get(0)?,
            lease: row.try_get(1)?,
            texts: [
                row.try_get(2)?,
                row.try_get(3)?,
                row.try_get(4)?,
                row.try_get(5)?,
                row.try_get(6)?,
                row.try_get(7)?,
            ],
            range: [row.try_get(8)?, row.try_get(9)?, row.try_get(10)?, row.try_get(11)?],
            numbers: [
                row.try_get(12)?,
                row.try_get(13)?,
                row.try_get(14)?,
                row.try_get(15)?,
                row.try_get(16)?,
                row.try_get(17)?,
            ],
            request: row.try_get(18)?,
        };
        visit(read.lease().ok_or_else(|| odd("lease"))?);
    }
    Ok(())
}
