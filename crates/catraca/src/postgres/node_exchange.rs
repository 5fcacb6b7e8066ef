//! What nodes tell each other through PostgreSQL. Each call is one statement.

use std::fmt::Write;

use tokio_postgres::{Error, Row};

use super::{PostgresStore, unreadable};
use crate::store::{NOTICES_PER_REPLY, NodeMessage, NodeReply, StoreError};

const EXCHANGE: &str =
    "SELECT stored, ids, states, versions, bodies FROM catraca_store.exchange($1)";
const TRIM: &str = "SELECT catraca_store.trim_notices($1)";

impl PostgresStore {
    pub(super) async fn exchange_notices(
        &self,
        message: &NodeMessage<'_>,
    ) -> Result<NodeReply, StoreError> {
        let row = self.query(EXCHANGE, Some(to_lines(message))).await?;
        read_reply(&row).map_err(unreadable)
    }

    pub(super) async fn trim_to(&self, keep: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let row = self.query(TRIM, Some(keep.to_string())).await?;
        let bodies = row.try_get::<_, Option<Vec<Vec<u8>>>>(0).map_err(unreadable)?;
        Ok(bodies.unwrap_or_default())
    }
}

/// The message as the function reads it.
fn to_lines(message: &NodeMessage<'_>) -> String {
    let NodeMessage { node, state, gone, after, notices } = message;
    let after = after.parse::<i64>().unwrap_or_default();
    let gone = gone.join(" ");
    let mut lines = format!("{node}\n{state}\n{gone}\n{after}\n{NOTICES_PER_REPLY}\n");
    for (index, notice) in notices.iter().enumerate() {
        if index > 0 {
            lines.push(' ');
        }
        for byte in notice {
            // Writing to a string cannot fail.
            let _ = write!(lines, "{byte:02x}");
        }
    }
    lines
}

fn read_reply(row: &Row) -> Result<NodeReply, Error> {
    let stored: i64 = row.try_get(0)?;
    let ids: Option<Vec<String>> = row.try_get(1)?;
    let states: Option<Vec<String>> = row.try_get(2)?;
    let versions: Option<Vec<i64>> = row.try_get(3)?;
    let bodies: Option<Vec<Vec<u8>>> = row.try_get(4)?;
    let nodes = ids.unwrap_or_default().into_iter().zip(states.unwrap_or_default());
    let versions = versions.unwrap_or_default().into_iter().map(|version| version.to_string());
    Ok(NodeReply {
        notices: versions.zip(bodies.unwrap_or_default()).collect(),
        stored: stored.cast_unsigned(),
        nodes: nodes.collect(),
    })
}
