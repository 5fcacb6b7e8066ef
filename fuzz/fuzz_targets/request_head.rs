//! The heads of proxied requests.

#![no_main]
// The module of the server has more than the target calls.
#![allow(dead_code)]

#[path = "../checks/request_head.rs"]
mod check;
#[path = "../../crates/catraca-server/src/proxy/request_head.rs"]
mod request_head;

/// What the module needs of the server's problems.
mod http_wire {
    pub mod problem {
        use hyper::http::Method;

        pub struct Problem {
            pub code: &'static str,
        }

        impl Problem {
            pub fn bad(code: &'static str, _detail: &str) -> Self {
                Self { code }
            }
        }

        pub fn wrong_method(_method: &Method, _what: &str) -> Problem {
            Problem { code: "method-not-allowed" }
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    check::check(
        data,
        |head| request_head::check(head, false).is_ok(),
        request_head::wanted_upgrade,
    );
});
