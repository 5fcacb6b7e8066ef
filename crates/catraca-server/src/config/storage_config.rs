//! The storage configuration: `[records]`, `[store]`, and `secret_file` of `[auth]`, with their
//! files resolved.
//!
//! Reads password files; opens no database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use catraca::MemoryOptions;
use catraca::records::{Retention, redact};

use super::passwords::add_password;
use super::{ProcessConfig, SharedStoreConfig};

const SECRET: &str = "catraca.secret";
const SNAPSHOT: &str = "catraca.snapshot";

/// Where state is stored, with paths relative to the catalog resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageConfig {
    /// The URL of the records; may contain a password.
    pub records: String,
    /// The file of SQLite records; `None` for a database, which other nodes may share.
    pub file: Option<PathBuf>,
    /// How long each class of records is kept.
    pub retention: Retention,
    /// The most keys whose attempts are counted one by one in a minute.
    pub keys_per_minute: usize,
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
    /// The namespaces of API keys and of the proxy, each with its part of the memory.
    pub namespaces: Vec<String>,
    /// The shared store, if there is one.
    pub shared: Option<SharedStoreConfig>,
}

impl StorageConfig {
    /// Resolves the sections of a catalog in `folder`; `None` for `[records] url = "none"`.
    pub fn resolve(process: &ProcessConfig, folder: &Path) -> Result<Option<Self>> {
        let ProcessConfig { records, store, auth, .. } = process;
        if records.url == "none" {
            return Ok(None);
        }
        let file = records.url.strip_prefix("sqlite:").map(|file| folder.join(file));
        let default_path = |name: &str| match &file {
            Some(file) => file.with_file_name(name),
            None => folder.join(name),
        };
        let or_default = |file: &Option<String>, name: &str| match file {
            Some(file) => folder.join(file),
            None => default_path(name),
        };
        Ok(Some(Self {
            secret: or_default(&auth.secret_file, SECRET),
            snapshot: or_default(&store.snapshot, SNAPSHOT),
            records: match &file {
                Some(file) => format!("sqlite:{}", file.display()),
                None => {
                    let password = records.password_file.as_deref();
                    add_password("records", &records.url, password, folder)?
                }
            },
            file,
            retention: records.retention(),
            keys_per_minute: records.keys_per_minute,
            purge_interval: records.purge_interval,
            interval: store.snapshot_interval,
            memory: store.memory(),
            namespaces: process.namespaces(),
            shared: SharedStoreConfig::resolve(store, records.scope, folder)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn config(text: &str) -> Result<Option<StorageConfig>> {
        StorageConfig::resolve(&parse(text).unwrap().process, Path::new("shop"))
    }

    #[test]
    fn everything_is_beside_the_catalog_unless_it_says_otherwise() {
        let defaults = config("").unwrap().unwrap();
        assert_eq!(defaults.file.as_deref(), Some(Path::new("shop/catraca.db")));
        assert_eq!(defaults.records, "sqlite:shop/catraca.db");
        assert_eq!(defaults.records_text(), "shop/catraca.db");
        assert_eq!(defaults.secret, Path::new("shop/catraca.secret"));
        assert_eq!(defaults.snapshot, Path::new("shop/catraca.snapshot"));
        assert_eq!(defaults.interval, Duration::from_secs(10));
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
    fn mistakes_have_a_location_and_a_fix() {
        let wrong = [
            (
                "[records]\nurl = 'mysql:x'",
                "2:7: error[bad-url]",
                "begin it with one of: none, sqlite",
            ),
            ("[records]\nurl = 'sqlite:'", "2:7: error[bad-url]", "write \"sqlite:catraca.db\""),
            ("[records]\nurl = 5", "2:7: error[wrong-type]", "write an address in quotes"),
            ("[records]\nurls = 'x'", "2:1: error[unknown-field]", "did you mean `url`?"),
            ("[records]\nurl = 'mysql://ana:s3cret@db'", "2:7: error[bad-url]", "begin it with"),
            ("[records]\nkeep_audit = '1m'", "2:14: error[bad-duration]", "from \"1h\""),
            ("[records]\npurge_interval = '2d'", "2:18: error[bad-duration]", "\"1s\" to \"24h\""),
            ("[store]\nurl = 'mysql://x'", "2:7: error[bad-url]", "memory"),
            (
                "[records]\nurl = 'none'\n[store]\nurl = 'redis://x'",
                "2:7: error[misplaced-setting]",
                "must share their records",
            ),
            ("[store]\nsnapshot_interval = '1ms'", "2:21: error", "\"100ms\" to \"1h\""),
            ("[store]\nblock_mib = 0", "2:13: error[bad-amount]", "write at least 1"),
            ("[records]\nurl = 'none'\n[store]\nsnapshot = 'x'", "4:1: error", "leave it out"),
        ];
        for (text, start, fix) in wrong {
            let message = parse(text).unwrap_err().to_string();
            let start = format!("catalog:{start}");
            assert!(message.starts_with(&start) && message.contains(fix), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
