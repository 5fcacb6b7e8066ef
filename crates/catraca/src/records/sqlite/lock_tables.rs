//! Writes and reads the lock tables in SQLite: fences, leases and versions.
//!
//! An unreadable row is an error: skipping it could grant a name twice.

use catraca_core::lock::persistence::{LockWrite, PersistedLease};
use rusqlite::{Connection, params};

use super::restore::invalid_column;
use super::write::{SqliteRecordWriter, SqliteWriteResult};
use crate::records::error::RecordsError;
use crate::records::lock_rows::{
    COLUMNS, RecordedLeaseColumns, RecordedLeaseRow, RecordedLock, fence_record, name_text,
    version_record,
};

impl SqliteRecordWriter<'_> {
    pub(super) fn write_lock(&self, write: &LockWrite) -> SqliteWriteResult {
        match write {
            LockWrite::Fence(namespace, fence) => {
                let left = fence.left.map(|left| left.micros());
                self.run(
                    "INSERT OR REPLACE INTO fences (namespace, ceiling, longest, remaining)
                     VALUES (?1, ?2, ?3, ?4)",
                    params![&**namespace, fence.ceiling, fence.longest.micros(), left],
                )?;
            }
            LockWrite::Keep(namespace, lease) => self.upsert_lease(namespace, lease)?,
            LockWrite::Drop(namespace, key) => {
                self.run(
                    "DELETE FROM leases WHERE namespace = ?1 AND lease = ?2",
                    params![&**namespace, key.to_bytes()],
                )?;
            }
            LockWrite::Version(namespace, stored) => {
                let version = stored.version;
                let until = stored.until.micros();
                self.run(
                    "INSERT OR REPLACE INTO versions (namespace, name, version, until)
                     VALUES (?1, ?2, ?3, ?4)",
                    params![&**namespace, name_text(&stored.name), version, until],
                )?;
            }
            LockWrite::Forget(namespace, at) => {
                self.run(
                    "DELETE FROM versions WHERE namespace = ?1 AND until <= ?2",
                    params![&**namespace, at.micros()],
                )?;
            }
        }
        Ok(())
    }

    fn upsert_lease(&self, namespace: &str, lease: &PersistedLease) -> SqliteWriteResult {
        let columns = RecordedLeaseColumns::of(lease);
        let sql = format!(
            "INSERT OR REPLACE INTO leases ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
             ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
        );
        self.run(
            &sql,
            params![
                namespace,
                lease.key.to_bytes(),
                lease.tenant.as_deref(),
                &*lease.kind,
                columns.names,
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
                columns.request,
            ],
        )?;
        Ok(())
    }
}

pub(super) fn locks(
    connection: &Connection,
    visit: &mut dyn FnMut(RecordedLock),
) -> Result<(), RecordsError> {
    let mut fences =
        connection.prepare("SELECT namespace, ceiling, longest, remaining FROM fences")?;
    let mut rows = fences.query([])?;
    while let Some(row) = rows.next()? {
        visit(fence_record(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    }
    let mut versions =
        connection.prepare("SELECT namespace, name, version, until FROM versions")?;
    let mut rows = versions.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let version = version_record(row.get(0)?, &name, row.get(2)?, row.get(3)?);
        visit(version.ok_or_else(|| invalid_column("version"))?);
    }
    let mut leases = connection.prepare(&format!("SELECT {COLUMNS} FROM leases"))?;
    let mut rows = leases.query([])?;
    while let Some(row) = rows.next()? {
        let row = RecordedLeaseRow {
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
        };
        visit(row.lease().ok_or_else(|| invalid_column("lease"))?);
    }
    Ok(())
}
