//! Bytes per key of a full window: what the server itself says it uses.

use catraca_testkit::redis::RedisServer;

use crate::load::fill;
use crate::subjects::{ENTRIES, Subject};

/// Fills every key's window on an empty server; bytes for each.
pub async fn bytes_per_key(server: &RedisServer, subject: &Subject) -> Result<f64, String> {
    server.command(&["FLUSHALL", "SYNC"]);
    let before = used_bytes(server)?;
    fill(server.port(), &subject.commands, ENTRIES as usize).await?;
    let after = used_bytes(server)?;
    Ok((after - before) / subject.commands.len() as f64)
}

fn used_bytes(server: &RedisServer) -> Result<f64, String> {
    let field = server.field(&["INFO", "memory"], "used_memory");
    let text = field.ok_or("the server does not say what it uses")?;
    text.trim().parse().map_err(|_| format!("used_memory is {text}"))
}
