//! Who is asking, as we see it: which address, and why that one.

use catraca::core::address::forwarded::Why;
use serde_json::json;

use super::{Answered, Call, Desk};

/// `GET /v1/whoami`.
pub fn whoami(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let live = desk.front.live.load();
    let header = live.settings.source.header().unwrap_or("none");
    let why = match call.client.why {
        Why::Peer => "this listener reads the connection alone",
        Why::UntrustedPeer => "the connection is no trusted proxy's, so no header was read",
        Why::NoHeader => "the trusted proxy sent no such header",
        Why::FirstUntrusted => "the first hop from the right that is no trusted proxy",
        Why::Unreadable => "the hop before it cannot be read, so nothing left of it is believed",
        Why::AllTrusted => "every hop is a trusted proxy, so the request began at the nearest",
    };
    Ok(json!({
        "operator": desk.by.name(),
        "namespace": desk.by.namespace(),
        "address": call.client.address.to_string(),
        "why": why,
        "peer": call.peer.to_string(),
        "header": header,
    }))
}
