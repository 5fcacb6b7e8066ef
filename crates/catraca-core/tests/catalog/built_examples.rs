//! The catalogs of the guide's page, built in code.

#![expect(clippy::disallowed_types, reason = "users of the library have the types of std")]

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use catraca_core::catalog::build::{
    AttributeBuilder, BanBuilder, CatalogBuilder, Escalation, GateMapBuilder, ListEntryBuilder,
    LockKindBuilder, PartsCostBuilder, PolicyBuilder, RouteBuilder, TierBuilder, WatchBuilder,
};
use catraca_core::catalog::{AttributeKind, Catalog, EncodedSlash, Language, PathCase};
use catraca_core::lock::{Durability, VersionPolicy};
use catraca_core::policy::{Mode, OnFailure, OnMissing};
use catraca_core::price::Price;
use catraca_core::rate::Percent;
use catraca_core::time::Time;

const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

pub fn policy(name: &str) -> PolicyBuilder {
    PolicyBuilder::new(name)
}

fn percent(text: &str) -> Percent {
    text.parse().unwrap()
}

/// The same catalogs, built in code.
pub fn built_examples() -> BTreeMap<&'static str, CatalogBuilder> {
    let new = Catalog::builder;
    BTreeMap::from([
        ("who.toml", who()),
        ("how-much.toml", how_much()),
        ("cost.toml", cost()),
        ("then.toml", consequences()),
        ("conditions.toml", conditions()),
        ("tiers.toml", tiers()),
        (
            "gates.toml",
            new()
                .policy(policy("global").by(["ip"]).window(600, MINUTE))
                .policy(policy("login").by(["account"]).window(5, 15 * MINUTE))
                .gate("login", ["global", "login"]),
        ),
        (
            "routes.toml",
            new().policy(policy("orders").by(["tenant"]).window(100, MINUTE)).route(
                RouteBuilder::new("POST /api/{version}/orders/**", "orders")
                    .set("tenant", "header:x-tenant-id")
                    .set("version", "path:2")
                    .set("channel", "const:web"),
            ),
        ),
        ("models.toml", models()),
        ("lookup.toml", lookup()),
        ("known.toml", known()),
        ("lists.toml", lists()),
        (
            "network.toml",
            new()
                .ipv6_prefix(56)
                .trusted_proxies(["10.0.0.0/8", "192.0.2.1"])
                .path_case(PathCase::Insensitive)
                .encoded_slash(EncodedSlash::Literal),
        ),
        (
            "settle.toml",
            new().body_bytes_max(262_144).policy(
                policy("api")
                    .by(["tenant"])
                    .ban(BanBuilder::when("body_truncated || body.reject_id == 5", 10 * MINUTE)),
            ),
        ),
        (
            "shop.toml",
            new()
                .default_policy("anything")
                .language(Language::Portuguese)
                .policy(policy("anything").by(["ip"]).window(60, MINUTE))
                .policy(policy("login").by(["ip"]).window(10, 15 * MINUTE).block(30 * MINUTE)),
        ),
    ])
}

fn who() -> CatalogBuilder {
    Catalog::builder()
        .policy(policy("address").by(["ip"]).window(60, MINUTE))
        .policy(
            policy("token")
                .group("api")
                .by(["tenant", "token|ip"])
                .tier(TierBuilder::when("plan", ["gold"]).window(600, MINUTE))
                .otherwise("address"),
        )
        .policy(
            policy("checkout")
                .each(["customer", "session"])
                .window(5, MINUTE)
                .on_missing(OnMissing::Skip),
        )
        .fact("token", "abc123", "plan", "gold")
}

fn how_much() -> CatalogBuilder {
    Catalog::builder()
        .policy(
            policy("search")
                .by(["ip"])
                .window(600, MINUTE)
                .window(100, SECOND)
                .low_water(percent("20%")),
        )
        .policy(
            policy("lookup")
                .by(["participant"])
                .bucket(50_000, 25_000, MINUTE)
                .margin(percent("90%")),
        )
        .policy(
            policy("reports").by(["tenant"]).fixed_window(5, HOUR).align_to_clock().count_denied(),
        )
        .policy(policy("exports").by(["tenant"]).inflight(20).hold(10 * MINUTE))
}

fn cost() -> CatalogBuilder {
    let prices = [
        ("200", Price::Units(1)),
        ("404", Price::Units(20)),
        ("429", Price::Drain),
        ("5xx", Price::Units(0)),
        ("none", Price::Units(0)),
        ("default", Price::Units(1)),
    ];
    Catalog::builder()
        .policy(
            policy("lookup")
                .by(["payer"])
                .bucket(100, 2, MINUTE)
                .cost_by_status(prices)
                .reserve(1)
                .debt()
                .hold(30 * SECOND)
                .credit("payment", 1, ["200"])
                .remember(7 * DAY),
        )
        .policy(
            policy("tokens")
                .by(["tenant"])
                .bucket(100_000, 100_000, MINUTE)
                .cost_reported()
                .reserve(500),
        )
}

fn consequences() -> CatalogBuilder {
    let escalation = Escalation { first: 30 * MINUTE, factor: 2, max: 24 * HOUR, forget: 7 * DAY };
    let rejected = BanBuilder::when("body.reject_id == 5", 10 * MINUTE)
        .reason("rejected")
        .status(400)
        .message("Wait {retry_after_s} s.");
    Catalog::builder()
        .policy(
            policy("login")
                .by(["ip"])
                .window(10, 15 * MINUTE)
                .block(escalation)
                .message("Too many attempts. Try again in {retry_after}."),
        )
        .policy(
            policy("payment")
                .each(["customer", "session"])
                .ban_storm(50, MINUTE)
                .ban(rejected)
                .ban(BanBuilder::when("status == 403", HOUR).after(3, 10 * MINUTE)),
        )
        .policy(policy("lookups").by(["payer"]).mode(Mode::Shadow).watch(
            WatchBuilder::share(["404"], ["200", "404"]).ban_above(
                percent("20%"),
                100,
                24 * HOUR,
                HOUR,
            ),
        ))
}

fn conditions() -> CatalogBuilder {
    let abuse = "status == 429 && headers['x-reason'].startsWith('abuse')";
    let errors = "has(body.errors) && body.errors.exists(e, e.code in [5, 7])";
    let free = "status == 403 && subject.plan == 'free'";
    Catalog::builder().policy(
        policy("api")
            .by(["tenant"])
            .ban(BanBuilder::when(abuse, HOUR))
            .ban(BanBuilder::when(errors, 10 * MINUTE))
            .ban(BanBuilder::when(free, 5 * MINUTE).after(3, MINUTE)),
    )
}

fn tiers() -> CatalogBuilder {
    let regional = TierBuilder::when("plan", ["gold", "silver"])
        .and_when("region", ["br"])
        .window(600, MINUTE)
        .block(5 * MINUTE);
    Catalog::builder()
        .policy(
            policy("api")
                .by(["customer"])
                .window(60, MINUTE)
                .tier(regional)
                .tier(TierBuilder::when("plan", ["gold"]).window(300, MINUTE)),
        )
        .attribute(AttributeBuilder::new("customer").facts(["plan"]))
}

fn models() -> CatalogBuilder {
    let day = 24 * HOUR;
    Catalog::builder()
        .policy(
            policy("user_tokens")
                .by(["user"])
                .bucket(200_000, 200_000, day)
                .cost_from_body(["body.usage.total_tokens"])
                .reserve(2_000)
                .debt(),
        )
        .policy(
            policy("team_money")
                .by(["team"])
                .bucket(50_000_000_000, 50_000_000_000, 30 * day)
                .cost_from_named_fields([
                    ("input", "body.usage.prompt_tokens"),
                    ("output", "body.usage.completion_tokens"),
                ])
                .cost_field_weights("model", "small", [("input", 150), ("output", 600)])
                .cost_field_weights("model", "large", [("input", 2_500), ("output", 10_000)])
                .reserve(30_000_000)
                .debt(),
        )
        .gate("chat", ["user_tokens", "team_money"])
        .route(
            RouteBuilder::new("POST /v1/chat/completions", "chat")
                .set("user", "header:x-user")
                .set("team", "header:x-team")
                .set("model", "body:model")
                .cost_from_or("body:max_completion_tokens|body:max_tokens", 4_096)
                .cost_by_bytes(4)
                .upstream("http://127.0.0.1:9000"),
        )
}

fn lookup() -> CatalogBuilder {
    let bucket = |name| policy(name).by(["participant"]).bucket(100, 2, MINUTE);
    let gates = GateMapBuilder::by("key_type")
        .gate("EMAIL", "contacts")
        .gate("PHONE", "contacts")
        .default_gate("numbers");
    Catalog::builder()
        .attribute(AttributeBuilder::new("key").kind(AttributeKind::PixKey).private())
        .policy(bucket("contacts"))
        .policy(bucket("numbers"))
        .route(
            RouteBuilder::with_gate_map("GET /api/v2/entries/{key}", gates)
                .set("key", "path:4")
                .set("participant", "header:pi-requestingparticipant")
                .reference("header:pi-endtoendid")
                .upstream("https://dict-1.internal:16422")
                .upstream("https://dict-2.internal:16422"),
        )
        .route(
            RouteBuilder::new("POST /api/v2/keys/check", "numbers")
                .set("participant", "header:pi-requestingparticipant")
                .cost_by_bytes(128)
                .upstream("https://dict-1.internal:16422"),
        )
}

fn known() -> CatalogBuilder {
    let company =
        TierBuilder::when("person", ["PJ"]).and_when("category", ["A"]).bucket(1_000, 20, MINUTE);
    Catalog::builder()
        .attribute(AttributeBuilder::new("payer").kind(AttributeKind::CheckedCpfCnpj).private())
        .attribute(
            AttributeBuilder::new("participant").kind(AttributeKind::Caseless).facts(["category"]),
        )
        .fact("participant", "12345678", "category", "A")
        .policy(policy("lookup").by(["participant", "payer"]).bucket(100, 2, MINUTE).tier(company))
}

fn new_year() -> SystemTime {
    Time::parse_rfc3339("2027-01-01T00:00:00Z").unwrap().into()
}

fn lists() -> CatalogBuilder {
    Catalog::builder()
        .allow(ListEntryBuilder::range("192.0.2.0/24").reason("our own monitoring"))
        .deny(ListEntryBuilder::value("email", "someone@example.com").until(new_year()))
}

fn policy_with_answers() -> PolicyBuilder {
    let rejected = BanBuilder::when("status == 403", HOUR);
    policy("answers").by(["tenant"]).ban(rejected.answer_status(422).answer_message("Rejected."))
}

/// A policy whose tier gives units back.
fn policy_with_credit() -> PolicyBuilder {
    let tier = TierBuilder::when("tenant", ["t"])
        .bucket(1_000, 1, MINUTE)
        .cost_by_status([("200", 1), ("default", 0)])
        .credit("payment", 1, ["200"]);
    // Keys may be computed.
    let status = |code: u16| code.to_string();
    policy("paid")
        .by(["tenant"])
        .bucket(100, 1, MINUTE)
        .cost_by_status([(status(200), 2), ("default".to_owned(), 0)])
        .tier(tier)
}

fn payment_kind() -> LockKindBuilder {
    LockKindBuilder::new("payment")
        .ttl(40 * SECOND)
        .ttl_max(10 * MINUTE)
        .hold_max(2 * HOUR)
        .version_policy(VersionPolicy::Monotonic)
        .failover_grace(false)
}

/// A catalog with the fields that no example has.
pub fn other_fields() -> CatalogBuilder {
    let cost = PartsCostBuilder::from_parts("body:a|body:b").or(9).largest().times("body:n");
    let tier =
        TierBuilder::when("tenant", ["t"]).fixed_window(9, HOUR).cost_by_status([("default", 0)]);
    let more_uploads = TierBuilder::when("tenant", ["t"]).inflight(3);
    Catalog::builder()
        .default_policy("a")
        .refuse_undeclared_gates()
        .shard_by("tenant")
        .lock_durability(Durability::Fsync)
        .lock_replicas(1)
        .slot_max(48 * HOUR)
        .lock_wait_max(10 * SECOND)
        .lock_kind(payment_kind())
        .policy(
            policy("a")
                .by(["tenant"])
                .fixed_window(5, Duration::from_millis(1_500))
                .block(Duration::MAX)
                .cost(2)
                .on_failure(OnFailure::Closed)
                .on_missing(OnMissing::Deny)
                .message("\"x\" \\ \t {retry_after}")
                .tier(tier),
        )
        .policy(policy("uploads").by(["tenant"]).inflight(1).tier(more_uploads))
        .policy(policy_with_credit())
        .policy(
            policy("tokens")
                .by(["tenant"])
                .bucket(100, 1, MINUTE)
                .cost_from_body(["body.a|body.b", "body.c"])
                .cost_weights("kind", [("x", 2), ("default", 1)]),
        )
        .policy(policy_with_answers())
        .allow(ListEntryBuilder::value("tenant", "t").namespace("shop").until(new_year()))
        .deny(
            ListEntryBuilder::range("192.0.2.0/24").namespace("shop").reason("${X} is no variable"),
        )
        .attribute(AttributeBuilder::new("key").kind(AttributeKind::PixKey))
        .route(
            RouteBuilder::new("/", "a")
                .upstream("http://127.0.0.1:9000")
                .upstream("http://127.0.0.1:9001")
                .reference("cookie:id")
                .cost_from("body:max_tokens"),
        )
        .route(
            RouteBuilder::with_gate_map(
                "/entries/*",
                GateMapBuilder::by("key_type")
                    .gate("CPF", "a")
                    .gate("EVP", "a")
                    .absent("a")
                    .default_gate("a"),
            )
            .set("key", "path:2")
            .upstream("http://127.0.0.1:9000")
            .cost_by_bytes(4),
        )
        .route(RouteBuilder::new("/list", "a").cost(10).without_lists())
        .route(
            RouteBuilder::new("/chat", "a")
                .cost_of_parts(cost)
                .require("body:stream", "body:stream_options.include_usage")
                .upstream("http://127.0.0.1:9000"),
        )
}
