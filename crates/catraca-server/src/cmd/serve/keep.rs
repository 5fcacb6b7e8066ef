//! What is kept over a restart, and where: `[records]`, `[store]` and the secret of `[auth]`.
//!
//! Every mistake is named with its field and a fix. Must not open anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use catraca::Catalog;
use catraca::core::time::parse_span;

const RECORDS: &str = "sqlite:catraca.db";
const SECRET: &str = "catraca.secret";
const SNAPSHOT: &str = "catraca.snapshot";
const INTERVAL: Duration = Duration::from_secs(10);
/// The bounds of the interval that make sense.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3_600));

/// Where everything is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The records' file.
    pub records: PathBuf,
    /// The secret of digests and tickets.
    pub secret: PathBuf,
    /// The store's snapshot.
    pub snapshot: PathBuf,
    /// How often the snapshot is written.
    pub interval: Duration,
}

impl Places {
    /// The places that a catalog names, relative to its folder; none if it wants nothing kept.
    pub fn read(catalog: &Catalog, folder: &Path) -> Result<Option<Self>> {
        let (records, store) = (section(catalog, "records"), section(catalog, "store"));
        refuse_unknown("records", &records, &["url"])?;
        refuse_unknown("store", &store, &["url", "snapshot", "snapshot_interval"])?;
        let url = text("store", &store, "url")?.unwrap_or("memory:");
        ensure!(url == "memory:", "[store] url = {url:?}: this program keeps counters in memory:");
        let auth = section(catalog, "auth");
        let secret = text("auth", &auth, "secret_file")?;
        let snapshot = text("store", &store, "snapshot")?;
        let interval = interval(&store)?;
        let url = text("records", &records, "url")?.unwrap_or(RECORDS);
        if url == "none" {
            ensure!(
                secret.is_none() && snapshot.is_none(),
                "[records] url = \"none\" keeps nothing, so leave out [auth] secret_file and \
                 [store] snapshot, or write url = {RECORDS:?}"
            );
            return Ok(None);
        }
        let Some(file) = url.strip_prefix("sqlite:").filter(|file| !file.is_empty()) else {
            bail!("[records] url = {url:?}: write {RECORDS:?}, or \"none\" to keep nothing");
        };
        let records = folder.join(file);
        let beside = |name: &str| records.with_file_name(name);
        Ok(Some(Self {
            secret: secret.map_or_else(|| beside(SECRET), |file| folder.join(file)),
            snapshot: snapshot.map_or_else(|| beside(SNAPSHOT), |file| folder.join(file)),
            records,
            interval,
        }))
    }
}

fn section(catalog: &Catalog, name: &str) -> toml::Table {
    catalog.settings.sections.get(name).cloned().unwrap_or_default()
}

fn refuse_unknown(name: &str, table: &toml::Table, known: &[&str]) -> Result<()> {
    match table.keys().find(|field| !known.contains(&field.as_str())) {
        Some(odd) => bail!("[{name}] has no field `{odd}`; it has: {}", known.join(", ")),
        None => Ok(()),
    }
}

fn text<'t>(name: &str, table: &'t toml::Table, field: &str) -> Result<Option<&'t str>> {
    let Some(value) = table.get(field) else { return Ok(None) };
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(Some).with_context(|| format!("[{name}] {field} = {value}: write it between quotes"))
}

fn interval(store: &toml::Table) -> Result<Duration> {
    let field = "snapshot_interval";
    let Some(text) = text("store", store, field)? else { return Ok(INTERVAL) };
    let fix = || format!("[store] {field} = {text:?}: write a time from 100ms to 1h");
    let span = parse_span(text).with_context(fix)?;
    let interval = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((INTERVALS.0..=INTERVALS.1).contains(&interval), "{}", fix());
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Result<Option<Places>> {
        let mut catalog = Catalog::parse("").unwrap();
        // Past the catalog's own reader, which refuses some of these before.
        catalog.settings.sections = toml::from_str(text).unwrap();
        Places::read(&catalog, Path::new("shop"))
    }

    #[test]
    fn everything_is_beside_the_catalog_unless_it_says_otherwise() {
        let usual = places("").unwrap().unwrap();
        assert_eq!(usual.records, Path::new("shop/catraca.db"));
        assert_eq!(usual.secret, Path::new("shop/catraca.secret"));
        assert_eq!(usual.snapshot, Path::new("shop/catraca.snapshot"));
        assert_eq!(usual.interval, INTERVAL);
        let other = "[records]\nurl = 'sqlite:/data/a.db'\n[auth]\nsecret_file = 'key'\n\
                     [store]\nsnapshot_interval = '1m'";
        let other = places(other).unwrap().unwrap();
        assert_eq!(other.records, Path::new("/data/a.db"));
        assert_eq!(other.secret, Path::new("shop/key"));
        assert_eq!(other.snapshot, Path::new("/data/catraca.snapshot"));
        assert_eq!(other.interval, Duration::from_secs(60));
        assert_eq!(places("[records]\nurl = 'none'").unwrap(), None);
    }

    #[test]
    fn mistakes_are_named_with_a_fix() {
        let wrong = [
            ("[records]\nurl = 'mysql:x'", "write \"sqlite:catraca.db\""),
            ("[records]\nurl = 'sqlite:'", "write \"sqlite:catraca.db\""),
            ("[records]\nurl = 5", "between quotes"),
            ("[records]\nurls = 'x'", "no field `urls`"),
            ("[store]\nurl = 'redis://x'", "memory:"),
            ("[store]\nsnapshot_interval = '1ms'", "from 100ms to 1h"),
            ("[records]\nurl = 'none'\n[store]\nsnapshot = 'x'", "leave out"),
        ];
        for (text, fix) in wrong {
            let said = places(text).unwrap_err().to_string();
            assert!(said.contains(fix), "{said}");
        }
    }
}
