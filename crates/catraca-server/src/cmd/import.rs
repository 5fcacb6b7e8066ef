//! `catraca import` and `catraca export`: limits, blocks and a blocklist from a limiter that is
//! written in TypeScript, and back.

pub mod catalog_text;
mod configs;
mod csv;
mod tables;
pub mod tokens;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};

pub use configs::FIELDS;

use crate::args::{ExportArgs, ExportVerb, ImportArgs, ImportVerb};
use crate::client::Client;
use crate::exit::Exit;
use crate::regular_file;
use crate::render::{StdoutPipe, count_noun, eprint_line};

use catalog_text::CatalogStyle;
use tables::BuyerRateLimits;

/// Runs a verb of `catraca import`.
pub fn run(args: &ImportArgs) -> Result<Exit> {
    match &args.verb {
        ImportVerb::Configs { file, by, anchored } => import_configs(file, by, *anchored),
        ImportVerb::BuyerRateLimits { remote, file, by, namespace } => {
            let text = read(file)?;
            let name = file.display().to_string();
            let namespace = namespace.as_deref();
            let table = BuyerRateLimits { file: &name, text: &text, by, namespace };
            table.import(&Client::new(remote)?, remote.output)
        }
        ImportVerb::IpBlocklist { remote, file, namespace } => {
            let text = read(file)?;
            let name = file.display().to_string();
            let client = Client::new(remote)?;
            tables::import_blocklist(&client, remote.output, (&name, &text), namespace.as_deref())
        }
    }
}

/// Runs a verb of `catraca export`.
pub fn export(args: &ExportArgs) -> Result<Exit> {
    let ExportVerb::Configs { catalog } = &args.verb;
    let text = catalog_text::write_configs(&super::catalog(catalog)?);
    write!(StdoutPipe::stdout(), "{text}")?;
    Ok(Exit::Yes)
}

fn import_configs(file: &Path, by: &str, anchored: bool) -> Result<Exit> {
    let name = file.display().to_string();
    let text = read(file)?;
    let configs = configs::read(&text).map_err(|error| anyhow!("{name}:{error}"))?;
    ensure!(!configs.is_empty(), "{name} has no config with {}", FIELDS.join(", "));
    let source = file.file_name().map_or(name.clone(), |name| name.display().to_string());
    let style = CatalogStyle { source: &source, by, anchored };
    let catalog = catalog_text::write(&configs, &style)?;
    write!(StdoutPipe::stdout(), "{catalog}")?;
    let policies = count_noun(configs.len(), "policy", "policies");
    let windows = match anchored {
        true => "windows start with the first attempt and end as a whole, as in the source",
        false => "windows slide; those of the source start with the first attempt (--anchored)",
    };
    eprint_line(format_args!("catraca: {policies} from {name}; {windows}"));
    Ok(Exit::Yes)
}

fn read(file: &Path) -> Result<String> {
    let place = || format!("cannot read {}", file.display());
    regular_file::ensure(file).with_context(place)?;
    fs::read_to_string(file).with_context(place)
}
