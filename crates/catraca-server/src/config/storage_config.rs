//! The storage configuration: `[records]`, `[store]`, and `secret_file` of `[auth]`.
//!
//! Validates the fields and reads password files; opens no database. Error messages name the
//! field and a fix.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca::core::time::parse_span;
use catraca::records::{Retention, is_postgres, redact};
use catraca::{Catalog, MemoryOptions};

use super::retention;
use super::section::{add_password, refuse_unknown, section, text};
use super::shared_store_config::{MEMORY_ONLY_FIELDS, SHARED_ONLY_FIELDS, SharedStoreConfig};

const RECORDS: &str = "sqlite:catraca.db";
const SECRET: &str = "catraca.secret";
const SNAPSHOT: &str = "catraca.snapshot";
const INTERVAL: Duration = Duration::from_secs(10);
/// Bounds of `snapshot_interval`: more often costs too much, and more rarely loses too much.
const INTERVAL_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(3_600));

/// Where state is stored, with paths relative to the catalog resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageConfig {
    /// The URL of the records; may contain a password.
    pub records: String,
    /// The file of SQLite records; `None` for a database, which other nodes may share.
    pub file: Option<PathBuf>,
    /// How long each class of records is kept.
    pub retention: Retention,
    /// How often expired records are deleted.
    pub purge_interval: Duration,
    /// The file with the secret of digests and tickets.
    pub secret: PathBuf,
    /// The snapshot of the counters in memory.
    pub snapshot: PathBuf,
    /// How often the snapshot is written.
    pub interval: Duration,
    /// Memory limits of the store.
    pub memory: MemoryOptions,
    /// The shared store, if there is one.
    pub shared: Option<SharedStoreConfig>,
}

/// The memory limits in `[store]`.
pub fn memory_of(catalog: &Catalog) -> Result<MemoryOptions> {
    memory(&section(catalog, "store"))
}

impl StorageConfig {
    /// Reads the sections of a catalog in `folder`; `None` for `[records] url = "none"`.
    pub fn read(catalog: &Catalog, folder: &Path) -> Result<Option<Self>> {
        let records = section(catalog, "records");
        let store = section(catalog, "store");
        refuse_unknown("records", &records, &RECORDS_FIELDS)?;
        refuse_unknown(
            "store",
            &store,
            &[&STORE_FIELDS[..], &SHARED_ONLY_FIELDS, &MEMORY_ONLY_FIELDS].concat(),
        )?;
        let shared = SharedStoreConfig::read(&store, folder)?;
        let auth = section(catalog, "auth");
        let secret = text("auth", &auth, "secret_file")?;
        let snapshot = text("store", &store, "snapshot")?;
        let interval = interval(&store)?;
        let url = text("records", &records, "url")?.unwrap_or(RECORDS);
        if url == "none" {
            ensure!(
                shared.is_none(),
                "[records] url = \"none\" stores nothing, and nodes with a shared store must share \
                 their records too: write \"postgres://USER@HOST/DATABASE\", or {RECORDS:?} for \
                 one node"
            );
            ensure!(
                secret.is_none() && snapshot.is_none(),
                "[records] url = \"none\" stores nothing: leave out [auth] secret_file and \
                 [store] snapshot, or write url = {RECORDS:?}"
            );
            return Ok(None);
        }
        let file = url.strip_prefix("sqlite:").filter(|file| !file.is_empty());
        ensure!(
            file.is_some() || is_postgres(url),
            "[records] url = {:?}: write {RECORDS:?}, \"postgres://USER@HOST/DATABASE\", or \
             \"none\" to keep nothing",
            redact(url)
        );
        let file = file.map(|file| folder.join(file));
        let default_path = |name: &str| match &file {
            Some(file) => file.with_file_name(name),
            None => folder.join(name),
        };
        Ok(Some(Self {
            secret: secret.map_or_else(|| default_path(SECRET), |file| folder.join(file)),
            snapshot: snapshot.map_or_else(|| default_path(SNAPSHOT), |file| folder.join(file)),
            records: match &file {
                Some(file) => format!("sqlite:{}", file.display()),
                None => {
                    let password = text("records", &records, "password_file")?;
                    add_password("records", url, password, folder)?
                }
            },
            file,
            retention: retention::retention(&records)?,
            purge_interval: retention::purge_interval(&records)?,
            interval,
            memory: memory(&store)?,
            shared,
        }))
    }

    /// The file or URL of the records for messages, without the password.
    pub fn records_text(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => redact(&self.records),
        }
    }
}

/// Fields of `[store]` that every kind of store has.
const STORE_FIELDS: [&str; 5] = ["url", "counter_mib", "block_mib", "reference_mib", "mark_mib"];

/// Memory limits from the section, with defaults.
fn memory(store: &toml::Table) -> Result<MemoryOptions> {
    let defaults = MemoryOptions::default();
    let bytes = |field: &str, default: usize| -> Result<usize> {
        let Some(value) = store.get(field) else { return Ok(default) };
        let mib = value.as_integer().and_then(|mib| usize::try_from(mib).ok());
        let mib = mib.filter(|mib| (1..=1 << 20).contains(mib));
        let fix = || format!("[store] {field} = {value}: write whole mebibytes, from 1 to 1048576");
        Ok(mib.with_context(fix)? << 20)
    };
    Ok(MemoryOptions {
        budget_bytes: bytes("counter_mib", defaults.budget_bytes)?,
        block_bytes: bytes("block_mib", defaults.block_bytes)?,
        reference_bytes: bytes("reference_mib", defaults.reference_bytes)?,
        mark_bytes: bytes("mark_mib", defaults.mark_bytes)?,
        ..defaults
    })
}

/// The fields of `[records]`.
const RECORDS_FIELDS: [&str; 6] =
    ["url", "password_file", "keep_history", "keep_audit", "keep_counts", "purge_interval"];

fn interval(store: &toml::Table) -> Result<Duration> {
    let field = "snapshot_interval";
    let Some(text) = text("store", store, field)? else { return Ok(INTERVAL) };
    let fix = || format!("[store] {field} = {text:?}: write a time from 100ms to 1h");
    let span = parse_span(text).with_context(fix)?;
    let interval = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((INTERVAL_BOUNDS.0..=INTERVAL_BOUNDS.1).contains(&interval), "{}", fix());
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Option<StorageConfig>> {
        let mut catalog = Catalog::parse("").unwrap();
        // Sets the sections directly: the catalog's parser would reject some of these earlier.
        catalog.settings.sections = toml::from_str(text).unwrap();
        StorageConfig::read(&catalog, Path::new("shop"))
    }

    #[test]
    fn everything_is_beside_the_catalog_unless_it_says_otherwise() {
        let defaults = config("").unwrap().unwrap();
        assert_eq!(defaults.file.as_deref(), Some(Path::new("shop/catraca.db")));
        assert_eq!(defaults.records, "sqlite:shop/catraca.db");
        assert_eq!(defaults.records_text(), "shop/catraca.db");
        assert_eq!(defaults.secret, Path::new("shop/catraca.secret"));
        assert_eq!(defaults.snapshot, Path::new("shop/catraca.snapshot"));
        assert_eq!(defaults.interval, INTERVAL);
        let other = "[records]\nurl = 'sqlite:/data/a.db'\n[auth]\nsecret_file = 'key'\n\
                     [store]\nsnapshot_interval = '1m'";
        let other = config(other).unwrap().unwrap();
        assert_eq!(other.records_text(), "/data/a.db");
        assert_eq!(other.secret, Path::new("shop/key"));
        assert_eq!(other.snapshot, Path::new("/data/catraca.snapshot"));
        assert_eq!(other.interval, Duration::from_secs(60));
        let memory = config("[store]\nblock_mib = 512").unwrap().unwrap().memory;
        assert_eq!(memory, MemoryOptions { block_bytes: 512 << 20, ..MemoryOptions::default() });
        assert_eq!(config("[records]\nurl = 'none'").unwrap(), None);
    }

    #[test]
    fn a_database_keeps_its_password_to_itself() {
        let url = "[records]\nurl = 'postgres://ana:s3cret@db/shop'";
        let shared = config(url).unwrap().unwrap();
        assert_eq!(shared.records_text(), "postgres://ana:…@db/shop");
        assert_eq!((shared.file, shared.secret), (None, PathBuf::from("shop/catraca.secret")));
        let folder = std::env::temp_dir();
        let file = folder.join(format!("catraca-password-{}", std::process::id()));
        std::fs::write(&file, "p@ss w/rd\n").unwrap();
        let name = file.to_str();
        let composed = add_password("records", "postgres://ana@db/shop", name, &folder).unwrap();
        assert_eq!(composed, "postgres://ana:p%40ss%20w%2Frd@db/shop");
        for url in ["postgres://db/shop", "postgres://ana:s3cret@db/shop"] {
            let message = add_password("records", url, name, &folder).unwrap_err().to_string();
            assert!(
                message.contains("without a password") && !message.contains("s3cret"),
                "{message}"
            );
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn mistakes_are_named_with_a_fix() {
        let wrong = [
            ("[records]\nurl = 'mysql:x'", "write \"sqlite:catraca.db\""),
            ("[records]\nurl = 'sqlite:'", "write \"sqlite:catraca.db\""),
            ("[records]\nurl = 5", "between quotes"),
            ("[records]\nurls = 'x'", "no field `urls`"),
            ("[records]\nurl = 'mysql://ana:s3cret@db'", "mysql://ana:…@db"),
            ("[records]\nkeep_audit = '1m'", "keep_audit = \"1m\": write a time from 1h"),
            ("[records]\npurge_interval = '2d'", "from 1s to 1d"),
            ("[store]\nurl = 'mysql://x'", "memory:"),
            ("[records]\nurl = 'none'\n[store]\nurl = 'redis://x'", "must share their records"),
            ("[store]\nsnapshot_interval = '1ms'", "from 100ms to 1h"),
            ("[store]\nblock_mib = 0", "block_mib = 0: write whole mebibytes"),
            ("[records]\nurl = 'none'\n[store]\nsnapshot = 'x'", "leave out"),
        ];
        for (text, fix) in wrong {
            let message = config(text).unwrap_err().to_string();
            assert!(message.contains(fix), "{message}");
        }
    }
}
