//! `catraca explain`.

use crate::cli::simulate::DICT;
use crate::cli::test_dir::TestDir;

const SHOP: &str = r#"
default = "anything"

[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "15m"

[policy.anything]
by     = ["ip"]
fixed  = "60 per 1m"

[policy.token]
by        = ["token"]
tier      = [ { when = { token = "abc123" }, window = "100 per 1s" } ]
otherwise = "login"

[policy.quiet]
by     = ["ip"]
window = ["600 per 1m", "100 per 1s"]
mode   = "shadow"

[policy.gone]
by     = ["ip"]
window = "1 per 1s"
mode   = "off"

[gate.front]
policies = ["token", "quiet", "gone"]

[[blocklist]]
range  = "203.0.113.0/24"
reason = "abuse"
"#;

/// covers: 001-15
#[test]
fn a_lookup_meets_two_buckets_each_by_its_tier() {
    let dir = TestDir::with_file("dict.toml", DICT);
    let args = ["explain", "-c", "dict.toml", "lookup", "participant=12345678"];
    let person = dir.run(&[&args[..], &["payer=11144477735"]].concat());
    assert_eq!((person.code, person.err.as_str()), (Some(0), ""));
    let pseudonym = pseudonym(&person.out);
    let expected = format!(
        "\
Gate lookup checks 2 policies: all must allow, or none is charged.

1. user_antiscan
   counts   participant = 12345678, payer = {pseudonym}
   tier     none of 1 matches: its own terms
   limit    bucket of 100, refill 2 per 1m (starts full)
   takes    1 at the check; at settle 200: 1, 404: 20, else 0
   debt     a price may push it below zero
   credit   1 back on payment, after 200

2. participant_antiscan
   counts   participant = 12345678
   tier     1 of 2, as category = A
   limit    bucket of 50000, refill 25000 per 1m (starts full)
   takes    1 at the check; at settle 200: 1, 404: 3, else 0
   debt     a price may push it below zero
   credit   1 back on payment, after 200
"
    );
    assert_eq!(person.out, expected);
    let company = dir.run(&[&args[..], &["payer=12ABC34501DE35"]].concat());
    assert!(company.out.contains("tier     1 of 1, as person = PJ"), "{}", company.out);
    assert!(company.out.contains("bucket of 1000, refill 20 per 1m"), "{}", company.out);
    assert!(company.out.contains("2 back on payment, after 200"), "{}", company.out);
}

fn pseudonym(text: &str) -> &str {
    let at = text.find('~').unwrap_or_else(|| panic!("{text}"));
    text[at..].split_whitespace().next().unwrap()
}

/// With a fixed secret, a pseudonym could be reversed by trying all taxpayer numbers.
#[test]
fn pseudonyms_are_of_one_run_unless_a_file_gives_the_secret() {
    let dir = TestDir::with_file("dict.toml", DICT);
    let args = ["explain", "-c", "dict.toml", "lookup", "participant=1", "payer=111.444.777-35"];
    let output = dir.run(&args);
    assert!(!output.out.contains("777"), "{}", output.out);
    assert_ne!(pseudonym(&output.out), pseudonym(&dir.run(&args).out));

    dir.write("secret", "0123456789abcdef".repeat(4) + "\n");
    let stable = [&args[..], &["--secret-file", "secret"]].concat();
    let output = dir.run(&stable);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(output.out, dir.run(&stable).out);
    for (text, why) in [("short\n", "contain 64 hexadecimal digits"), ("", "must contain 64")] {
        dir.write("secret", text);
        let output = dir.run(&stable);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""));
        assert!(output.err.contains(why) && !output.err.contains("short"), "{}", output.err);
    }
}

#[test]
fn a_cost_that_never_passes_says_so() {
    let dir = TestDir::with_file("shop.toml", SHOP);
    let args = ["explain", "-c", "shop.toml", "login", "ip=198.51.100.7", "--cost"];
    let output = dir.run(&[&args[..], &["99"]].concat()).out;
    assert!(
        output.contains("takes    99, and there are never more than 3: too_costly\n"),
        "{output}"
    );
    let json = dir.run(&[&args[..], &["99", "-o", "json"]].concat()).json().pop().unwrap();
    assert_eq!(json["policies"][0]["too_costly"], true);
    let json = dir.run(&[&args[..], &["3", "-o", "json"]].concat()).json().pop().unwrap();
    assert_eq!(json["policies"][0]["too_costly"], false);
}

#[test]
fn what_stands_in_what_only_watches_and_what_is_off_are_told_apart() {
    let dir = TestDir::with_file("shop.toml", SHOP);
    let output =
        dir.run(&["explain", "-c", "shop.toml", "front", "ip=198.51.100.7", "token=guess"]);
    let expected = "\
Gate front checks 2 policies: all must allow, or none is charged.

1. login
   counts   ip = 198.51.100.7
   because  token has no key or no tier for this caller and names login instead
   limit    window 3 per 1m (never more in any such span)
   takes    1 at the check (the request's cost, or 1)
   block    15m, when over the limit

2. quiet
   counts   ip = 198.51.100.7
   limit    window 600 per 1m and 100 per 1s (never more in any such span; all apply)
   takes    1 at the check (the request's cost, or 1)
   mode     shadow: evaluated and counted, never decides

Not checked: gone, because its mode is off.
";
    assert_eq!(output.out, expected);
}

#[test]
fn an_unlisted_gate_and_a_list_say_so() {
    let dir = TestDir::with_file("shop.toml", SHOP);
    let unlisted = dir.run(&["explain", "-c", "shop.toml", "other", "ip=198.51.100.7"]).out;
    assert!(unlisted.starts_with("Gate other is not in the catalog: the default policy"));
    assert!(unlisted.contains("counts   gate = other, ip = 198.51.100.7"), "{unlisted}");
    let listed = dir.run(&["explain", "-c", "shop.toml", "login", "ip=203.0.113.9"]).out;
    assert!(listed.starts_with("The caller is blocklisted (abuse): that decides alone.\n"));
}

#[test]
fn json_tells_the_same_to_programs() {
    let dir = TestDir::with_file("shop.toml", SHOP);
    let args = ["explain", "-c", "shop.toml", "front", "ip=198.51.100.7", "token=abc123"];
    let output = dir.run(&[&args[..], &["--cost", "4", "-o", "json"]].concat());
    let explained = output.json().pop().unwrap();
    assert_eq!(explained["gate"], "front");
    assert_eq!((&explained["unlisted"], &explained["list"]), (&false.into(), &().into()));
    let token = &explained["policies"][0];
    assert_eq!((&token["policy"], &token["held"]), (&"token".into(), &4.into()));
    assert_eq!((&token["tier"]["number"], &token["instead_of"]), (&1.into(), &().into()));
    assert!(token["key"]["token"].as_str().is_some_and(|shown| shown.starts_with('~')));
    assert_eq!(token["limit"], "window 100 per 1s");
    assert_eq!(explained["policies"][1]["mode"], "shadow");
    assert_eq!(explained["absent"][0]["policy"], "gone");
}

#[test]
fn what_cannot_be_explained_exits_2_and_says_why() {
    let dir = TestDir::with_file("shop.toml", SHOP);
    let refused = |rest: &[&str]| dir.run(&[&["explain", "-c", "shop.toml"], rest].concat());
    for (rest, why) in [
        (&["login"][..], "policy `login` counts by `ip`, which is missing"),
        (&["login", "ip=localhost"], "attribute `ip`: "),
        (&["login", "ip=198.51.100.7", "ip=198.51.100.8"], "`ip` is given twice"),
        (&["login", "ip=198.51.100.7", "--cost", "-1"], "cost -1 is not between 0 and"),
        (&["login", "ip=198.51.100.7", "--cost", "9223372036854775807"], "cost 92233720368"),
    ] {
        let output = refused(rest);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{rest:?}");
        assert!(output.err.starts_with(&format!("catraca: {why}")), "{}", output.err);
    }
    dir.write("none.toml", SHOP.replace("default = \"anything\"", ""));
    let unknown = dir.run(&["explain", "-c", "none.toml", "logn", "ip=198.51.100.7"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("no gate or policy is called `logn`"), "{}", unknown.err);
    assert!(unknown.err.ends_with("did you mean `login`?\n"), "{}", unknown.err);
    let far = dir.run(&["explain", "-c", "none.toml", "newsletter", "ip=198.51.100.7"]);
    assert!(!far.err.contains("did you mean"), "{}", far.err);
    let unlisted = dir.run(&["explain", "-c", "shop.toml", "logn", "ip=198.51.100.7"]).out;
    assert!(unlisted.contains("the default policy applies. Did you mean login?\n"), "{unlisted}");
}

const ROUTES: &str = r#"
[policy.orders]
by     = ["tenant", "order"]
window = "3 per 1m"

[policy.search]
by     = ["q"]
window = "3 per 1m"

[[route]]
match = "POST /api/orders/*"
gate  = "orders"
set   = { tenant = "header:x-tenant", order = "path:3" }

[[route]]
match = "/search"
gate  = "search"
set   = { q = "query:q" }
"#;

#[test]
fn a_route_that_skips_the_lists_is_explained_without_them() {
    let catalog = "[policy.site]\nby = ['ip']\nwindow = '3 per 1m'\n[[blocklist]]\n\
                   range = '203.0.113.0/24'\n[[route]]\nmatch = '/limits-only'\ngate = 'site'\n\
                   lists = false\n[[route]]\nmatch = '/**'\ngate = 'site'\n";
    let dir = TestDir::with_file("shop.toml", catalog);
    let run = |path| dir.run(&["explain", "-c", "shop.toml", "GET", path, "ip=203.0.113.9"]).out;
    let skips = "It skips the allowlist and the blocklist.\n";
    let limits = run("/limits-only");
    let listed = run("/other");
    assert!(limits.contains(skips) && !limits.contains("blocklisted"), "{limits}");
    assert!(listed.contains("The caller is blocklisted: that decides alone."), "{listed}");
}

#[test]
fn a_request_is_explained_by_the_route_it_takes() {
    let dir = TestDir::with_file("shop.toml", ROUTES);
    let run = |words: &[&str]| dir.run(&[&["explain", "-c", "shop.toml"], words].concat());
    let order = run(&["POST", "/api//orders/7?x=1", "tenant=t1"]);
    assert_eq!((order.code, order.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = order.out.lines().take(3).collect();
    let route = "The route POST /api/orders/* matches this request.";
    assert_eq!(lines, [route, "It sets order=7.", "Gate orders checks one policy."]);
    assert!(order.out.contains("counts   tenant = t1, order = 7"), "{}", order.out);
    let search = run(&["GET", "/search?q=a%20b", "-o", "json"]);
    let search: serde_json::Value = serde_json::from_str(&search.out).unwrap();
    let route = serde_json::json!({ "match": "* /search", "set": [["q", "a b"]], "unset": [] });
    assert_eq!((&search["route"], &search["gate"]), (&route, &"search".into()));
    for (words, why) in [
        (&["POST", "/api/orders/7"][..], "tenant"),
        (&["POST", "/api/orders/7", "order=8", "tenant=t1"], "leave it out"),
        (&["GET", "/nowhere"], "no `[[route]]` matches GET /nowhere"),
        (&["orders", "tenant=t1", "/api"], "may follow the method"),
        (&["G E T", "/search"], "is not a method"),
        (&["orders", "tenant"], "tenant"),
    ] {
        let wrong = run(words);
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "{words:?}");
        assert!(wrong.err.contains(why), "{words:?}: {}", wrong.err);
    }
    let dir = TestDir::with_file("shop.toml", SHOP);
    let other = dir.run(&["explain", "-c", "shop.toml", "GET", "/x", "ip=198.51.100.7"]);
    assert!(other.out.starts_with("No route matches this request"), "{}{}", other.out, other.err);
    // Regression: the key named the gate `unrouted`, which is part of no stored key.
    assert!(other.out.contains("The request uses the counters of gate "), "{}", other.out);
    assert!(!other.out.contains("gate = unrouted"), "{}", other.out);
}

#[test]
fn a_tier_that_the_key_does_not_determine_is_counted_apart() {
    let catalog = r#"
[policy.site]
by     = ["ip"]
window = "10 per 1m"
tier   = [
  { when = { ip = "198.51.100.9" }, window = "20 per 1m" },
  { when = { method = "POST" }, window = "5 per 1m" },
  { when = { method = "PUT" }, cost = 2 },
]
"#;
    let dir = TestDir::with_file("site.toml", catalog);
    let explain = |ip: &str, method: &str, output: &str| {
        let subject = [format!("ip={ip}"), format!("method={method}")];
        dir.run(&["explain", "-c", "site.toml", "site", &subject[0], &subject[1], "-o", output])
    };
    let post = explain("198.51.100.7", "POST", "human").out;
    let line = "tier     2 of 3, as method = POST; counted apart from the other tiers\n";
    assert!(post.contains(line), "{post}");
    for (ip, method, own_counter) in [
        ("198.51.100.7", "POST", true),
        ("198.51.100.9", "POST", false),
        ("192.0.2.1", "PUT", false),
    ] {
        let json = explain(ip, method, "json").json().pop().unwrap();
        assert_eq!(json["policies"][0]["tier"]["own_counter"], own_counter, "{ip} {method}");
    }
}
