//! The acts of operators: modes, facts, blocks, lists, reset.

use super::super::super::desk::{Motive, blocks, facts, lists, policies, reload, reset};
use super::super::{Asked, Entry, Given, Group, Kind, Takes, json, of};
use super::{AFTER, COUNTED, KEPT, LIMIT, PATH, QUERY, SUBJECT, VALUE, one_or_many};

const TEXT: &[&str] = &["text-too-long", "bad-text"];
const ENTRY: &[&str] = &["bad-entry", "bad-range", "bad-duration", "bad-instant", "list-too-long"];

const PAGE: &[Given] = &[json(of::<lists::ListPage>)];
const ADDED: &[Given] = &[json(of::<lists::NewEntries>)];
const REMOVED: &[Given] = &[json(of::<lists::RemovedEntry>)];

const fn page(request: &'static str, name: &'static str, summary: &'static str) -> Entry {
    Entry {
        request,
        name,
        group: Group::Operate,
        summary,
        about: "Entries of the catalog are counted and not listed: only the catalog changes them.",
        query: &[AFTER, LIMIT],
        takes: Takes::Nothing,
        gives: PAGE,
        problems: &[QUERY, KEPT],
    }
}

const fn add(request: &'static str, name: &'static str, summary: &'static str) -> Entry {
    Entry {
        request,
        name,
        group: Group::Operate,
        summary,
        about: "All or none, and in force at once. An entry about the same range or value is \
                replaced. `errors` names every wrong entry of a list.",
        query: &[Asked {
            name: "dry_run",
            about: "With `true` nothing is done: the answer says what would be, or what is wrong.",
            kind: Kind::Words(&["true", "false"]),
        }],
        takes: Takes::Body(one_or_many::<lists::NewEntry, { lists::ENTRIES_MAX }>),
        gives: ADDED,
        problems: &[QUERY, VALUE, KEPT, TEXT, ENTRY],
    }
}

const fn remove(request: &'static str, name: &'static str, summary: &'static str) -> Entry {
    Entry {
        request,
        name,
        group: Group::Operate,
        summary,
        about: "",
        query: &[],
        takes: Takes::Body(of::<lists::GoneEntry>),
        gives: REMOVED,
        problems: &[VALUE, KEPT, TEXT, &["bad-entry", "bad-range", "unknown-entry"]],
    }
}

pub const CALLS: &[Entry] = &[
    Entry {
        request: "PUT /v1/policies/{name}/mode",
        name: "set_mode",
        group: Group::Catalog,
        summary: "Override a policy's mode at once",
        about: "The kill switch: `off` or `shadow` lets everybody pass, `enforce` decides again, \
                null gives the policy back to the catalog.",
        query: &[],
        takes: Takes::Body(of::<policies::NewMode>),
        gives: &[json(of::<policies::ChangedMode>)],
        problems: &[PATH, KEPT, TEXT, &["bad-mode", "unknown-policy"]],
    },
    Entry {
        request: "POST /v1/config/reload",
        name: "reload",
        group: Group::Catalog,
        summary: "Read the catalog's files again",
        about: "A wrong catalog is answered with all of its mistakes, and the old one stays.",
        query: &[],
        takes: Takes::Maybe(of::<Motive>),
        gives: &[json(of::<reload::NewCatalog>)],
        problems: &[QUERY, TEXT, &["no-catalog-file", "bad-catalog"]],
    },
    Entry {
        request: "GET /v1/facts",
        name: "stated_facts",
        group: Group::Catalog,
        summary: "List what was stated",
        about: "By attribute, value and name. A private value is shown as its pseudonym. Facts of \
                the catalog are not listed: only the catalog changes them.",
        query: &[AFTER, LIMIT],
        takes: Takes::Nothing,
        gives: &[json(of::<facts::FactPage>)],
        problems: &[QUERY, KEPT],
    },
    Entry {
        request: "GET /v1/facts/{attribute}/{value}",
        name: "facts",
        group: Group::Catalog,
        summary: "Show what is known of a value",
        about: "",
        query: &[],
        takes: Takes::Nothing,
        gives: &[json(of::<facts::Known>)],
        problems: &[PATH, QUERY, VALUE, &["unknown-value"]],
    },
    Entry {
        request: "PUT /v1/facts/{attribute}/{value}",
        name: "state_facts",
        group: Group::Catalog,
        summary: "State facts about a value",
        about: "What is not named stays as it is. Stated facts come before the catalog's.",
        query: &[],
        takes: Takes::Body(of::<facts::NewFacts>),
        gives: &[json(of::<facts::ChangedFacts>)],
        problems: &[PATH, VALUE, KEPT, TEXT, &["bad-facts"]],
    },
    Entry {
        request: "DELETE /v1/facts/{attribute}/{value}",
        name: "forget_facts",
        group: Group::Catalog,
        summary: "Forget what was stated about a value",
        about: "The catalog's own facts stand.",
        query: &[],
        takes: Takes::Maybe(of::<Motive>),
        gives: &[json(of::<facts::ChangedFacts>)],
        problems: &[PATH, VALUE, KEPT, TEXT, &["unknown-value"]],
    },
    Entry {
        request: "GET /v1/blocks",
        name: "blocks",
        group: Group::Operate,
        summary: "List who is blocked, until when and why",
        about: "A private value is found by its real value and shown as its pseudonym.",
        query: &[
            Asked { name: "namespace", about: "Only of this one.", kind: Kind::Text("default") },
            Asked { name: "policy", about: "Only of this one.", kind: Kind::Text("login") },
            Asked { name: "attribute", about: "With `value`: only of whom.", kind: Kind::Text("") },
            Asked { name: "value", about: "With `attribute`.", kind: Kind::Text("") },
            Asked {
                name: "origin",
                about: "Only what was started by this.",
                kind: Kind::Words(&["excess", "ban", "operator", "upstream"]),
            },
            AFTER,
            LIMIT,
        ],
        takes: Takes::Nothing,
        gives: &[json(of::<blocks::BlockPage>)],
        problems: &[QUERY, VALUE, KEPT],
    },
    Entry {
        request: "POST /v1/blocks",
        name: "block",
        group: Group::Operate,
        summary: "Block somebody",
        about: "A block that stands until later stays as it is; `changed` says so.",
        query: &[],
        takes: Takes::Body(of::<blocks::NewBlock>),
        gives: &[json(of::<blocks::NewlyBlocked>)],
        problems: &[
            SUBJECT,
            COUNTED,
            KEPT,
            TEXT,
            &["bad-duration", "duration-required", "unknown-policy"],
        ],
    },
    Entry {
        request: "GET /v1/blocks/{id}",
        name: "block_of_id",
        group: Group::Operate,
        summary: "Show a block with its history",
        about: "Also one that has ended.",
        query: &[],
        takes: Takes::Nothing,
        gives: &[json(of::<blocks::BlockHistory>)],
        problems: &[PATH, QUERY, KEPT, &["unknown-block"]],
    },
    Entry {
        request: "DELETE /v1/blocks/{id}",
        name: "release",
        group: Group::Operate,
        summary: "Release somebody",
        about: "The block ends now. What was counted stays counted, and so does the level of an \
                escalating block.",
        query: &[],
        takes: Takes::Maybe(of::<Motive>),
        gives: &[json(of::<blocks::Released>)],
        problems: &[PATH, KEPT, TEXT, &["unknown-block", "not-blocked", "store-failed"]],
    },
    page("GET /v1/blocklist", "blocklist", "List the entries of the blocklist"),
    add("POST /v1/blocklist", "blocklist_add", "Put entries on the blocklist"),
    remove("DELETE /v1/blocklist", "blocklist_remove", "Take an entry off the blocklist"),
    page("GET /v1/allowlist", "allowlist", "List the entries of the allowlist"),
    add("POST /v1/allowlist", "allowlist_add", "Put entries on the allowlist"),
    remove("DELETE /v1/allowlist", "allowlist_remove", "Take an entry off the allowlist"),
    Entry {
        request: "POST /v1/reset",
        name: "reset",
        group: Group::Operate,
        summary: "Forget one key of a policy, or the policy for everybody",
        about: "Its counters, block, level and ban counts: the subject starts anew. Without a \
                `subject`, and with the policy's name in `confirm`, everybody does, in every \
                namespace; that cannot be undone, and asks for a `why`.",
        query: &[],
        takes: Takes::Body(of::<reset::Forgotten>),
        gives: &[json(of::<reset::WasReset>)],
        problems: &[SUBJECT, COUNTED, KEPT, TEXT, &["confirm-required", "unknown-policy"]],
    },
];
