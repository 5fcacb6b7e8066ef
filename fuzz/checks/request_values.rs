//! What a route reads from a request is within bounds, or the request is refused.

use std::sync::LazyLock;

use catraca::core::catalog::Catalog;
use catraca::core::request::COST_MAX;
use catraca::core::route::RouteRequest;
use catraca::http_request::{RequestBody, RequestParts};
use http::{HeaderMap, HeaderName, HeaderValue};

const CATALOG: &str = "
    [attribute.key]\nkind = 'pix_key'
    [policy.a]\nby = ['ip']\nwindow = '9 per 1s'
    [[route]]\nmatch = 'GET /entries/*'\nref = 'header:id'\nset = { key = 'path:2' }
    gate = { by = 'key_type', map = { CPF = 'a', EMAIL = 'a' }, absent = 'a' }
    [[route]]\nmatch = 'POST /**'\ngate = 'a'\nupstream = 'http://a'
    cost = [{ from = 'body:max_tokens|query:n', default = 9 }, { bytes_per_unit = 4 }]
    set = { user = 'cookie:user', model = 'body:model', page = 'query:page' }
";

static PARSED: LazyLock<Option<Catalog>> = LazyLock::new(|| Catalog::parse(CATALOG).ok());

/// The input is a request: a line with method and target, headers, an empty line, the body.
pub fn check(data: &[u8]) {
    let catalog = PARSED.as_ref().expect("the catalog is valid");
    let head_end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let (head, body) = data.split_at(head_end);
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut lines = head.lines();
    let Some((method, target)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.append(name, value);
        }
    }
    let Ok(Some((route, path))) = catalog.route(&RouteRequest { method, target }) else { return };
    let body = RequestBody::Whole(body.get(2..).unwrap_or_default());
    let Ok(values) = RequestParts::new(target, &headers).with_body(body).read(route, &path) else {
        return;
    };
    assert!(values.cost.is_none_or(|cost| (0..=COST_MAX).contains(&cost)), "{values:?}");
    if let Ok(gate) = values.gate(catalog, route) {
        assert_eq!(&**gate, "a");
    }
}
