//! The ports of a document: each default port that its servers use gets a free port in its place,
//! and is put back where it is shown, so that no other server gets the requests of a document.

use std::net::TcpListener;

use anyhow::{Context, Result};

use super::markdown::Step;

/// The default address of a server.
const ADDRESS: &str = "127.0.0.1:7878";
/// The ports of a second server, of Redis and of PostgreSQL, in documents that start them.
const OTHERS: [&str; 3] = ["7879", "6379", "5432"];

/// Whether a step starts a server of another kind.
fn starts_others(step: &Step) -> bool {
    let runs_redis = |text: &str| text.contains("redis-server ");
    matches!(step, Step::Postgres) || step.command().is_some_and(|own| runs_redis(&own.text))
}

/// Default addresses and ports with their replacements.
pub(crate) struct DocumentPorts {
    replaced: Vec<(&'static str, String)>,
}

impl DocumentPorts {
    /// Free ports for the servers of a document.
    pub(crate) fn of(steps: &[Step]) -> Result<Self> {
        let starts_others = steps.iter().any(starts_others);
        let starts_server = steps.iter().any(|step| matches!(step, Step::Serve(_)));
        let mut replaced = Vec::new();
        // All listeners are open until the last port is known, so that the ports differ.
        let mut listeners = Vec::new();
        let mut free = || -> Result<u16> {
            let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
            let port = listener.local_addr()?.port();
            listeners.push(listener);
            Ok(port)
        };
        if starts_server || starts_others {
            replaced.push((ADDRESS, format!("127.0.0.1:{}", free()?)));
        }
        for port in OTHERS.into_iter().filter(|_| starts_others) {
            replaced.push((port, free()?.to_string()));
        }
        Ok(Self { replaced })
    }

    /// The address of the document's server.
    pub(crate) fn address(&self) -> &str {
        self.replaced.first().map_or(ADDRESS, |(_, free)| free)
    }

    /// The port of the document's PostgreSQL.
    pub(crate) fn postgres(&self) -> &str {
        self.replaced.last().map_or(OTHERS[2], |(_, free)| free)
    }

    /// A text of the document, as it is run.
    pub(crate) fn apply(&self, text: &str) -> String {
        let replace = |text: String, (default, free): &(&str, String)| text.replace(default, free);
        self.replaced.iter().fold(text.to_owned(), replace)
    }

    /// An output, as the document shows it.
    pub(crate) fn restore(&self, output: &str) -> String {
        let replace = |text: String, (default, free): &(&str, String)| text.replace(free, default);
        self.replaced.iter().fold(output.to_owned(), replace)
    }
}
