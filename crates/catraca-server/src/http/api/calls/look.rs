//! What operators look at: the catalog, totals, the audit, the live feed, and privacy.

use super::super::super::desk::{audit, config, policies, privacy, stats};
use super::super::{Asked, Entry, Given, Group, Kind, Takes, json, of};
use super::{AFTER, KEPT, LIMIT, PATH, QUERY, VALUE};

const FROM: Asked = Asked { name: "from", about: "A day ago unless given.", kind: Kind::Instant };
const TO: Asked = Asked { name: "to", about: "Now unless given.", kind: Kind::Instant };
const INSTANT: &[&str] = &["bad-instant"];

const fn read(
    request: &'static str,
    name: &'static str,
    group: Group,
    summary: &'static str,
    gives: &'static [Given],
    problems: &'static [&'static [&'static str]],
) -> Entry {
    let (about, query, takes) = ("", &[], Takes::Nothing);
    Entry { request, name, group, summary, about, query, takes, gives, problems }
}

const fn concerns(
    request: &'static str,
    name: &'static str,
    summary: &'static str,
    about: &'static str,
    gives: &'static [Given],
) -> Entry {
    Entry {
        request,
        name,
        group: Group::Privacy,
        summary,
        about,
        query: &[],
        takes: Takes::Body(of::<privacy::Concerned>),
        gives,
        problems: &[VALUE, KEPT, &["text-too-long", "bad-text"]],
    }
}

pub const CALLS: &[Entry] = &[
    read(
        "GET /v1/policies",
        "policies",
        Group::Catalog,
        "List the policies in force",
        &[json(of::<policies::Policies>)],
        &[QUERY],
    ),
    read(
        "GET /v1/policies/{name}",
        "policy",
        Group::Catalog,
        "Show one policy",
        &[json(of::<policies::PolicyOf>)],
        &[PATH, QUERY, &["unknown-policy"]],
    ),
    read(
        "GET /v1/config",
        "config",
        Group::Catalog,
        "Show the catalog in force",
        &[json(of::<config::Config>)],
        &[QUERY],
    ),
    Entry {
        about: "Whole minutes; the one that has begun is counted too. The totals count requests: a \
                check counts once, however many policies its gate has, and a peek does not count. \
                The rows count verdicts: a check counts once in each of its policies.",
        query: &[FROM, TO],
        ..read(
            "GET /v1/stats",
            "stats",
            Group::Look,
            "Count requests, and verdicts by policy",
            &[json(of::<stats::PolicyStats>)],
            &[QUERY, INSTANT, KEPT],
        )
    },
    Entry {
        query: &[FROM, LIMIT],
        ..read(
            "GET /v1/stats/top-blocked",
            "top_blocked",
            Group::Look,
            "Name who was blocked most often",
            &[json(of::<stats::MostBlocked>)],
            &[QUERY, INSTANT, KEPT],
        )
    },
    Entry {
        about: "An action is the gate that was asked.",
        query: &[FROM, TO],
        ..read(
            "GET /v1/stats/actions",
            "stats_actions",
            Group::Look,
            "Count requests by action",
            &[json(of::<stats::ActionStats>)],
            &[QUERY, INSTANT, KEPT],
        )
    },
    Entry {
        query: &[
            Asked { name: "by", about: "Only of this operator.", kind: Kind::Text("ana") },
            Asked { name: "act", about: "Only acts of this kind.", kind: Kind::Text("release") },
            AFTER,
            LIMIT,
        ],
        ..read(
            "GET /v1/audit",
            "audit",
            Group::Look,
            "List what operators did, the latest first",
            &[json(of::<audit::AuditPage>)],
            &[QUERY, KEPT],
        )
    },
    Entry {
        about: "Server-sent events: `denied`, `blocked`, `released`, `reset`, `owed`, `low_water`, \
                `storm` and `catalog`, each with its facts as JSON. Whoever reads too slowly is \
                told `missed` and how many, and sent away.",
        ..read(
            "GET /v1/events",
            "events",
            Group::Look,
            "Listen to what happens",
            &[Given {
                status: "200",
                about: "Events, until one side leaves.",
                body: Some(("text/event-stream", of::<String>)),
                headers: &[],
            }],
            &[QUERY, &["too-many-listeners"]],
        )
    },
    concerns(
        "POST /v1/privacy/export",
        "privacy_export",
        "Show everything that is kept of somebody",
        "By their real identifier, which is written nowhere.",
        &[json(of::<privacy::Exported>)],
    ),
    concerns(
        "POST /v1/privacy/erase",
        "privacy_erase",
        "Erase what is kept of somebody",
        "What still protects others stands until it ends, and the answer says what.",
        &[json(of::<privacy::Erased>)],
    ),
];
