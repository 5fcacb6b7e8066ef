//! The catalog in force as a whole: its gates, attributes and routes by name.
//!
//! Must not show a secret: sections of the process are named, never shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answered, Call, Desk, told};

/// The catalog in force.
#[derive(Serialize, JsonSchema)]
pub struct Config {
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    /// The policy of gates that nobody named.
    default: Option<String>,
    /// How many policies there are.
    #[schemars(example = 1)]
    policies: usize,
    gates: Vec<GateShown>,
    attributes: Vec<AttributeShown>,
    routes: Vec<RouteShown>,
    /// How many entries the catalog's allowlist has.
    #[schemars(example = 0)]
    allowlist: usize,
    /// How many entries the catalog's blocklist has.
    #[schemars(example = 2)]
    blocklist: usize,
    /// Sections about the process; their content is not shown.
    #[schemars(example = ["auth", "server"])]
    sections: Vec<String>,
    /// Settings that differ from what the server was started with, and wait for its next start.
    #[schemars(example = ["[server] listen"])]
    after_restart: Vec<String>,
    /// Gates that were asked and that the catalog does not name.
    unlisted: Vec<String>,
}

/// A gate and its policies in order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gate")]
struct GateShown {
    #[schemars(example = &"appointments")]
    gate: String,
    #[schemars(example = ["global", "appointments"])]
    policies: Vec<String>,
}

/// An attribute that the catalog describes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Attribute")]
struct AttributeShown {
    #[schemars(example = &"payer")]
    attribute: String,
    /// Whether its values are shown as pseudonyms only.
    private: bool,
}

/// A route and its gate.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Route")]
struct RouteShown {
    #[schemars(example = &"POST /api/appointments/**")]
    r#match: String,
    #[schemars(example = &"appointments")]
    gate: String,
}

/// `GET /v1/config`.
pub fn config(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let name = |id| catalog.policy(id).name.to_string();
    let gates = catalog.gate_names.iter().filter_map(|gate| catalog.gates.get(gate));
    let gates = gates.map(|gate| {
        let policies = gate.policies.iter().map(|id| name(*id)).collect();
        GateShown { gate: gate.name.to_string(), policies }
    });
    let attributes = catalog.attributes.iter().map(|(name, known)| AttributeShown {
        attribute: name.to_string(),
        private: known.private,
    });
    let routes = catalog.routes.iter().map(|route| {
        let method = route.method.as_deref().unwrap_or("*");
        let r#match = format!("{method} /{}", route.path.join("/"));
        RouteShown { r#match, gate: route.gate.to_string() }
    });
    told(&Config {
        revision: catalog.revision.to_string(),
        default: catalog.default.map(name),
        policies: catalog.policies.len(),
        gates: gates.collect(),
        attributes: attributes.collect(),
        routes: routes.collect(),
        allowlist: catalog.allowlist.len(),
        blocklist: catalog.blocklist.len(),
        sections: catalog.settings.sections.keys().cloned().collect(),
        after_restart: desk.front.reloader.after_restart(),
        unlisted: desk.engine.unlisted(),
    })
}
