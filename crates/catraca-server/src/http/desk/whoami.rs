//! Who is asking, as we see it: which address, and why that one.

use catraca::core::address::forwarded::Why;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answered, Call, Desk, told};

/// Who asks, as we see it.
#[derive(Serialize, JsonSchema)]
pub struct Whoami {
    /// The name of the key; `local` while there are no keys.
    #[schemars(example = &"ana")]
    operator: String,
    /// What the key may do: `read`, `check` or `admin`.
    #[schemars(example = &"admin")]
    role: &'static str,
    /// The namespace in which this key counts.
    #[schemars(example = &"default")]
    namespace: String,
    /// The caller's address.
    #[schemars(example = &"198.51.100.7")]
    address: String,
    /// Why this address.
    #[schemars(example = &"the first hop from the right that is no trusted proxy")]
    why: &'static str,
    /// The other end of the connection.
    #[schemars(example = &"127.0.0.1")]
    peer: String,
    /// The header that may name the caller, or `none`.
    #[schemars(example = &"x-forwarded-for")]
    header: String,
}

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
    told(&Whoami {
        operator: desk.by.name().to_owned(),
        role: desk.by.role(),
        namespace: desk.by.namespace().to_owned(),
        address: call.client.address.to_string(),
        why,
        peer: call.peer.to_string(),
        header: header.to_owned(),
    })
}
