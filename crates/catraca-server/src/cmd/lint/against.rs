//! `catraca lint --against URL`: the blocks in force on a server that a catalog would orphan.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use catraca::Catalog;
use catraca_core::policy::KeySpec;
use catraca_core::select::orphan::{OrphanReason, orphan_reason};
use serde_json::Value;

use crate::args::{LintArgs, Output, PagingArgs, RemoteArgs};
use crate::client::Client;
use crate::cmd::remote::pages;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A block in force on the server.
pub struct RemoteBlock {
    policy: String,
    parts: Vec<(String, String)>,
}

/// The blocks in force on the server that the arguments name; absent if they name none.
pub fn fetch(args: &LintArgs) -> Result<Option<Vec<RemoteBlock>>> {
    let Some(url) = &args.against else { return Ok(None) };
    let key_file: Option<PathBuf> = args.key_file.clone();
    let remote = RemoteArgs {
        server: url.clone(),
        key_file,
        ca: None,
        timeout: TIMEOUT,
        output: Output::Json,
    };
    let all = PagingArgs { limit: None, after: None, all: true };
    let page = pages(&Client::new(&remote)?, "/v1/blocks", &[], &all, "blocks")?.json;
    let rows = page["blocks"].as_array().into_iter().flatten();
    let blocks = rows.flat_map(|row| {
        let members = row["members"].as_array().into_iter().flatten();
        std::iter::once(&row["subject"])
            .chain(members.map(|member| &member["subject"]))
            .map(|subject| RemoteBlock {
                policy: row["policy"].as_str().unwrap_or_default().to_owned(),
                parts: parts(subject),
            })
            .collect::<Vec<_>>()
    });
    Ok(Some(blocks.collect()))
}

fn parts(subject: &Value) -> Vec<(String, String)> {
    let pairs = subject.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

impl RemoteBlock {
    /// Why the catalog would orphan this block. JSON has no order of parts, so an order that only
    /// `by` changes is not noticed here; the reload notices it.
    pub fn orphan_reason(&self, catalog: &Catalog) -> Option<(String, OrphanReason)> {
        let mut parts = self.parts.clone();
        if let Some((_, policy)) = catalog.find(&self.policy)
            && let KeySpec::By(wanted) = &policy.key_spec
        {
            let place =
                |name: &str| wanted.iter().position(|any| any.iter().any(|own| **own == *name));
            parts.sort_by_key(|(name, _)| place(name));
        }
        let reason = orphan_reason(catalog, &self.policy, &parts)?;
        Some((self.policy.clone(), reason))
    }
}
