//! Routes: which gate an HTTP request passes, and which attributes its route reads from it.
//!
//! Every front end that sees HTTP requests asks here. The first route that matches, in the order of
//! the file, decides. This module reads no bodies.

mod path;

use crate::catalog::{Catalog, Pick, Route};

pub(crate) use path::fold_case;
pub use path::{AmbiguousPath, Path, decode};

/// The gate of a request that no route matches: the policy that `default` names decides for it.
pub const UNROUTED: &str = "unrouted";

/// An HTTP request, as far as routes read it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, with or without a query.
    pub target: &'a str,
}

impl Catalog {
    /// The first route that matches a request, with the request's canonical path.
    pub fn route(&self, request: &Request<'_>) -> Result<Option<(&Route, Path)>, AmbiguousPath> {
        self.first_route(request, |_| true)
    }

    /// The first route of one gate that matches a request, for callers that have chosen the gate
    /// themselves and only want its attributes. Without attributes to read, the path is not read
    /// either, and an ambiguous one does not matter.
    pub fn route_of_gate(
        &self,
        gate: &str,
        request: &Request<'_>,
    ) -> Result<Option<(&Route, Path)>, AmbiguousPath> {
        let of_gate = |route: &Route| *route.gate == *gate;
        if !self.routes.iter().any(|route| of_gate(route) && !route.set.is_empty()) {
            return Ok(None);
        }
        self.first_route(request, of_gate)
    }

    fn first_route(
        &self,
        request: &Request<'_>,
        is_wanted: impl Fn(&Route) -> bool,
    ) -> Result<Option<(&Route, Path)>, AmbiguousPath> {
        let path = Path::canonical(request.target, &self.network)?;
        let matches = |route: &&Route| is_wanted(route) && route.matches(request.method, &path);
        Ok(self.routes.iter().find(matches).map(|route| (route, path)))
    }
}

impl Route {
    fn matches(&self, method: &str, path: &Path) -> bool {
        // Servers answer HEAD with the handler of GET, so a route for GET guards both.
        let method =
            if method.eq_ignore_ascii_case("HEAD") { ["HEAD", "GET"] } else { [method; 2] };
        let is_own = |own: &str| method.iter().any(|method| own.eq_ignore_ascii_case(method));
        self.method.as_deref().is_none_or(is_own) && fits(&self.path, &path.segments)
    }
}

fn fits(pattern: &[String], segments: &[String]) -> bool {
    match (pattern, segments) {
        ([rest], _) if rest == "**" => true,
        ([], []) => true,
        ([first, pattern @ ..], [segment, segments @ ..]) => {
            (first == "*" || first == segment) && fits(pattern, segments)
        }
        _ => false,
    }
}

/// An attribute's value in a routed request; `header` and `query` look a name up.
pub fn pick(
    pick: &Pick,
    path: &Path,
    header: impl FnOnce(&str) -> Option<String>,
    query: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    match pick {
        Pick::Header(name) => header(name),
        Pick::Query(name) => query(name),
        Pick::Segment(place) => path.segments.get(place.checked_sub(1)?).cloned(),
        Pick::Literal(text) => Some(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_one_segment_or_the_rest() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        assert!(fits(&path("api/*/x"), &path("api/7/x")));
        assert!(!fits(&path("api/*/x"), &path("api/7/8/x")));
        assert!(fits(&path("api/**"), &path("api/7/8")));
        assert!(fits(&path("api/**"), &path("api")));
        assert!(!fits(&path("api"), &path("api/7")));
    }

    const CATALOG: &str = "
        [policy.site]\nby = ['ip']\nwindow = '1 per 1s'
        [policy.login]\nby = ['ip']\nwindow = '1 per 1s'
        [[route]]\nmatch = '/login'\ngate = 'site'
        [[route]]\nmatch = 'POST /login'\ngate = 'login'\nset = { tenant = 'query:t' }
    ";

    #[test]
    fn the_routes_of_a_named_gate_are_the_only_ones_that_are_asked() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let request = Request { method: "POST", target: "/login?t=1" };
        let gate = |found: Option<(&Route, Path)>| found.map(|(route, _)| route.gate.to_string());
        assert_eq!(gate(catalog.route(&request).unwrap()), Some("site".to_owned()));
        let login = catalog.route_of_gate("login", &request).unwrap();
        assert_eq!(gate(login), Some("login".to_owned()));
        assert_eq!(gate(catalog.route_of_gate("other", &request).unwrap()), None);
    }

    #[test]
    fn an_ambiguous_path_matters_where_attributes_are_read_from_the_request() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let request = Request { method: "POST", target: "/x%2flogin" };
        let ambiguous = Err(AmbiguousPath::EncodedSlash);
        assert_eq!(catalog.route(&request), ambiguous);
        assert_eq!(catalog.route_of_gate("login", &request), ambiguous);
        assert_eq!(catalog.route_of_gate("site", &request), Ok(None));
    }

    #[test]
    fn a_route_for_get_also_takes_head() {
        let catalog = Catalog::parse(&CATALOG.replace("'/login'", "'GET /login'")).unwrap();
        let gate = |method| catalog.route(&Request { method, target: "/login" }).unwrap();
        assert!(gate("HEAD").is_some() && gate("GET").is_some() && gate("PUT").is_none());
    }

    #[test]
    fn letter_case_matters_unless_the_catalog_says_otherwise() {
        let request = Request { method: "GET", target: "/LOGIN" };
        assert_eq!(Catalog::parse(CATALOG).unwrap().route(&request), Ok(None));
        let text = CATALOG.replace("'/login'", "'/Login'");
        let insensitive = format!("{text}\n[network]\npath_case = 'insensitive'\n");
        let catalog = Catalog::parse(&insensitive).unwrap();
        assert!(catalog.route(&request).is_ok_and(|found| found.is_some()));
    }
}
