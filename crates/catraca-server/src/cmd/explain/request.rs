//! The request to explain: a gate by name, or method and path matched against the routes.
//!
//! Attributes that a route reads from headers, cookies or the body must be given on the command
//! line.

use std::ops::Not;

use anyhow::{Result, anyhow, bail, ensure};
use catraca::Catalog;
use catraca::core::catalog::{AttributeSource, Route};
use catraca::core::route::{CanonicalPath, RouteRequest, UNROUTED, attribute_value};
use serde::Serialize;

use crate::args::ExplainOperand;

/// A gate, and the attributes of the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    pub gate: String,
    pub subject: Vec<(String, String)>,
    /// The matching route, when method and path were given.
    pub route: Option<RouteMatch>,
}

/// How a route matches a request. Its field names are JSON keys.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouteMatch {
    /// The matching route as the catalog spells it; `None` if no route matches and the default
    /// policy decides.
    pub r#match: Option<String>,
    /// Attributes that the route sets from the path and the query.
    pub set: Vec<(String, String)>,
    /// Attributes that it reads from other parts and that were not given, each with its part, such
    /// as `header:x-tenant-id`.
    pub unset: Vec<(String, String)>,
    /// Whether the check skips the allowlist and the blocklist.
    #[serde(skip_serializing_if = "Not::not")]
    pub skips_lists: bool,
}

impl ExplainRequest {
    /// Interprets the operands: `first` is a method if a path follows it, else a gate.
    pub fn read(catalog: &Catalog, first: &str, operands: &[ExplainOperand]) -> Result<Self> {
        let mut target = None;
        let mut subject = Vec::new();
        for (index, operand) in operands.iter().enumerate() {
            match operand {
                ExplainOperand::Attribute(name, value) => {
                    subject.push((name.clone(), value.clone()))
                }
                ExplainOperand::Path(path) if index == 0 => target = Some(path.as_str()),
                ExplainOperand::Path(path) => bail!("{path:?}: one path may follow the method"),
            }
        }
        super::refuse_repeated(&subject)?;
        match target {
            None => Ok(Self { gate: first.to_owned(), subject, route: None }),
            Some(target) => {
                Self::from_route(catalog, &RouteRequest { method: first, target }, subject)
            }
        }
    }

    fn from_route(
        catalog: &Catalog,
        request: &RouteRequest<'_>,
        mut subject: Vec<(String, String)>,
    ) -> Result<Self> {
        let RouteRequest { method, target } = request;
        ensure!(
            !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic()),
            "{method:?} is not a method; write GET {target}, or a gate without a path"
        );
        let routed = catalog.route(request);
        let routed = routed.map_err(|why| anyhow!("the path of {target:?} is ambiguous: {why}"))?;
        let Some((route, path)) = routed else {
            ensure!(
                catalog.default.is_some(),
                "no `[[route]]` matches {method} {target}, and the catalog has no `default` policy"
            );
            return Ok(Self {
                gate: UNROUTED.to_owned(),
                subject,
                route: Some(RouteMatch::default()),
            });
        };
        let matched = RouteMatch::new(route, &path, target, &subject)?;
        subject.extend(matched.set.iter().cloned());
        let find = |name: &str| subject.iter().find(|(own, _)| own == name);
        let gate = route.gate_for(catalog, |name| find(name).map(|(_, value)| value.as_str()));
        let gate = gate.map_err(|refusal| anyhow!("{refusal}"))?.to_string();
        Ok(Self { gate, subject, route: Some(matched) })
    }
}

impl RouteMatch {
    fn new(
        route: &Route,
        path: &CanonicalPath,
        target: &str,
        given: &[(String, String)],
    ) -> Result<Self> {
        let method = route.method.as_deref().unwrap_or("*");
        let pattern = format!("{method} /{}", route.path.join("/"));
        let skips_lists = !route.lists;
        let mut matched = Self { r#match: Some(pattern), skips_lists, ..Self::default() };
        let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        for (name, from) in route.set.iter().filter(|(name, _)| **name != *"ip") {
            let is_given = given.iter().any(|(own, _)| **own == **name);
            if matched.set.iter().any(|(own, _)| **own == **name) {
                continue;
            }
            if !is_in_target(from) {
                matched.unset.extend((!is_given).then(|| (name.to_string(), from.to_string())));
                continue;
            }
            let has_other = |(own, from): &(_, _)| own == name && !is_in_target(from);
            if is_given && route.set.iter().any(has_other) {
                continue;
            }
            ensure!(!is_given, "the route sets `{name}` itself; leave it out");
            let value = attribute_value(from, path, |_| None, |wanted| query_value(query, wanted));
            matched.set.extend(value.map(|value| (name.to_string(), value)));
        }
        let set = &matched.set;
        matched.unset.retain(|(name, _)| !set.iter().any(|(own, _)| own == name));
        Ok(matched)
    }
}

/// Whether a part of a request is known from its method and target.
fn is_in_target(source: &AttributeSource) -> bool {
    matches!(
        source,
        AttributeSource::Query(_) | AttributeSource::Segment(_) | AttributeSource::Literal(_)
    )
}

fn query_value(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}
