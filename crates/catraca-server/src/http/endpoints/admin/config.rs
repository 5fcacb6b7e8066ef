//! `GET /v1/config`: the gates, attributes and routes of the catalog in use.
//!
//! Sections about the process may hold secrets: their names are sent, never their content.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, to_json};

/// The catalog in use.
#[derive(Serialize, JsonSchema)]
pub struct CatalogSummary {
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    /// The policy of gates that the catalog does not name.
    default: Option<String>,
    /// How many policies there are.
    #[schemars(example = 1)]
    policies: usize,
    gates: Vec<GateBody>,
    attributes: Vec<AttributeBody>,
    routes: Vec<RouteBody>,
    /// How many entries the catalog's allowlist has.
    #[schemars(example = 0)]
    allowlist: usize,
    /// How many entries the catalog's blocklist has.
    #[schemars(example = 2)]
    blocklist: usize,
    /// Sections about the process; their content is not shown.
    #[schemars(example = ["auth", "server"])]
    sections: Vec<String>,
    /// Settings that changed since the server started, and take effect at its next start.
    #[schemars(example = ["[server] listen"])]
    after_restart: Vec<String>,
    /// Gates that requests named and the catalog does not.
    unlisted: Vec<String>,
}

/// A gate and its policies in order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gate")]
struct GateBody {
    #[schemars(example = &"appointments")]
    gate: String,
    #[schemars(example = ["global", "appointments"])]
    policies: Vec<String>,
}

/// An attribute that the catalog describes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Attribute")]
struct AttributeBody {
    #[schemars(example = &"payer")]
    attribute: String,
    /// Whether its values are shown as pseudonyms only.
    private: bool,
}

/// A route and its gate.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Route")]
struct RouteBody {
    #[schemars(example = &"POST /api/appointments/**")]
    r#match: String,
    #[schemars(example = &"appointments")]
    gate: String,
}

/// `GET /v1/config`.
pub async fn show(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let context = request.context();
    let catalog = context.app.catalog();
    let name = |id| catalog.policy(id).name.to_string();
    let gates = catalog.gate_names.iter().filter_map(|gate| catalog.gates.get(gate));
    let gates = gates.map(|gate| {
        let policies = gate.policies.iter().map(|id| name(*id)).collect();
        GateBody { gate: gate.name.to_string(), policies }
    });
    let attributes = catalog
        .attributes
        .iter()
        .map(|(name, known)| AttributeBody { attribute: name.to_string(), private: known.private });
    let routes = catalog
        .routes
        .iter()
        .map(|route| RouteBody { r#match: route.pattern(), gate: route.gate.to_string() });
    let config = context.reloadable.load();
    let present = config.process.present.iter().copied();
    to_json(&CatalogSummary {
        revision: catalog.revision.to_string(),
        default: catalog.default.map(name),
        policies: catalog.policies.len(),
        gates: gates.collect(),
        attributes: attributes.collect(),
        routes: routes.collect(),
        allowlist: catalog.allowlist.len(),
        blocklist: catalog.blocklist.len(),
        sections: present.map(str::to_owned).collect(),
        after_restart: context.reloader.after_restart(),
        unlisted: context.app.engine().undeclared_gates(),
    })
}
