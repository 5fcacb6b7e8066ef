//! The reverse proxy over real sockets: clients written by hand on one side, and upstreams written
//! by hand on the other.

mod answer_rules;
mod forwarding;
mod h2;
mod helpers;
mod llm_budget;
mod metrics;
mod outcomes;
mod sender_headers;
mod shutdown;
mod smuggling;
mod streams;
mod tls;
mod upgrades;
mod upstream_failures;
