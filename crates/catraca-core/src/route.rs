//! Routes: finds the gate of an HTTP request by its method and path, and reads attributes from it.
//!
//! The first route that matches, in the order of the file, wins.

mod cookie;
mod gate_choice;
mod parameter_name;
mod path;

use std::borrow::Cow;

use crate::catalog::{AttributeSource, Catalog, Route};

pub use cookie::{AmbiguousCookie, cookie_once, cookie_values};
pub use parameter_name::is_read_as;
pub(crate) use path::fold_case;
pub use path::{AmbiguousPath, CanonicalPath, decode};

/// The gate of a request that matches no route. It is not declared, so the catalog's `default`
/// policy decides.
pub const UNROUTED: &str = "unrouted";

/// The parts of an HTTP request that routes match.
#[derive(Clone, Copy, Debug)]
pub struct RouteRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, with or without a query.
    pub target: &'a str,
}

impl Catalog {
    /// The first route that matches a request, with the request's canonical path.
    pub fn route(
        &self,
        request: &RouteRequest<'_>,
    ) -> Result<Option<(&Route, CanonicalPath)>, AmbiguousPath> {
        self.first_route(request, |_| true)
    }

    /// The first route of one gate that matches a request, for callers that have chosen the gate
    /// themselves and need only what a route reads. If no route of the gate reads anything, the
    /// path is not parsed, and an ambiguous path is not an error.
    pub fn route_of_gate(
        &self,
        gate: &str,
        request: &RouteRequest<'_>,
    ) -> Result<Option<(&Route, CanonicalPath)>, AmbiguousPath> {
        let of_gate = |route: &Route| route.gate.targets().any(|target| **target == *gate);
        if !self.routes.iter().any(|route| of_gate(route) && route.reads_request()) {
            return Ok(None);
        }
        self.first_route(request, of_gate)
    }

    fn first_route(
        &self,
        request: &RouteRequest<'_>,
        is_wanted: impl Fn(&Route) -> bool,
    ) -> Result<Option<(&Route, CanonicalPath)>, AmbiguousPath> {
        let path = CanonicalPath::canonical(request.target, &self.network)?;
        let matches = |route: &&Route| is_wanted(route) && route.matches(request.method, &path);
        Ok(self.routes.iter().find(matches).map(|route| (route, path)))
    }
}

impl Route {
    /// Method and path as text, such as `POST /api/orders/*`; `*` for every method.
    pub fn pattern(&self) -> String {
        let method = self.method.as_deref().unwrap_or("*");
        format!("{method} /{}", self.path.join("/"))
    }

    fn matches(&self, method: &str, path: &CanonicalPath) -> bool {
        // Servers handle HEAD like GET, so a route for GET must limit both.
        let method =
            if method.eq_ignore_ascii_case("HEAD") { ["HEAD", "GET"] } else { [method; 2] };
        let is_same = |own: &str| method.iter().any(|method| own.eq_ignore_ascii_case(method));
        self.method.as_deref().is_none_or(is_same) && path_matches(&self.path, &path.segments)
    }
}

fn path_matches(pattern: &[String], segments: &[String]) -> bool {
    match (pattern, segments) {
        ([rest], _) if rest == "**" => true,
        ([], []) => true,
        ([first, pattern @ ..], [segment, segments @ ..]) => {
            (first == "*" || first == segment) && path_matches(pattern, segments)
        }
        _ => false,
    }
}

/// Reads an attribute's value from the head of a request, for tools that have no more of it;
/// `header` and `query` look up a name. Of two cookies with the same name, the first is read.
pub fn attribute_value(
    pick: &AttributeSource,
    path: &CanonicalPath,
    header: impl FnOnce(&str) -> Option<String>,
    query: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    match pick {
        AttributeSource::Header(name) => header(name),
        AttributeSource::Cookie(name) => {
            let line = header("cookie")?;
            cookie_values(&line, name).next().map(Cow::into_owned)
        }
        AttributeSource::Query(name) => query(name),
        // Segments are counted from one.
        AttributeSource::Segment(number) => path.segments.get(number.checked_sub(1)?).cloned(),
        AttributeSource::Literal(text) => Some(text.clone()),
        AttributeSource::Body(_) | AttributeSource::Claim(_) | AttributeSource::Certificate(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_one_segment_or_the_rest() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        assert!(path_matches(&path("api/*/x"), &path("api/7/x")));
        assert!(!path_matches(&path("api/*/x"), &path("api/7/8/x")));
        assert!(path_matches(&path("api/**"), &path("api/7/8")));
        assert!(path_matches(&path("api/**"), &path("api")));
        assert!(!path_matches(&path("api"), &path("api/7")));
    }

    const CATALOG: &str = "
        [policy.site]\nby = ['ip']\nwindow = '1 per 1s'
        [policy.login]\nby = ['ip']\nwindow = '1 per 1s'
        [[route]]\nmatch = '/login'\ngate = 'site'
        [[route]]\nmatch = 'POST /login'\ngate = 'login'\nset = { tenant = 'query:t' }
    ";

    #[test]
    fn only_the_routes_of_a_named_gate_are_tried() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let request = RouteRequest { method: "POST", target: "/login?t=1" };
        let gate =
            |found: Option<(&Route, CanonicalPath)>| found.map(|(route, _)| route.gate.to_string());
        assert_eq!(gate(catalog.route(&request).unwrap()), Some("site".to_owned()));
        let login = catalog.route_of_gate("login", &request).unwrap();
        assert_eq!(gate(login), Some("login".to_owned()));
        assert_eq!(gate(catalog.route_of_gate("other", &request).unwrap()), None);
    }

    #[test]
    fn an_ambiguous_path_matters_where_attributes_are_read_from_the_request() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let request = RouteRequest { method: "POST", target: "/x%2flogin" };
        let ambiguous = Err(AmbiguousPath::EncodedSlash);
        assert_eq!(catalog.route(&request), ambiguous);
        assert_eq!(catalog.route_of_gate("login", &request), ambiguous);
        assert_eq!(catalog.route_of_gate("site", &request), Ok(None));
    }

    #[test]
    fn a_route_for_get_also_takes_head() {
        let catalog = Catalog::parse(&CATALOG.replace("'/login'", "'GET /login'")).unwrap();
        let gate = |method| catalog.route(&RouteRequest { method, target: "/login" }).unwrap();
        assert!(gate("HEAD").is_some() && gate("GET").is_some() && gate("PUT").is_none());
    }

    #[test]
    fn letter_case_matters_unless_the_catalog_says_otherwise() {
        let request = RouteRequest { method: "GET", target: "/LOGIN" };
        assert_eq!(Catalog::parse(CATALOG).unwrap().route(&request), Ok(None));
        let text = CATALOG.replace("'/login'", "'/Login'");
        let insensitive = format!("{text}\n[network]\npath_case = 'insensitive'\n");
        let catalog = Catalog::parse(&insensitive).unwrap();
        assert!(catalog.route(&request).is_ok_and(|found| found.is_some()));
    }
}
