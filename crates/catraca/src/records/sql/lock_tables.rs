//! Writes and reads the lock tables: fences, leases and versions.
//!
//! An unreadable row is an error: skipping it could grant a name twice.

use catraca_core::lock::persistence::{LockWrite, PersistedLease};

use super::value::{SqlRow, invalid_column, values};
use super::write::RecordWriter;
use crate::records::Records;
use crate::records::database::{Access, Database, DatabaseResult, transaction};
use crate::records::error::RecordsError;
use crate::records::lock_rows::{
    RecordedLeaseColumns, RecordedLeaseRow, RecordedLock, fence_record, name_text, version_record,
};

const UPSERT_FENCE: &str = "INSERT INTO catraca.fences (namespace, ceiling, longest, remaining)
    VALUES ($1, $2, $3, $4) ON CONFLICT (namespace) DO UPDATE SET
        ceiling = excluded.ceiling, longest = excluded.longest, remaining = excluded.remaining";
const UPSERT_LEASE: &str = "INSERT INTO catraca.leases
        (namespace, lease, tenant, kind, names, label, meta, state, starts, ends, before, after,
         fence, version, acquired, expires, hold_until, ttl, request)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    ON CONFLICT (namespace, lease) DO UPDATE SET
        tenant = excluded.tenant, kind = excluded.kind, names = excluded.names,
        label = excluded.label, meta = excluded.meta, state = excluded.state,
        starts = excluded.starts, ends = excluded.ends, before = excluded.before,
        after = excluded.after, fence = excluded.fence, version = excluded.version,
        acquired = excluded.acquired, expires = excluded.expires,
        hold_until = excluded.hold_until, ttl = excluded.ttl, request = excluded.request";
const DELETE_LEASE: &str = "DELETE FROM catraca.leases WHERE namespace = $1 AND lease = $2";
const UPSERT_VERSION: &str = "INSERT INTO catraca.versions (namespace, name, version, until)
    VALUES ($1, $2, $3, $4) ON CONFLICT (namespace, name) DO UPDATE SET
        version = excluded.version, until = excluded.until";
const DELETE_VERSIONS: &str = "DELETE FROM catraca.versions WHERE namespace = $1 AND until <= $2";

const FENCES: &str = "SELECT namespace, ceiling, longest, remaining FROM catraca.fences";
const VERSIONS: &str = "SELECT namespace, name, version, until FROM catraca.versions";
/// The columns in the order of [`RecordedLeaseRow`].
const LEASES: &str = "SELECT namespace, lease, tenant, kind, names, label, meta, state, starts,
    ends, before, after, fence, version, acquired, expires, hold_until, ttl, request
    FROM catraca.leases";

impl RecordWriter<'_> {
    pub(super) fn write_lock(&mut self, write: &LockWrite) -> DatabaseResult<()> {
        match write {
            LockWrite::Fence(namespace, fence) => {
                let left = fence.left.map(|left| left.micros());
                let values = values![&**namespace, fence.ceiling, fence.longest, left];
                self.add(UPSERT_FENCE, &values)
            }
            LockWrite::Keep(namespace, lease) => self.upsert_lease(namespace, lease),
            LockWrite::Drop(namespace, key) => {
                self.add(DELETE_LEASE, &values![&**namespace, key.to_bytes()])
            }
            LockWrite::Version(namespace, stored) => {
                let name = name_text(&stored.name);
                let values = values![&**namespace, &name, stored.version, stored.until];
                self.add(UPSERT_VERSION, &values)
            }
            LockWrite::Forget(namespace, at) => {
                self.add(DELETE_VERSIONS, &values![&**namespace, *at])
            }
        }
    }

    fn upsert_lease(&mut self, namespace: &str, lease: &PersistedLease) -> DatabaseResult<()> {
        let columns = RecordedLeaseColumns::of(lease);
        let values = values![
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
            lease.acquired_at,
            lease.expires_at,
            lease.hold_until,
            lease.ttl,
            columns.request,
        ];
        self.add(UPSERT_LEASE, &values)
    }
}

impl Records {
    /// Calls `visit` with every stored fence, lease and version.
    pub fn locks(&self, mut visit: impl FnMut(RecordedLock)) -> Result<(), RecordsError> {
        Ok(transaction(&mut **self.reads.lock(), Access::Read, |database| {
            read_locks(database, &mut visit)
        })?)
    }
}

fn read_locks(
    database: &mut dyn Database,
    visit: &mut dyn FnMut(RecordedLock),
) -> DatabaseResult<()> {
    database.scan(FENCES, &[], &mut |row| {
        visit(fence_record(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        Ok(())
    })?;
    database.scan(VERSIONS, &[], &mut |row| {
        let version = version_record(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        visit(version.ok_or_else(|| invalid_column("version"))?);
        Ok(())
    })?;
    database.scan(LEASES, &[], &mut |row| {
        visit(lease_row(row)?.lease().ok_or_else(|| invalid_column("lease"))?);
        Ok(())
    })
}

fn lease_row(row: &dyn SqlRow) -> DatabaseResult<RecordedLeaseRow> {
    Ok(RecordedLeaseRow {
        namespace: row.get(0)?,
        lease: row.get(1)?,
        texts: [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?],
        range: [row.get(8)?, row.get(9)?, row.get(10)?, row.get(11)?],
        numbers: [
            row.get(12)?,
            row.get(13)?,
            row.get(14)?,
            row.get(15)?,
            row.get(16)?,
            row.get(17)?,
        ],
        request: row.get(18)?,
    })
}
