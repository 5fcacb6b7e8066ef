//! The hostile requests: each is sent by a client whose logins are used up.
//!
//! New tricks are added here, and every gateway gets them. Must not know a gateway.

use super::client::BYSTANDER;
use super::message::Request;

/// A hostile request, and what it is after.
pub(crate) struct Attack {
    pub(crate) aim: &'static str,
    pub(crate) name: String,
    pub(crate) request: Request,
}

/// All of them, in the order of the table.
pub(crate) fn all() -> Vec<Attack> {
    let mut attacks = Vec::new();
    attacks.extend(GATE_TARGETS.iter().map(|target| with_target("gate", target)));
    attacks.extend(gate_headers());
    attacks.extend(REPLACED.iter().map(|(method, target, name, value)| {
        with_header("gate", Request::new(method, target), name, value)
    }));
    attacks.extend(addresses());
    attacks.extend(SPELLINGS.iter().map(|target| with_target("spelling", target)));
    attacks
}

/// Targets that name a gate, or a path of Catraca's own API.
const GATE_TARGETS: [&str; 18] = [
    "/login?gate=site",
    "/login?GATE=site",
    "/login?g%61te=site",
    "/login?gate=site&gate=site",
    "/login?gate=login&gate=site",
    "/login?x=1&gate=site",
    "/login?x=1;gate=site",
    "/login?gate%3Dsite",
    "/login?gate[]=site",
    "/login;gate=site",
    "/login#?gate=site",
    "/login?#gate=site",
    "/login/../login?gate=site",
    "/v1/gates/site/authorize/../../../../login",
    "/../gates/site/authorize/../../../login",
    "/../../v1/gates/site/authorize/../../../../login",
    "/v1/gates/site/authorize",
    "/login/../x",
];

/// `/login` in other words. `/x/..;/login` is a servlet container's, `//x/login` a URL parser's.
const SPELLINGS: [&str; 44] = [
    "//login",
    "///login",
    "/./login",
    "/x/../login",
    "/../login",
    "/%6cogin",
    "/%6Cog%69n",
    "/%256cogin",
    "/login/",
    "/login//",
    "/login/.",
    "/login/x/..",
    "/login?",
    "/login#x",
    "/login;x=1",
    "/login;x=1/",
    "/login%3bx=1",
    "/;x=1/login",
    "/x/..;/login",
    "/login%2f",
    "/login%2F",
    "/%2flogin",
    "/x/..%2flogin",
    "/x/%2e%2e/login",
    "/%2e/login",
    "/\\login",
    "/x\\..\\login",
    "/x/..%5clogin",
    "/login%5c",
    "/login%00",
    "/login%00.png",
    "/login\u{0}",
    "/LOGIN",
    "/LoGiN",
    "http://site.example/login",
    "http://site.example//login?gate=site",
    "//x/login",
    "///x/login",
    "http://site.example//x/login",
    "/login//..",
    "/login/;x/..",
    "/login/..;/",
    "/login/..%3b/",
    "/login/../free",
];

/// Headers by which the application might serve another request than the one that was counted:
/// method and target, then header and value.
const REPLACED: [(&str, &str, &str, &str); 12] = [
    ("GET", "/free", "X-Original-URL", "/login"),
    ("GET", "/free", "X-Original-URI", "/login"),
    ("GET", "/free", "X-Rewrite-URL", "/login"),
    ("GET", "/free", "X-Forwarded-Uri", "/login"),
    ("GET", "/free", "X-Forwarded-Prefix", "/login"),
    ("GET", "/", "X-Forwarded-Prefix", "/login"),
    ("GET", "/orders", "X-HTTP-Method-Override", "POST"),
    ("GET", "/orders", "X-HTTP-Method", "POST"),
    ("GET", "/orders", "X-Method-Override", "POST"),
    ("GET", "/orders", "X-Original-Method", "POST"),
    ("GET", "/orders", "X-Forwarded-Method", "POST"),
    ("POST", "/orders", "X-HTTP-Method-Override", "GET"),
];

/// Headers of a request for a guarded page that describe another request.
fn gate_headers() -> Vec<Attack> {
    let login = |name: &str, value: &str| with_header("gate", Request::get("/login"), name, value);
    let orders = |name: &str| with_header("gate", Request::post("/orders", ""), name, "GET");
    let twice = Request::get("/login").header("X-Forwarded-Uri", "/free");
    vec![
        login("X-Forwarded-Uri", "/free"),
        login("X-Forwarded-Host", "free.example"),
        login("X-Forwarded-Prefix", "/free"),
        login("X-Original-URL", "/free"),
        login("X-Original-URI", "/free"),
        login("X-Rewrite-URL", "/free"),
        login("X_Forwarded_Uri", "/free"),
        login("X_Original_URI", "/free"),
        login("Forwarded", "host=free.example;proto=https"),
        login("Host", "127.0.0.1"),
        login("Catraca-Gate", "site"),
        login("Connection", "close, X-Forwarded-Uri"),
        login("Connection", "close, X-Forwarded-Method, X-Original-URI, X-Original-Method"),
        with_header("gate", twice, "X-Forwarded-Uri", "/login"),
        orders("X-Forwarded-Method"),
        orders("X-Original-Method"),
    ]
}

/// Headers that give another address. The bystander's own quota must survive them.
fn addresses() -> Vec<Attack> {
    let bystander = BYSTANDER.to_string();
    let login =
        |name: &str, value: &str| with_header("address", Request::get("/login"), name, value);
    let twice = Request::get("/login").header("X-Forwarded-For", &bystander);
    vec![
        login("X-Forwarded-For", &bystander),
        login("X-Forwarded-For", &format!("{bystander}, 127.0.0.1")),
        login("X-Forwarded-For", "127.0.0.1"),
        login("X-Forwarded-For", "unknown"),
        login("X_Forwarded_For", &bystander),
        with_header("address", twice, "X-Forwarded-For", "127.0.0.1"),
        login("Forwarded", &format!("for={bystander}")),
        login("X-Real-IP", &bystander),
        login("X-Client-IP", &bystander),
        login("True-Client-IP", &bystander),
        login("CF-Connecting-IP", &bystander),
        login("X-Envoy-External-Address", &bystander),
        login("Connection", "close, X-Forwarded-For"),
    ]
}

fn with_target(aim: &'static str, target: &str) -> Attack {
    let name = target.escape_default().to_string().replace("\\\\", "\\");
    Attack { aim, name, request: Request::get(target) }
}

fn with_header(aim: &'static str, request: Request, name: &str, value: &str) -> Attack {
    let earlier = if request.headers.is_empty() { "" } else { " (twice)" };
    let shown = format!("{} {} {name}: {value}{earlier}", request.method, request.target);
    Attack { aim, name: shown, request: request.header(name, value) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::reading;
    use super::*;

    #[test]
    fn nearly_all_attacks_are_after_a_guarded_page() {
        let attacks = all();
        let names: BTreeSet<&str> = attacks.iter().map(|attack| &*attack.name).collect();
        assert_eq!(names.len(), attacks.len(), "two attacks have one name");
        let harmless = attacks.iter().filter(|attack| !reading::is_guarded(&attack.request));
        let harmless: Vec<&str> = harmless.map(|attack| &*attack.name).collect();
        assert_eq!(harmless, ["/v1/gates/site/authorize"]);
    }
}
