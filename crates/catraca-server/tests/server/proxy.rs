//! The reverse proxy over real sockets: clients written by hand on one side, and upstreams written
//! by hand on the other.

mod abandoned_requests;
mod alpn;
mod answer_rules;
mod checkout_preset;
mod dict;
mod floods;
mod forwarding;
mod grpc;
mod grpc_service;
mod h2;
mod h2_bodies;
mod h2_helpers;
mod h2_smuggling;
mod h2_upstreams;
mod helpers;
mod hold;
mod kills;
mod llm_budget;
mod llm_preset;
mod metrics;
mod namespaces;
mod outcomes;
mod preset_catalogs;
mod request_limits;
mod sender_headers;
mod shutdown;
mod smuggling;
mod streams;
mod strict_back_end;
mod tls;
mod upgrades;
mod upstream_failures;
