//! `GET /v1/whoami`: the caller's key, role, namespace and address, as this server sees them.

use catraca::core::address::forwarded::AddressReason;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, to_json};

/// The caller, as this server sees it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Whoami")]
pub struct WhoamiBody {
    /// The name of the key; `local` while there are no keys.
    #[schemars(example = &"ana")]
    operator: String,
    /// The role of the key: `read`, `check`, `support` or `admin`.
    #[schemars(example = &"admin")]
    role: &'static str,
    /// The namespace of the key.
    #[schemars(example = &"default")]
    namespace: String,
    /// The client's address.
    #[schemars(example = &"198.51.100.7")]
    address: String,
    /// Why this address was chosen.
    #[schemars(example = &"the first hop from the right that is not a trusted proxy")]
    why: &'static str,
    /// The address at the other end of the connection.
    #[schemars(example = &"127.0.0.1")]
    peer: String,
    /// The header that may contain the client's address, or `none`.
    #[schemars(example = &"x-forwarded-for")]
    header: String,
}

/// `GET /v1/whoami`.
pub async fn whoami(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let config = request.context().reloadable.load();
    let header = config.process.server.client_address.header().unwrap_or("none");
    let client = request.client();
    let why = match client.why {
        AddressReason::Peer => {
            "this server reads no forwarding header, so this is the peer of the connection"
        }
        AddressReason::UntrustedPeer => {
            "the connection is not from a trusted proxy, so no header was read"
        }
        AddressReason::NoHeader => "the trusted proxy did not send the header",
        AddressReason::FirstUntrusted => "the first hop from the right that is not a trusted proxy",
        AddressReason::Unreadable => {
            "the hop to its left cannot be parsed, so that hop and all before it are ignored"
        }
        AddressReason::AllTrusted => {
            "every hop is a trusted proxy, so this is the peer of the connection"
        }
    };
    to_json(&WhoamiBody {
        operator: request.caller.name().to_owned(),
        role: request.caller.role().as_str(),
        namespace: request.caller.namespace().to_owned(),
        address: client.address.to_string(),
        why,
        peer: request.peer().to_string(),
        header: header.to_owned(),
    })
}
