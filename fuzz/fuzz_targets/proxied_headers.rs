//! The headers that an upstream gets.

#![no_main]
// The module of the server has more than the target calls.
#![allow(dead_code)]

#[path = "../../crates/catraca-server/src/proxy/forwarded_headers.rs"]
mod forwarded_headers;
#[path = "../checks/proxied_headers.rs"]
mod proxied_headers;

use catraca::core::address::Address;
use forwarded_headers::{Sender, SenderCache};
use hyper::http::HeaderMap;
use proxied_headers::{CLIENT, PEER, SCHEME};

fn prepare(headers: &mut HeaderMap, is_trusted_proxy: bool) {
    let sender = Sender {
        client: Address::from_ip(CLIENT.parse().expect("an address")),
        peer: PEER.parse().expect("an address"),
        is_trusted_proxy,
        scheme: SCHEME,
    };
    forwarded_headers::remove_hop_by_hop(headers);
    forwarded_headers::join_cookies(headers);
    forwarded_headers::set_sender(headers, &sender, &SenderCache::default());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxied_headers::check(data, prepare));
