//! Endpoints of the blocklist, the allowlist and facts. A key that is bound to a namespace sees and
//! changes only those of its own.

use super::{
    AFTER, DRY_RUN, LIMIT, ONLY_NAMESPACE, PATH_ERRORS, QUERY_ERRORS, RECORDS_ERRORS, TEXT_ERRORS,
    VALUE_ERRORS,
};
use crate::http::endpoint::{
    Endpoint, EndpointDocs, OperationTag, RequestBody, ResponseSpec, Rights, Role, ok_json,
    one_or_many, schema_of,
};
use crate::http::endpoints::admin::{facts, lists};

/// Errors of a key that names another namespace than its own.
/// Errors of the namespace of an entry or a fact.
const SCOPE_ERRORS: &[&str] = &["unknown-namespace", "namespace-bound-key"];
const ENTRY_ERRORS: &[&str] =
    &["bad-entry", "bad-range", "bad-duration", "bad-instant", "list-too-long", "too-many-entries"];

const PAGE_RESPONSES: &[ResponseSpec] = &[ok_json(schema_of::<lists::ListPage>)];
const ADDED_RESPONSES: &[ResponseSpec] = &[ok_json(schema_of::<lists::AddedEntries>)];
const REMOVED_RESPONSES: &[ResponseSpec] = &[ok_json(schema_of::<lists::RemovedEntry>)];

/// Lists the entries of a list.
const fn page_docs(name: &'static str, summary: &'static str) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::BlocksAndLists,
        summary,
        description: "Entries of the catalog are counted, not listed: only the catalog changes \
                      them.",
        query: &[ONLY_NAMESPACE, AFTER, LIMIT],
        responses: PAGE_RESPONSES,
        error_codes: &[QUERY_ERRORS, RECORDS_ERRORS, SCOPE_ERRORS],
    }
}

/// Adds entries to a list.
const fn add_docs(name: &'static str, summary: &'static str) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::BlocksAndLists,
        summary,
        description: "All or none, and effective at once. An entry about the same range or value \
                      in the same namespace is replaced. `errors` names every invalid entry of a \
                      list.",
        query: &[DRY_RUN],
        responses: ADDED_RESPONSES,
        error_codes: &[
            QUERY_ERRORS,
            VALUE_ERRORS,
            RECORDS_ERRORS,
            TEXT_ERRORS,
            SCOPE_ERRORS,
            ENTRY_ERRORS,
        ],
    }
}

/// Removes an entry of a list.
const fn remove_docs(name: &'static str, summary: &'static str) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::BlocksAndLists,
        summary,
        description: "",
        query: &[],
        responses: REMOVED_RESPONSES,
        error_codes: &[
            VALUE_ERRORS,
            RECORDS_ERRORS,
            TEXT_ERRORS,
            SCOPE_ERRORS,
            &["bad-entry", "bad-range", "unknown-entry"],
        ],
    }
}

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/v1/blocklist",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(lists::list_blocklist(request)),
        body: RequestBody::Empty,
        docs: page_docs("blocklist", "List the entries of the blocklist"),
    },
    Endpoint {
        method: "POST",
        path: "/v1/blocklist",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(lists::add_to_blocklist(request)),
        body: RequestBody::Required(one_or_many::<lists::NewEntry, { catraca::app::ENTRIES_MAX }>),
        docs: add_docs("blocklist_add", "Put entries on the blocklist"),
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/blocklist",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(lists::remove_from_blocklist(request)),
        body: RequestBody::Required(schema_of::<lists::EntryToRemove>),
        docs: remove_docs("blocklist_remove", "Take an entry off the blocklist"),
    },
    Endpoint {
        method: "GET",
        path: "/v1/allowlist",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(lists::list_allowlist(request)),
        body: RequestBody::Empty,
        docs: page_docs("allowlist", "List the entries of the allowlist"),
    },
    Endpoint {
        method: "POST",
        path: "/v1/allowlist",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(lists::add_to_allowlist(request)),
        body: RequestBody::Required(one_or_many::<lists::NewEntry, { catraca::app::ENTRIES_MAX }>),
        docs: add_docs("allowlist_add", "Put entries on the allowlist"),
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/allowlist",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(lists::remove_from_allowlist(request)),
        body: RequestBody::Required(schema_of::<lists::EntryToRemove>),
        docs: remove_docs("allowlist_remove", "Take an entry off the allowlist"),
    },
    Endpoint {
        method: "GET",
        path: "/v1/facts",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(facts::list(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "stated_facts",
            tag: OperationTag::Catalog,
            summary: "List the facts that operators set",
            description: "By attribute, value, name and namespace. A private value is shown as its \
                          pseudonym. Facts of the catalog are not listed: only the catalog \
                          changes them.",
            query: &[ONLY_NAMESPACE, AFTER, LIMIT],
            responses: &[ok_json(schema_of::<facts::FactPage>)],
            error_codes: &[QUERY_ERRORS, RECORDS_ERRORS, SCOPE_ERRORS],
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/facts/{attribute}/{value}",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(facts::show(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "facts",
            tag: OperationTag::Catalog,
            summary: "Show the facts about a value",
            description: "Those of all namespaces, of operators and of the catalog; with a \
                          namespace, those that operators set in it.",
            query: &[ONLY_NAMESPACE],
            responses: &[ok_json(schema_of::<facts::ValueFacts>)],
            error_codes: &[
                PATH_ERRORS,
                QUERY_ERRORS,
                VALUE_ERRORS,
                SCOPE_ERRORS,
                &["unknown-value"],
            ],
        },
    },
    Endpoint {
        method: "PUT",
        path: "/v1/facts/{attribute}/{value}",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(facts::set(request)),
        body: RequestBody::Required(schema_of::<facts::NewFacts>),
        docs: EndpointDocs {
            name: "state_facts",
            tag: OperationTag::Catalog,
            summary: "Set facts about a value",
            description: "Other facts stay as they are. Facts set here take precedence over the \
                          catalog's, and those of a namespace over those of all.",
            query: &[],
            responses: &[ok_json(schema_of::<facts::ChangedFacts>)],
            error_codes: &[
                PATH_ERRORS,
                VALUE_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                SCOPE_ERRORS,
                &["bad-facts", "too-many-facts"],
            ],
        },
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/facts/{attribute}/{value}",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(facts::delete(request)),
        body: RequestBody::Optional(schema_of::<facts::FactsToForget>),
        docs: EndpointDocs {
            name: "forget_facts",
            tag: OperationTag::Catalog,
            summary: "Delete the facts that operators set about a value",
            description: "The catalog's own facts stay.",
            query: &[],
            responses: &[ok_json(schema_of::<facts::ChangedFacts>)],
            error_codes: &[
                PATH_ERRORS,
                VALUE_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                SCOPE_ERRORS,
                &["unknown-value"],
            ],
        },
    },
];
