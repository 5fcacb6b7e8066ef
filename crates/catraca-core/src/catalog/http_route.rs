//! A route: the HTTP requests that it matches, and what is read from them.

use std::collections::BTreeMap;
use std::fmt;

use crate::json_path::JsonPath;
use crate::policy::Name;
use crate::request::COST_MAX;

/// The gate, attributes and upstreams of HTTP requests that match a method and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method; absent means any.
    pub method: Option<String>,
    /// The path's segments: literals, `*` for one segment, `**` for the rest.
    pub path: Vec<String>,
    /// The gate.
    pub gate: RouteGate,
    /// Attributes that are read from the request. Of several entries of one attribute, the first
    /// that a request has counts.
    pub set: Vec<(Name, AttributeSource)>,
    /// The part of the request that is the reference of its check.
    pub reference: Option<AttributeSource>,
    /// The units that the check of a request asks for; absent means the policy's default.
    pub cost: Option<RouteCost>,
    /// Whether the check consults the allowlist and the blocklist.
    pub lists: bool,
    /// Parts without which some requests are refused.
    pub required: Vec<RequiredPart>,
    /// The servers that a proxy forwards the request to, each as a URL; none without a proxy.
    pub upstreams: Vec<String>,
}

/// The gate of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteGate {
    /// The same gate for every request.
    Fixed(Name),
    /// A gate for each value of an attribute.
    Map(Box<GateMap>),
}

/// Gates by the value of an attribute. Every gate is declared, so no request can name one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateMap {
    /// The attribute, or the name that is derived from one.
    pub by: Name,
    /// The attribute that the route reads: `by` itself, or what it is derived from.
    pub attribute: Name,
    /// The gate of each value, in normal form.
    pub gates: BTreeMap<String, Name>,
    /// The gate of requests without a value; without it, they are refused.
    pub absent: Option<Name>,
    /// The gate of all other values; without it, their requests are refused.
    pub default: Option<Name>,
}

/// The part of an HTTP request that an attribute is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeSource {
    /// A request header.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// A query parameter.
    Query(String),
    /// A path segment, counted from one.
    Segment(usize),
    /// A field of the JSON body.
    Body(JsonPath),
    /// A claim of the verified token in `Authorization: Bearer`, by its name or its path.
    Claim(String),
    /// A field of the client's certificate.
    Certificate(CertificateField),
    /// A constant.
    Literal(String),
}

/// A field of a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateField {
    /// The name of its subject.
    Subject,
    /// The SHA-256 of the certificate, in hexadecimal digits.
    Fingerprint,
    /// Its first subject alternative name.
    AlternativeName,
}

impl CertificateField {
    /// Every field with its name in a catalog.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("subject", Self::Subject),
        ("fingerprint", Self::Fingerprint),
        ("san", Self::AlternativeName),
    ];
}

/// The units that the check of a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCost {
    /// What is added up. If a request has no value for one of them, the cost is that of the policy.
    pub terms: Vec<RouteCostTerm>,
}

/// A number of units of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteCostTerm {
    /// Always this many.
    Units(i64),
    /// A whole number in a part of the request.
    Parts(PartsCost),
    /// One unit for each such number of bytes of the body, rounded up.
    BytesPerUnit(i64),
}

/// A number of units that is in parts of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartsCost {
    /// The parts, of which the first that is present counts.
    pub sources: Vec<AttributeSource>,
    /// Whether the part with the largest number counts instead, here and in `times`.
    pub is_largest: bool,
    /// Parts with a number by which the units are multiplied; 1 if none is present.
    pub times: Vec<AttributeSource>,
    /// The units if no part is present.
    pub default: Option<i64>,
}

impl PartsCost {
    /// The units of a request, whose numbers the function reads.
    pub fn units<E>(
        &self,
        mut number_in: impl FnMut(&AttributeSource) -> Result<Option<i64>, E>,
    ) -> Result<Option<i64>, E> {
        let units = self.number(&self.sources, &mut number_in)?.or(self.default);
        let times = self.number(&self.times, &mut number_in)?.unwrap_or(1);
        // A request cannot ask for less than one.
        Ok(units.map(|units| units.saturating_mul(times.max(1))))
    }

    fn number<E>(
        &self,
        sources: &[AttributeSource],
        number_in: &mut impl FnMut(&AttributeSource) -> Result<Option<i64>, E>,
    ) -> Result<Option<i64>, E> {
        let mut found: Option<i64> = None;
        for source in sources {
            found = found.max(number_in(source)?);
            if found.is_some() && !self.is_largest {
                break;
            }
        }
        Ok(found)
    }
}

/// A part that a request must have, so that it can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredPart {
    /// Requests that have this part, and not as `false`, are concerned.
    pub when: AttributeSource,
    /// They must have this part, as `true`.
    pub part: AttributeSource,
}

impl RouteCost {
    /// The sum of the units of all terms, at most [`COST_MAX`]. `None` if a term has none.
    pub fn sum<E>(
        &self,
        mut units_of: impl FnMut(&RouteCostTerm) -> Result<Option<i64>, E>,
    ) -> Result<Option<i64>, E> {
        let mut sum: i64 = 0;
        for term in &self.terms {
            let Some(units) = units_of(term)? else { return Ok(None) };
            sum = sum.saturating_add(units).min(COST_MAX);
        }
        Ok(Some(sum))
    }
}

impl Route {
    /// Every part of the request that the route reads.
    pub fn sources(&self) -> impl Iterator<Item = &AttributeSource> {
        let terms = self.cost.iter().flat_map(|cost| &cost.terms);
        let parts = terms.filter_map(|term| match term {
            RouteCostTerm::Parts(parts) => Some(parts),
            _ => None,
        });
        let cost = parts.flat_map(|parts| parts.sources.iter().chain(&parts.times));
        let required = self.required.iter().flat_map(|required| [&required.when, &required.part]);
        let set = self.set.iter().map(|(_, source)| source);
        set.chain(&self.reference).chain(cost).chain(required)
    }

    /// Whether a field of the JSON body is read, so that a proxy must have the body before it
    /// checks the request.
    pub fn reads_body(&self) -> bool {
        self.sources().any(|source| matches!(source, AttributeSource::Body(_)))
    }

    /// Whether a claim is read, so that the token of a request must be verified.
    pub fn reads_claims(&self) -> bool {
        self.sources().any(|source| matches!(source, AttributeSource::Claim(_)))
    }

    /// Whether the cost depends on the length of the body.
    pub fn reads_body_length(&self) -> bool {
        let mut terms = self.cost.iter().flat_map(|cost| &cost.terms);
        terms.any(|term| matches!(term, RouteCostTerm::BytesPerUnit(_)))
    }

    /// Whether anything of a request is read for its check, apart from method and path.
    pub fn reads_request(&self) -> bool {
        self.sources().next().is_some() || self.cost.is_some()
    }
}

impl RouteGate {
    /// Every gate that a request can get.
    pub fn targets(&self) -> impl Iterator<Item = &Name> {
        let (fixed, map) = match self {
            Self::Fixed(gate) => (Some(gate), None),
            Self::Map(map) => (None, Some(map)),
        };
        let mapped = map.into_iter().flat_map(|map| map.gates.values().chain(&map.absent));
        let default = map.and_then(|map| map.default.as_ref());
        fixed.into_iter().chain(mapped).chain(default)
    }
}

/// As the catalog writes it: the gate, or the attribute that chooses one.
impl fmt::Display for RouteGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(gate) => f.write_str(gate),
            Self::Map(map) => write!(f, "by {}", map.by),
        }
    }
}

/// As the catalog writes it, such as `header:x-tenant-id`.
impl fmt::Display for AttributeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Segment(number) => write!(f, "path:{number}"),
            Self::Body(path) => write!(f, "body:{path}"),
            Self::Claim(name) => write!(f, "jwt:{name}"),
            Self::Certificate(field) => {
                let word = CertificateField::WORDS.iter().find(|(_, own)| own == field);
                write!(f, "certificate:{}", word.map_or("", |(word, _)| word))
            }
            Self::Literal(text) => write!(f, "const:{text}"),
        }
    }
}
