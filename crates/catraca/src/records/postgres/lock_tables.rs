//! Writes and reads the lock tables in PostgreSQL: fences, leases and versions.
//!
//! An unreadable row is an error: skipping it could grant a name twice.

use catraca_core::lock::persistence::{LockWrite, PersistedLease};

use super::read::PostgresReadResult;
use super::restore::invalid_column;
use super::session::Session;
use super::value::{Value, values};
use super::write::PostgresRecordWriter;
use crate::records::lock_rows::{
    COLUMNS, RecordedLeaseColumns, RecordedLeaseRow, RecordedLock, fence_record, name_text,
    version_record,
};

impl PostgresRecordWriter<'_, '_> {
    pub(super) fn write_lock(&mut self, write: &LockWrite) {
        match write {
            LockWrite::Fence(namespace, fence) => {
                let left = fence.left.map(|left| left.micros());
                let values = values![&**namespace, fence.ceiling, fence.longest.micros(), left];
                self.statements.add(
                    "INSERT INTO catraca.fences (namespace, ceiling, longest, remaining)
                     VALUES ($1, $2, $3, $4) ON CONFLICT (namespace) DO UPDATE SET
                     ceiling = excluded.ceiling, longest = excluded.longest,
                     remaining = excluded.remaining",
                    values,
                );
            }
            LockWrite::Keep(namespace, lease) => self.upsert_lease(namespace, lease),
            LockWrite::Drop(namespace, key) => self.statements.add(
                "DELETE FROM catraca.leases WHERE namespace = $1 AND lease = $2",
                values![&**namespace, key.to_bytes()],
            ),
            LockWrite::Version(namespace, stored) => {
                let name = name_text(&stored.name);
                let until = stored.until.micros();
                self.statements.add(
                    "INSERT INTO catraca.versions (namespace, name, version, until)
                     VALUES ($1, $2, $3, $4) ON CONFLICT (namespace, name) DO UPDATE SET
                     version = excluded.version, until = excluded.until",
                    values![&**namespace, &name, stored.version, until],
                );
            }
            LockWrite::Forget(namespace, at) => self.statements.add(
                "DELETE FROM catraca.versions WHERE namespace = $1 AND until <= $2",
                values![&**namespace, at.micros()],
            ),
        }
    }

    fn upsert_lease(&mut self, namespace: &str, lease: &PersistedLease) {
        let columns = RecordedLeaseColumns::of(lease);
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
        self.statements.add(UPSERT_LEASE, values);
    }
}

const UPSERT_LEASE: &str = "INSERT INTO catraca.leases \
    (namespace, lease, tenant, kind, names, label, meta, state, starts, ends, before, after, \
    fence, version, acquired, expires, hold_until, ttl, request) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
    $18, $19) ON CONFLICT (namespace, lease) DO UPDATE SET names = excluded.names, \
    starts = excluded.starts, ends = excluded.ends, fence = excluded.fence, \
    acquired = excluded.acquired, expires = excluded.expires, hold_until = excluded.hold_until, \
    ttl = excluded.ttl, state = excluded.state";

pub(super) fn locks(
    session: &mut Session,
    visit: &mut dyn FnMut(RecordedLock),
) -> PostgresReadResult<()> {
    let sql = "SELECT namespace, ceiling, longest, remaining FROM catraca.fences";
    for row in session.query(sql, &[])? {
        let fence =
            fence_record(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        visit(fence);
    }
    let sql = "SELECT namespace, name, version, until FROM catraca.versions";
    for row in session.query(sql, &[])? {
        let name: String = row.try_get(1)?;
        let version = version_record(row.try_get(0)?, &name, row.try_get(2)?, row.try_get(3)?);
        visit(version.ok_or_else(|| invalid_column("version"))?);
    }
    let sql = format!("SELECT {COLUMNS} FROM catraca.leases");
    for row in session.query(&sql, &[])? {
        let row = RecordedLeaseRow {
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
        visit(row.lease().ok_or_else(|| invalid_column("lease"))?);
    }
    Ok(())
}
