//! Why a request cannot be checked as its route says.

use catraca_core::refusal::Refusal;

use super::AmbiguousValue;

/// Why a request cannot be checked. Such a request never passes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A value that must be sent once is ambiguous.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousValue),
    /// The front end does not read bodies.
    #[error(
        "the route reads the body of the request, which only Catraca's reverse proxy has; send \
         the request through the proxy, or let the route read another part"
    )]
    BodyUnread,
    /// The body is too long to be read.
    #[error(
        "the route reads the body of the request, which is too long; send a shorter one, or one \
         with a Content-Length if only its length counts, or raise `[proxy] body_bytes_max`"
    )]
    BodyTooLarge,
    /// The body is not JSON, or has a key twice.
    #[error("the route reads the body of the request, which is not JSON with unique keys")]
    BodyInvalid,
    /// The headers say that the body is something else than JSON in UTF-8.
    #[error(
        "the route reads the body of the request as JSON, and its Content-Type or Content-Encoding \
         says that it is something else; send plain `application/json`"
    )]
    BodyType,
    /// A part is missing without which the request cannot be counted.
    #[error("`{part}` of the request must be `true`, because the request has `{when}`")]
    PartMissing {
        /// The part, as the route names it.
        part: String,
        /// The part that makes it necessary.
        when: String,
    },
    /// A value has another type than the route needs.
    #[error("`{source_text}` of the request is not {wanted}")]
    BadValue {
        /// The part of the request, as the route names it.
        source_text: String,
        /// What the route needs.
        wanted: &'static str,
    },
    /// A value is invalid, or no gate is chosen for it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl RequestError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ambiguous(_) => "ambiguous-request",
            Self::BodyUnread => "request-body-unread",
            Self::BodyTooLarge => "request-body-too-large",
            Self::BodyInvalid => "request-body-invalid",
            Self::BodyType => "request-body-type",
            Self::PartMissing { .. } => "request-part-missing",
            Self::BadValue { .. } => "bad-request-value",
            Self::Refused(refusal) => refusal.code(),
        }
    }

    /// The status of the response: 413 for a body that is too large, 415 for one of another type,
    /// else 400.
    pub const fn status(&self) -> http::StatusCode {
        match self {
            Self::BodyTooLarge => http::StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyType => http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
            _ => http::StatusCode::BAD_REQUEST,
        }
    }
}
