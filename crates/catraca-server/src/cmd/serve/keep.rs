//! What is kept over a restart, and where: `[records]`, `[store]` and the secret of `[auth]`.
//!
//! Every mistake is named with its field and a fix. Must not open anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use catraca::core::time::parse_span;
use catraca::records::{Retention, is_postgres, redacted};
use catraca::{Catalog, MemoryOptions};

use super::retain;
use super::sharing::{ALONE, SHARED, Sharing};
use crate::regular;

const RECORDS: &str = "sqlite:catraca.db";
const SECRET: &str = "catraca.secret";
const SNAPSHOT: &str = "catraca.snapshot";
const INTERVAL: Duration = Duration::from_secs(10);
/// The bounds of the interval that make sense.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3_600));

/// Where everything is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The records' URL, which may hold a password.
    pub records: String,
    /// Their file, where they are in one: nobody else can have them then.
    pub file: Option<PathBuf>,
    /// How long each class of them is kept.
    pub retention: Retention,
    /// How often what is over its time is deleted.
    pub purge_interval: Duration,
    /// The secret of digests and tickets.
    pub secret: PathBuf,
    /// The store's snapshot.
    pub snapshot: PathBuf,
    /// How often the snapshot is written.
    pub interval: Duration,
    /// How much the store may hold.
    pub memory: MemoryOptions,
    /// The store that nodes share instead.
    pub shared: Option<Sharing>,
}

/// How much the store may hold, as a catalog says.
pub fn memory_of(catalog: &Catalog) -> Result<MemoryOptions> {
    memory(&section(catalog, "store"))
}

impl Places {
    /// The places that a catalog names, relative to its folder; none if it wants nothing kept.
    pub fn read(catalog: &Catalog, folder: &Path) -> Result<Option<Self>> {
        let (records, store) = (section(catalog, "records"), section(catalog, "store"));
        refuse_unknown("records", &records, &FIELDS)?;
        refuse_unknown("store", &store, &[&STORE_FIELDS[..], &SHARED, &ALONE].concat())?;
        let shared = Sharing::read(&store, folder)?;
        let auth = section(catalog, "auth");
        let secret = text("auth", &auth, "secret_file")?;
        let snapshot = text("store", &store, "snapshot")?;
        let interval = interval(&store)?;
        let url = text("records", &records, "url")?.unwrap_or(RECORDS);
        if url == "none" {
            ensure!(
                shared.is_none(),
                "[records] url = \"none\" keeps nothing, and nodes that share a store must share \
                 what operators do: write \"postgres://USER@HOST/DATABASE\", or {RECORDS:?} for \
                 one node"
            );
            ensure!(
                secret.is_none() && snapshot.is_none(),
                "[records] url = \"none\" keeps nothing, so leave out [auth] secret_file and \
                 [store] snapshot, or write url = {RECORDS:?}"
            );
            return Ok(None);
        }
        let file = url.strip_prefix("sqlite:").filter(|file| !file.is_empty());
        ensure!(
            file.is_some() || is_postgres(url),
            "[records] url = {:?}: write {RECORDS:?}, \"postgres://USER@HOST/DATABASE\", or \
             \"none\" to keep nothing",
            redacted(url)
        );
        let file = file.map(|file| folder.join(file));
        let beside = |name: &str| match &file {
            Some(file) => file.with_file_name(name),
            None => folder.join(name),
        };
        Ok(Some(Self {
            secret: secret.map_or_else(|| beside(SECRET), |file| folder.join(file)),
            snapshot: snapshot.map_or_else(|| beside(SNAPSHOT), |file| folder.join(file)),
            records: match &file {
                Some(file) => format!("sqlite:{}", file.display()),
                None => {
                    let password = text("records", &records, "password_file")?;
                    with_password("records", url, password, folder)?
                }
            },
            file,
            retention: retain::retention(&records)?,
            purge_interval: retain::purge_interval(&records)?,
            interval,
            memory: memory(&store)?,
            shared,
        }))
    }

    /// The records as people may see them.
    pub fn shown(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => redacted(&self.records),
        }
    }
}

/// The fields of `[store]` that every store has.
const STORE_FIELDS: [&str; 5] = ["url", "counter_mib", "block_mib", "reference_mib", "mark_mib"];

/// The bounds of the memory store: what the section says, else the defaults.
fn memory(store: &toml::Table) -> Result<MemoryOptions> {
    let usual = MemoryOptions::default();
    let bytes = |field: &str, usual: usize| -> Result<usize> {
        let Some(value) = store.get(field) else { return Ok(usual) };
        let mib = value.as_integer().and_then(|mib| usize::try_from(mib).ok());
        let mib = mib.filter(|mib| (1..=1 << 20).contains(mib));
        let fix = || format!("[store] {field} = {value}: write whole mebibytes, from 1 to 1048576");
        Ok(mib.with_context(fix)? << 20)
    };
    Ok(MemoryOptions {
        budget_bytes: bytes("counter_mib", usual.budget_bytes)?,
        block_bytes: bytes("block_mib", usual.block_bytes)?,
        reference_bytes: bytes("reference_mib", usual.reference_bytes)?,
        mark_bytes: bytes("mark_mib", usual.mark_bytes)?,
        ..usual
    })
}

/// The fields of `[records]`.
const FIELDS: [&str; 6] =
    ["url", "password_file", "keep_history", "keep_audit", "keep_counts", "purge_interval"];

/// The URL with the password of a file, so that the catalog need not hold one.
pub(super) fn with_password(
    section: &str,
    url: &str,
    file: Option<&str>,
    folder: &Path,
) -> Result<String> {
    let Some(file) = file else { return Ok(url.to_owned()) };
    let password = password_in(section, "password_file", file, folder)?;
    let place = url.split_once("://").and_then(|(scheme, rest)| {
        let (user, place) = rest.split_once('@').filter(|(user, _)| !user.contains(':'))?;
        Some(format!("{scheme}://{user}:{password}@{place}"))
    });
    place.with_context(|| {
        format!(
            "[{section}] password_file needs a url with a user and without a password, such as \
             \"postgres://USER@HOST/DATABASE\" or \"redis://default@HOST:6379\""
        )
    })
}

/// What a file of a field holds, as a URL takes it.
pub(super) fn password_in(section: &str, field: &str, file: &str, folder: &Path) -> Result<String> {
    let path = folder.join(file);
    let read = regular::read(&path)
        .with_context(|| format!("[{section}] {field}: cannot read {}", path.display()))?;
    let bytes = form_urlencoded::byte_serialize(read.trim_end().as_bytes());
    Ok(bytes.collect::<String>().replace('+', "%20"))
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

pub(super) fn text<'t>(name: &str, table: &'t toml::Table, field: &str) -> Result<Option<&'t str>> {
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
        assert_eq!(usual.file.as_deref(), Some(Path::new("shop/catraca.db")));
        assert_eq!(usual.records, "sqlite:shop/catraca.db");
        assert_eq!(usual.shown(), "shop/catraca.db");
        assert_eq!(usual.secret, Path::new("shop/catraca.secret"));
        assert_eq!(usual.snapshot, Path::new("shop/catraca.snapshot"));
        assert_eq!(usual.interval, INTERVAL);
        let other = "[records]\nurl = 'sqlite:/data/a.db'\n[auth]\nsecret_file = 'key'\n\
                     [store]\nsnapshot_interval = '1m'";
        let other = places(other).unwrap().unwrap();
        assert_eq!(other.shown(), "/data/a.db");
        assert_eq!(other.secret, Path::new("shop/key"));
        assert_eq!(other.snapshot, Path::new("/data/catraca.snapshot"));
        assert_eq!(other.interval, Duration::from_secs(60));
        let roomy = places("[store]\nblock_mib = 512").unwrap().unwrap().memory;
        assert_eq!(roomy, MemoryOptions { block_bytes: 512 << 20, ..MemoryOptions::default() });
        assert_eq!(places("[records]\nurl = 'none'").unwrap(), None);
    }

    #[test]
    fn a_database_keeps_its_password_to_itself() {
        let url = "[records]\nurl = 'postgres://ana:s3cret@db/shop'";
        let shared = places(url).unwrap().unwrap();
        assert_eq!(shared.shown(), "postgres://ana:…@db/shop");
        assert_eq!((shared.file, shared.secret), (None, PathBuf::from("shop/catraca.secret")));
        let folder = std::env::temp_dir();
        let file = folder.join(format!("catraca-password-{}", std::process::id()));
        std::fs::write(&file, "p@ss w/rd\n").unwrap();
        let name = file.to_str();
        let composed = with_password("records", "postgres://ana@db/shop", name, &folder).unwrap();
        assert_eq!(composed, "postgres://ana:p%40ss%20w%2Frd@db/shop");
        for url in ["postgres://db/shop", "postgres://ana:s3cret@db/shop"] {
            let said = with_password("records", url, name, &folder).unwrap_err().to_string();
            assert!(said.contains("without a password") && !said.contains("s3cret"), "{said}");
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
            ("[records]\nurl = 'none'\n[store]\nurl = 'redis://x'", "must share what operators"),
            ("[store]\nsnapshot_interval = '1ms'", "from 100ms to 1h"),
            ("[store]\nblock_mib = 0", "block_mib = 0: write whole mebibytes"),
            ("[records]\nurl = 'none'\n[store]\nsnapshot = 'x'", "leave out"),
        ];
        for (text, fix) in wrong {
            let said = places(text).unwrap_err().to_string();
            assert!(said.contains(fix), "{said}");
        }
    }
}
