//! Tables with a single row, which is written once: the secret and the identity of the records.

use super::value::values;
use crate::records::database::{Access, Database, DatabaseResult, row, transaction};
use crate::records::error::DatabaseError;

/// The statements of such a table.
pub(crate) struct SingleValue {
    insert: &'static str,
    select: &'static str,
    missing: &'static str,
}

pub(crate) const SECRET: SingleValue = SingleValue {
    insert: "INSERT INTO catraca.secrets (id)
        SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM catraca.secrets)",
    select: "SELECT id FROM catraca.secrets",
    missing: "the table `secrets` is empty: the fingerprint of the secret is missing",
};
pub(crate) const IDENTITY: SingleValue = SingleValue {
    insert: "INSERT INTO catraca.identity (id)
        SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM catraca.identity)",
    select: "SELECT id FROM catraca.identity",
    missing: "the table `identity` is empty: the identity of the records is missing",
};

impl SingleValue {
    /// The stored value, if there is one.
    pub(crate) fn load(&self, database: &mut dyn Database) -> DatabaseResult<Option<String>> {
        row(database, self.select, &[], |row| row.get(0))
    }

    /// Stores a value if there is none yet. Returns the stored one.
    pub(crate) fn store_once(
        &self,
        database: &mut dyn Database,
        value: &str,
    ) -> DatabaseResult<String> {
        transaction(database, Access::Write, |database| {
            database.add(self.insert, &values![value])?;
            self.load(database)?.ok_or_else(|| DatabaseError::Bad(self.missing.to_owned()))
        })
    }
}
