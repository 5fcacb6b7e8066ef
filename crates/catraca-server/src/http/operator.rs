//! Who calls: the name that stands in the audit.
//!
//! Must not take a caller's word for it: it is the name of their key.

use std::sync::Arc;

use axum::http::Request;

use super::auth::Caller;

/// Whoever sent a request, as the guard found them; nobody gets past it unnamed.
pub fn operator<B>(request: &Request<B>) -> Option<&Arc<Caller>> {
    request.extensions().get()
}
