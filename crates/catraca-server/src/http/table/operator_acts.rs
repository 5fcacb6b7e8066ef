//! Endpoints of operators that change something: modes, blocks, reload and reset.

use super::{
    AFTER, COUNTED_ERRORS, DRY_RUN, LIMIT, NAMESPACE_ERRORS, ONLY_NAMESPACE, PATH_ERRORS,
    QUERY_ERRORS, RECORDS_ERRORS, SUBJECT_ERRORS, TEXT_ERRORS, VALUE_ERRORS,
};
use crate::http::endpoint::{
    Endpoint, EndpointDocs, OperationTag, ParameterType, QueryParameter, RequestBody, Rights, Role,
    ok_json, schema_of,
};
use crate::http::endpoints::admin::{AuditReason, blocks, inspect, policies, reload, reset};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "PUT",
        path: "/v1/policies/{name}/mode",
        rights: Rights::catalog(Role::Admin),
        handler: |request| Box::pin(policies::set_mode(request)),
        body: RequestBody::Required(schema_of::<policies::NewMode>),
        docs: EndpointDocs {
            name: "set_mode",
            tag: OperationTag::Catalog,
            summary: "Override a policy's mode at once",
            description: "The kill switch: `off` or `shadow` lets every request pass, `enforce` \
                          denies again, null returns to the mode of the catalog.",
            query: &[],
            responses: &[ok_json(schema_of::<policies::ChangedMode>)],
            error_codes: &[
                PATH_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                &["bad-mode", "unknown-policy"],
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/config/reload",
        rights: Rights::catalog(Role::Admin),
        handler: |request| Box::pin(reload::reload(request)),
        body: RequestBody::Optional(schema_of::<AuditReason>),
        docs: EndpointDocs {
            name: "reload",
            tag: OperationTag::Catalog,
            summary: "Read the catalog's files again",
            description: "An invalid catalog is refused with all of its errors, and the old one \
                          stays in use. The response counts the blocks in force that the new \
                          catalog orphans: they stay listed, and deny no request.",
            query: &[DRY_RUN],
            responses: &[ok_json(schema_of::<reload::ReloadBody>)],
            error_codes: &[QUERY_ERRORS, TEXT_ERRORS, &["no-catalog-file", "bad-catalog"]],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/inspect",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(inspect::inspect(request)),
        body: RequestBody::Required(schema_of::<inspect::InspectRequest>),
        docs: EndpointDocs {
            name: "inspect",
            tag: OperationTag::BlocksAndLists,
            summary: "Show all there is to know of a subject",
            description: "The policies that apply with what is left of them, the list that \
                          decides, facts, active blocks and the last ten that have ended. Changes \
                          nothing.",
            query: &[],
            responses: &[ok_json(schema_of::<inspect::InspectionBody<'static>>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                VALUE_ERRORS,
                RECORDS_ERRORS,
                NAMESPACE_ERRORS,
            ],
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/blocks",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(blocks::list(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "blocks",
            tag: OperationTag::BlocksAndLists,
            summary: "List who is blocked, until when and why",
            description: "A private value is found by its real value and shown as its pseudonym. \
                          A block is listed as soon as a decision of this node has named it. \
                          Active blocks that one ban, one check or one operator's act made are one \
                          entry, with its members.",
            query: &[
                QueryParameter {
                    name: "state",
                    description: "`ended` and `all` list blocks that have ended too, while the \
                                  history has them. The default is `active`.",
                    kind: ParameterType::OneOf(&["active", "ended", "all"]),
                },
                ONLY_NAMESPACE,
                QueryParameter {
                    name: "policy",
                    description: "Only blocks of this one.",
                    kind: ParameterType::Text("login"),
                },
                QueryParameter {
                    name: "attribute",
                    description: "With `value`: only blocks of subjects with this attribute.",
                    kind: ParameterType::Text(""),
                },
                QueryParameter {
                    name: "value",
                    description: "With `attribute`.",
                    kind: ParameterType::Text(""),
                },
                QueryParameter {
                    name: "origin",
                    description: "Only blocks of this origin.",
                    kind: ParameterType::OneOf(&["excess", "ban", "operator", "upstream"]),
                },
                QueryParameter {
                    name: "reason",
                    description: "Only blocks with exactly this reason.",
                    kind: ParameterType::Text(""),
                },
                AFTER,
                LIMIT,
            ],
            responses: &[ok_json(schema_of::<blocks::BlockPage>)],
            error_codes: &[
                QUERY_ERRORS,
                VALUE_ERRORS,
                RECORDS_ERRORS,
                &["unknown-namespace", "namespace-bound-key"],
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/blocks",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(blocks::create(request)),
        body: RequestBody::Required(schema_of::<blocks::NewBlock>),
        docs: EndpointDocs {
            name: "block",
            tag: OperationTag::BlocksAndLists,
            summary: "Block a subject",
            description: "A block with a later end stays as it is; then `changed` is false.",
            query: &[],
            responses: &[ok_json(schema_of::<blocks::CreatedBlocks>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                NAMESPACE_ERRORS,
                &["bad-duration", "duration-required", "unknown-policy"],
            ],
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/blocks/{id}",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(blocks::show(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "block_of_id",
            tag: OperationTag::BlocksAndLists,
            summary: "Show a block with its history",
            description: "Also one that has ended.",
            query: &[],
            responses: &[ok_json(schema_of::<blocks::BlockHistory>)],
            error_codes: &[PATH_ERRORS, QUERY_ERRORS, RECORDS_ERRORS, &["unknown-block"]],
        },
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/blocks/{id}",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(blocks::release(request)),
        body: RequestBody::Optional(schema_of::<blocks::ReleaseRequest>),
        docs: EndpointDocs {
            name: "release",
            tag: OperationTag::BlocksAndLists,
            summary: "Release a blocked subject",
            description: "The block ends now. Counters keep their values, and so does the level \
                          of an escalating block. One ban may block several identities, such as \
                          a customer and a session: all its blocks end, unless `only` is true. The \
                          id of a block that has ended releases nothing, even if the subject is \
                          blocked again.",
            query: &[],
            responses: &[ok_json(schema_of::<blocks::ReleasedBlock>)],
            error_codes: &[
                PATH_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                &["unknown-block", "not-blocked", "store-failed", "reason-required"],
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/reset",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(reset::reset(request)),
        body: RequestBody::Required(schema_of::<reset::ResetRequest>),
        docs: EndpointDocs {
            name: "reset",
            tag: OperationTag::BlocksAndLists,
            summary: "Reset one key of a policy, or the whole policy",
            description: "Resets counters, block, level and ban counts of the subject. Without a \
                          `subject`, and with the policy's name in `confirm`, those of all \
                          subjects in every namespace; that cannot be undone, and needs a `why`.",
            query: &[],
            responses: &[ok_json(schema_of::<reset::ResetResult>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                RECORDS_ERRORS,
                TEXT_ERRORS,
                NAMESPACE_ERRORS,
                &["confirm-required", "unknown-policy", "namespace-bound-key"],
            ],
        },
    },
];
