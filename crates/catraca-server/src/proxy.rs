//! The reverse proxy: checks a request, forwards it to an upstream of its route, and settles the
//! check with the outcome of the response.
//!
//! `connection` serves one connection with hyper and `handler` one request: `request_head` refuses
//! what is ambiguous, `admission` checks, `forward` rewrites heads, `upstream` keeps connections,
//! `upstream_h2` those of HTTP/2, `exchange` sends the request, `answer_body` passes the response
//! on while it arrives, and `pending_settle` settles, however the request ends.
//! `abandoned_requests` bounds those that go on without their client. No rule of a policy is here.

mod abandoned_requests;
mod admission;
mod answer_body;
mod answer_stream;
mod client_phase;
mod collected_body;
mod connection;
mod connection_pool;
mod exchange;
mod failure;
mod forward;
mod forwarded_headers;
mod forwarded_path;
mod forwarded_target;
mod front_end;
mod h2_connection;
mod h2_upload;
mod handler;
mod held_answer;
mod idle_timer;
mod pending_settle;
mod proxied_connection;
mod request_channel;
mod request_head;
mod request_limits;
mod request_trailers;
mod responses;
mod settle_call;
mod settle_deadline;
mod settle_watch;
mod shared_stream;
mod spoofed_headers;
mod stream_phase;
mod stream_pool;
mod tunnel;
mod upload_body;
mod upload_rate;
mod upstream;
mod upstream_connection;
mod upstream_h2;
mod upstream_protocol;
mod upstream_stream;
mod upstreams;

pub use front_end::ProxyFrontEnd;
