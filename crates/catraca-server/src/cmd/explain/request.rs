//! What is to be explained: a gate by its name, or the route that a request takes.
//!
//! Must not guess a header: what a route reads from one is given by hand.

use anyhow::{Result, anyhow, bail, ensure};
use catraca::Catalog;
use catraca::core::catalog::{Pick, Route};
use catraca::core::route::{Path, Request, UNROUTED, pick};
use serde::Serialize;

use crate::args::Told;

/// A gate, and who passes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub gate: String,
    pub subject: Vec<(String, String)>,
    /// How a request came to this gate.
    pub way: Option<Way>,
}

/// How a request comes to a gate.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The route that takes it, as it is written; none if the default policy stands in.
    pub r#match: Option<String>,
    /// Attributes that the route takes from the path and the query.
    pub set: Vec<(String, String)>,
    /// Attributes that it takes from headers, and that were not given.
    pub unset: Vec<(String, String)>,
}

impl Asked {
    /// What the words of the command line ask for.
    pub fn read(catalog: &Catalog, first: &str, told: &[Told]) -> Result<Self> {
        let (mut target, mut subject) = (None, Vec::new());
        for (place, one) in told.iter().enumerate() {
            match one {
                Told::Attribute(name, value) => subject.push((name.clone(), value.clone())),
                Told::Path(path) if place == 0 => target = Some(path.as_str()),
                Told::Path(path) => bail!("{path:?}: a path stands behind the method, and once"),
            }
        }
        super::refuse_repeated(&subject)?;
        match target {
            None => Ok(Self { gate: first.to_owned(), subject, way: None }),
            Some(target) => Self::routed(catalog, &Request { method: first, target }, subject),
        }
    }

    fn routed(
        catalog: &Catalog,
        request: &Request<'_>,
        mut subject: Vec<(String, String)>,
    ) -> Result<Self> {
        let Request { method, target } = request;
        ensure!(
            !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic()),
            "{method:?} is no method; write GET {target}, or a gate without a path"
        );
        let routed = catalog.route(request);
        let routed = routed.map_err(|why| anyhow!("the path of {target:?} is ambiguous: {why}"))?;
        let Some((route, path)) = routed else {
            ensure!(
                catalog.default.is_some(),
                "no `[[route]]` takes {method} {target}, and the catalog names no `default` policy"
            );
            return Ok(Self { gate: UNROUTED.to_owned(), subject, way: Some(Way::default()) });
        };
        let way = Way::of(route, &path, target, &subject)?;
        subject.extend(way.set.iter().cloned());
        Ok(Self { gate: route.gate.to_string(), subject, way: Some(way) })
    }
}

impl Way {
    fn of(route: &Route, path: &Path, target: &str, given: &[(String, String)]) -> Result<Self> {
        let method = route.method.as_deref().unwrap_or("*");
        let written = format!("{method} /{}", route.path.join("/"));
        let mut way = Self { r#match: Some(written), ..Self::default() };
        let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        for (name, from) in route.set.iter().filter(|(name, _)| **name != *"ip") {
            let is_given = given.iter().any(|(own, _)| **own == **name);
            if let Pick::Header(header) = from {
                way.unset.extend((!is_given).then(|| (name.to_string(), header.to_string())));
                continue;
            }
            ensure!(!is_given, "the route gives `{name}` itself; leave it out");
            let value = pick(from, path, |_| None, |wanted| in_query(query, wanted));
            way.set.extend(value.map(|value| (name.to_string(), value)));
        }
        Ok(way)
    }
}

fn in_query(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}
