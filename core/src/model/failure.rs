//! What a failed request was, whether it may be sent again, and how long the server asks to wait.
//!
//! The list of what is retried is the one of the openmax reference: transport failures, 429 without an
//! exhausted quota, 500, 502, 503, 504, 529, and inside a stream a rate limit, an overload or a server fault.

use alloc::{format, string::String};

use super::http_date;
use crate::vocab::{Failure, FailureKind, Now};

/// Bytes of a provider's own words that are kept in a [`Failure`]'s text.
pub const MAX_ERROR_TEXT: usize = 600;

/// Statuses that another attempt may cure.
const RETRIED: [u16; 6] = [429, 500, 502, 503, 504, 529];

/// What a provider said about a failure; members it left out are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorFacts<'a> {
    /// The HTTP status, or the status that an error inside a stream names as its code.
    pub status: Option<u16>,
    /// `error.code`, when it is a word.
    pub code: &'a str,
    /// `error.type`.
    pub class: &'a str,
    /// `error.message`, or the whole error when it is a string.
    pub message: &'a str,
}

impl ErrorFacts<'_> {
    /// The failure of a request that was answered by an error status.
    pub(crate) fn of_status(&self, text: String) -> Failure {
        let kind = self.kind();
        let listed = self.status.is_some_and(|status| RETRIED.contains(&status));
        let retryable = listed && !matches!(kind, FailureKind::Billing | FailureKind::ContextFull);
        Failure {
            kind,
            status: self.status,
            retryable,
            text: text.into(),
        }
    }

    /// The failure of a reply whose status was good and that then reported an error.
    pub(crate) fn in_stream(&self, text: String) -> Failure {
        let kind = self.kind();
        let retryable = matches!(
            kind,
            FailureKind::RateLimit | FailureKind::Overloaded | FailureKind::Server
        );
        Failure {
            kind,
            status: self.status,
            retryable,
            text: text.into(),
        }
    }

    fn kind(&self) -> FailureKind {
        if self.is_billing() {
            FailureKind::Billing
        } else if self.is_context_full() {
            FailureKind::ContextFull
        } else {
            self.kind_by_status()
                .or_else(|| self.kind_by_class())
                .or_else(|| self.kind_by_message())
                .unwrap_or(FailureKind::Server)
        }
    }

    fn names(&self, words: &[&str]) -> bool {
        words
            .iter()
            .any(|word| holds(self.code, word) || holds(self.class, word))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| holds(self.message, phrase))
    }

    /// A used-up quota looks like a passing limit (429) and isn't one. Only the code and the type tell
    /// them apart: some providers speak of a quota in the message of every rate limit.
    fn is_billing(&self) -> bool {
        self.status == Some(402)
            || self.names(&[
                "insufficient_quota",
                "billing",
                "insufficient_balance",
                "insufficient_credit",
                "payment_required",
            ])
            || (!matches!(self.status, Some(429 | 500..))
                && self.says(&["credit balance is too low", "insufficient balance"]))
    }

    fn is_context_full(&self) -> bool {
        const NAMES: [&str; 4] = [
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size",
            "request_too_large",
        ];
        const PHRASES: [&str; 12] = [
            "prompt is too long",
            "input is too long",
            "maximum context length",
            "context length exceeded",
            "context_length_exceeded",
            "exceed context limit",
            "exceeds the context",
            "exceeds the available context",
            "exceed the context",
            "context window",
            "maximum prompt length",
            "maximum number of tokens allowed",
        ];
        self.status == Some(413)
            || self.names(&NAMES)
            || (matches!(self.status, None | Some(200..=299 | 400 | 422 | 500))
                && self.says(&PHRASES))
    }

    fn kind_by_status(&self) -> Option<FailureKind> {
        Some(match self.status? {
            401 | 403 => FailureKind::Auth,
            429 => FailureKind::RateLimit,
            529 => FailureKind::Overloaded,
            503 if self.names(&["overload"]) || self.says(&["overload"]) => FailureKind::Overloaded,
            500.. => FailureKind::Server,
            300..=499 => FailureKind::InvalidRequest,
            0..=299 => return None,
        })
    }

    fn kind_by_class(&self) -> Option<FailureKind> {
        for (kind, words) in [
            (
                FailureKind::RateLimit,
                &[
                    "rate_limit",
                    "ratelimit",
                    "too_many_requests",
                    "throttl",
                    "resource_exhausted",
                ][..],
            ),
            (
                FailureKind::Overloaded,
                &["overload", "capacity", "unavailable"],
            ),
            (
                FailureKind::Auth,
                &[
                    "authentication",
                    "permission",
                    "unauthorized",
                    "forbidden",
                    "invalid_api_key",
                ],
            ),
            (
                FailureKind::Server,
                &[
                    "server_error",
                    "api_error",
                    "internal",
                    "timeout",
                    "bad_gateway",
                ],
            ),
            (
                FailureKind::InvalidRequest,
                &[
                    "invalid",
                    "bad_request",
                    "badrequest",
                    "not_found",
                    "unsupported",
                ],
            ),
        ] {
            if self.names(words) {
                return Some(kind);
            }
        }
        None
    }

    fn kind_by_message(&self) -> Option<FailureKind> {
        if self.says(&["rate limit", "too many requests"]) {
            Some(FailureKind::RateLimit)
        } else if self.says(&["overload", "at capacity"]) {
            Some(FailureKind::Overloaded)
        } else {
            None
        }
    }
}

/// Whether `text` holds `word`, which is lower case, in any case.
fn holds(text: &str, word: &str) -> bool {
    text.as_bytes()
        .windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// The wait that a `Retry-After` header asks for, in microseconds.
///
/// Whole seconds, or a date, which is measured against the wall clock. A number too large to hold is a
/// very long wait, not a missing one. What is neither, or a date that has passed, counts as no header.
pub fn retry_after_us(header: &str, now: Now) -> Option<u64> {
    let header = header.trim_matches([' ', '\t']);
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(
            header
                .parse::<u64>()
                .map_or(u64::MAX, |seconds| seconds.saturating_mul(1_000_000)),
        );
    }
    let due_ms = http_date::parse(header, now.unix_ms / 1_000)?.saturating_mul(1_000);
    let wait_ms = due_ms.checked_sub(now.unix_ms).filter(|&wait| wait > 0)?;
    Some(wait_ms.saturating_mul(1_000))
}

/// `text` whole, or its first [`MAX_ERROR_TEXT`] bytes, cut at a character and marked by an ellipsis.
pub(crate) fn clip(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_ERROR_TEXT {
        return text.into();
    }
    let mut end = MAX_ERROR_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The text of a failure that an error status reports: `backend returned <code> <reason>: <text>`.
pub(crate) fn status_text(status: u16, reason: &str, said: &str) -> String {
    let reason = if reason.is_empty() {
        usual_reason(status)
    } else {
        reason
    };
    let mut text = format!("backend returned {status}");
    for (mark, part) in [(" ", clip(reason)), (": ", clip(said))] {
        if !part.is_empty() {
            text.push_str(mark);
            text.push_str(&part);
        }
    }
    text
}

/// HTTP/2 carries no reason phrase; these are the registered ones of the statuses that providers use.
fn usual_reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Site Overloaded",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now {
        mono_us: 5,
        unix_ms: 1_700_000_000_500,
    };

    fn facts(status: u16) -> ErrorFacts<'static> {
        ErrorFacts {
            status: Some(status),
            ..ErrorFacts::default()
        }
    }

    #[test]
    fn e06_retry_after_values() {
        for (header, wait) in [
            ("7", Some(7_000_000)),
            (" 60\t", Some(60_000_000)),
            ("0", Some(0)),
            ("61", Some(61_000_000)),
            ("99999999999999999999", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("Tue, 14 Nov 2023 22:13:40 GMT", Some(19_500_000)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None),
            ("Tue, 14 Nov 2023 22:13:20 GMT", None),
            ("-3", None),
            ("+3", None),
            ("1.5", None),
            ("1000abc", None),
            ("Someday, soon", None),
            ("", None),
            ("  ", None),
        ] {
            assert_eq!(retry_after_us(header, NOW), wait, "{header:?}");
        }
    }

    #[test]
    fn om_statuses_that_are_retried_and_no_others() {
        for status in 300..=599 {
            let retried = facts(status).of_status(String::new()).retryable;
            assert_eq!(
                retried,
                [429, 500, 502, 503, 504, 529].contains(&status),
                "{status}"
            );
        }
    }

    #[test]
    fn kinds_of_statuses() {
        for (status, kind) in [
            (400, FailureKind::InvalidRequest),
            (401, FailureKind::Auth),
            (402, FailureKind::Billing),
            (403, FailureKind::Auth),
            (404, FailureKind::InvalidRequest),
            (413, FailureKind::ContextFull),
            (429, FailureKind::RateLimit),
            (500, FailureKind::Server),
            (503, FailureKind::Server),
            (529, FailureKind::Overloaded),
        ] {
            assert_eq!(
                facts(status).of_status(String::new()).kind,
                kind,
                "{status}"
            );
        }
        let busy = ErrorFacts {
            message: "The engine is currently Overloaded",
            ..facts(503)
        };
        assert_eq!(busy.of_status(String::new()).kind, FailureKind::Overloaded);
    }

    #[test]
    fn an_exhausted_quota_is_billing_and_never_retried() {
        for quota in [
            ErrorFacts {
                code: "insufficient_quota",
                ..facts(429)
            },
            ErrorFacts {
                class: "insufficient_quota",
                ..facts(429)
            },
        ] {
            let failure = quota.of_status(String::new());
            assert_eq!(
                (failure.kind, failure.retryable),
                (FailureKind::Billing, false)
            );
        }
        let passing = ErrorFacts {
            message: "You exceeded your current quota",
            ..facts(429)
        };
        assert_eq!(
            passing.of_status(String::new()).kind,
            FailureKind::RateLimit
        );
        let poor = ErrorFacts {
            message: "Your credit balance is too low",
            class: "invalid_request_error",
            ..facts(400)
        };
        assert_eq!(poor.of_status(String::new()).kind, FailureKind::Billing);
    }

    #[test]
    fn a_full_context_is_told_by_code_or_words() {
        for full in [
            ErrorFacts {
                code: "context_length_exceeded",
                ..facts(400)
            },
            ErrorFacts {
                message: "prompt is too long: 210000 tokens > 200000 maximum",
                class: "invalid_request_error",
                ..facts(400)
            },
            ErrorFacts {
                message: "This model's maximum context length is 8192 tokens.",
                ..facts(400)
            },
            ErrorFacts {
                message: "Prompt is too long",
                ..ErrorFacts::default()
            },
            ErrorFacts {
                class: "exceed_context_size_error",
                ..facts(500)
            },
        ] {
            let failure = full.of_status(String::new());
            assert_eq!(
                (failure.kind, failure.retryable),
                (FailureKind::ContextFull, false),
                "{full:?}"
            );
        }
        let limit = ErrorFacts {
            message: "context window tokens per minute",
            ..facts(429)
        };
        assert_eq!(limit.of_status(String::new()).kind, FailureKind::RateLimit);
    }

    #[test]
    fn errors_inside_a_stream() {
        for (said, kind, retryable) in [
            (
                ErrorFacts {
                    class: "overloaded_error",
                    ..ErrorFacts::default()
                },
                FailureKind::Overloaded,
                true,
            ),
            (
                ErrorFacts {
                    class: "rate_limit_error",
                    ..ErrorFacts::default()
                },
                FailureKind::RateLimit,
                true,
            ),
            (
                ErrorFacts {
                    class: "api_error",
                    ..ErrorFacts::default()
                },
                FailureKind::Server,
                true,
            ),
            (
                ErrorFacts {
                    code: "server_error",
                    ..ErrorFacts::default()
                },
                FailureKind::Server,
                true,
            ),
            (
                ErrorFacts {
                    message: "boom",
                    ..ErrorFacts::default()
                },
                FailureKind::Server,
                true,
            ),
            (facts(502), FailureKind::Server, true),
            (facts(400), FailureKind::InvalidRequest, false),
            (
                ErrorFacts {
                    class: "authentication_error",
                    ..ErrorFacts::default()
                },
                FailureKind::Auth,
                false,
            ),
            (
                ErrorFacts {
                    class: "invalid_request_error",
                    ..ErrorFacts::default()
                },
                FailureKind::InvalidRequest,
                false,
            ),
            (
                ErrorFacts {
                    code: "insufficient_quota",
                    ..ErrorFacts::default()
                },
                FailureKind::Billing,
                false,
            ),
        ] {
            let failure = said.in_stream(String::new());
            assert_eq!(
                (failure.kind, failure.retryable),
                (kind, retryable),
                "{said:?}"
            );
        }
    }

    #[test]
    fn texts_are_cut_at_600_bytes_on_a_character() {
        for (length, kept) in [(599, 599), (600, 600), (601, 600)] {
            let text = "a".repeat(length);
            let clipped = clip(&text);
            assert_eq!(clipped.trim_end_matches('…').len(), kept);
            assert_eq!(clipped.ends_with('…'), length > 600);
        }
        let wide = "é".repeat(299) + "a" + "é";
        assert_eq!(clip(&wide), "é".repeat(299) + "a…");
    }

    #[test]
    fn status_texts() {
        assert_eq!(
            status_text(400, "Bad Request", "no such model"),
            "backend returned 400 Bad Request: no such model"
        );
        assert_eq!(
            status_text(503, "", "<html>busy</html>\n"),
            "backend returned 503 Service Unavailable: <html>busy</html>"
        );
        assert_eq!(status_text(599, "", ""), "backend returned 599");
    }
}
