//! What the strict wire refuses, and what claude makes of the same lines (WIRE-001, WIRE-002, WIRE-014, WIRE-018,
//! WIRE-021; AX-S20).

use turnwire::json::{JsonFaultKind, Members};
use turnwire::protocol::agentx::hear::{AMBIGUOUS, FaultKind, Heard, ResponseFault, hear};
use turnwire::protocol::agentx::import::ImportFault;
use turnwire::protocol::agentx::policy::{Bit, Policy, Preset};
use turnwire::protocol::agentx::wire::{HostLine, Tag};

const SESSION: &str = "ses_0123456789abcdef0123456789abcdef";

/// What a line comes to, in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Blank,
    /// A record of this type.
    Line(&'static str),
    Unknown,
    PassedOver,
    Fatal,
}

fn seen(line: &str, policy: &Policy) -> Seen {
    let mut members = Members::new();
    match hear(line.as_bytes(), SESSION, policy, &mut members) {
        Ok(Heard::Blank) => Seen::Blank,
        Ok(Heard::Line(HostLine::Unknown { .. })) => Seen::Unknown,
        Ok(Heard::Line(read)) => {
            let kind = HostLine::KINDS
                .into_iter()
                .find(|kind| *kind == read.kind());
            Seen::Line(kind.unwrap())
        }
        Ok(Heard::PassedOver(_)) => Seen::PassedOver,
        Err(fault) => {
            let shown = fault.to_string();
            assert!(!shown.contains("SENTINEL"), "{shown}");
            Seen::Fatal
        }
    }
}

/// Why, and where, the strict wire refuses a line.
fn fault(line: &str) -> (FaultKind, String, usize) {
    let mut members = Members::new();
    let fault = hear(line.as_bytes(), SESSION, &Policy::AGENTX, &mut members).unwrap_err();
    (fault.kind, fault.path, fault.at)
}

fn strict(line: &str) -> Seen {
    assert_eq!(
        seen(line, &Policy::AGENTX),
        seen(line, &Policy::AGENTX_FULL),
        "the same reader: {line}"
    );
    seen(line, &Policy::AGENTX)
}

fn claude(line: &str) -> Seen {
    seen(line, &Policy::CLAUDE)
}

#[test]
fn wire_001_what_isnt_json_ends_the_stream_in_either_wire() {
    for line in [
        "not json at all",
        r#"{"type":"user", oops"#,
        r#"{"type":"keep_alive"} {}"#,
        r#"{"type":"keep_alive""#,
        "[1,",
        "\u{1}",
    ] {
        assert_eq!(strict(line), Seen::Fatal, "{line}");
        assert_eq!(claude(line), Seen::Fatal, "{line}");
    }
    for line in ["", "   ", "\t", "\r"] {
        assert_eq!(strict(line), Seen::Blank);
        assert_eq!(claude(line), Seen::Blank);
    }
    let (kind, path, at) = fault(r#"{"type":"user","message":{"role":nope}}"#);
    assert!(matches!(
        kind,
        FaultKind::Json(JsonFaultKind::Syntax { .. })
    ));
    assert_eq!((path.as_str(), at), ("message.role", 33));
}

#[test]
fn wire_001_a_line_of_more_than_8_mib_ends_the_strict_stream() {
    let line = format!(r#"{{"type":"frobnicate","x":"{}"}}"#, "x".repeat(8_388_608));
    assert_eq!(strict(&line), Seen::Fatal);
    assert_eq!(claude(&line), Seen::Unknown);
    let line = format!(r#"{{"type":"frobnicate","x":"{}"}}"#, "x".repeat(8_388_580));
    assert_eq!(line.len(), 8_388_608);
    assert_eq!(strict(&line), Seen::Unknown);
}

#[test]
fn wire_001_what_has_no_type_ends_the_strict_stream() {
    for line in [
        "[1,2]",
        "5",
        "null",
        r#""x""#,
        r#"{"a":1}"#,
        r#"{"type":5}"#,
    ] {
        assert_eq!(strict(line), Seen::Fatal, "{line}");
        assert_eq!(claude(line), Seen::PassedOver, "{line}");
    }
    assert_eq!(strict(r#"{"type":""}"#), Seen::Fatal);
    assert_eq!(claude(r#"{"type":""}"#), Seen::PassedOver);
}

#[test]
fn wire_002_a_type_that_nobody_knows_is_a_value() {
    for policy in Preset::ALL.map(Preset::policy) {
        assert_eq!(
            seen(r#"{"type":"frobnicate","x":1}"#, &policy),
            Seen::Unknown
        );
    }
}

/// Each record with all members that the strict wire gives it.
const WHOLE: [(&str, &str); 13] = [
    (
        "user",
        r#"{"type":"user","uuid":"u1","session_id":"ses_0123456789abcdef0123456789abcdef","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"isReplay":true,"isSynthetic":false,"tool_use_result":{"a":1},"priority":"next","timestamp":"2026-01-01T00:00:00Z"}"#,
    ),
    (
        "assistant",
        r#"{"type":"assistant","message":{},"uuid":"u"}"#,
    ),
    ("system", r#"{"type":"system","message":{},"uuid":"u"}"#),
    (
        "control_request",
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"interrupt"}}"#,
    ),
    (
        "control_request",
        r#"{"type":"control_request","requestId":"r1","request":{"subtype":"set_provider","x":1}}"#,
    ),
    // Answered with an error, since it says by which id.
    (
        "control_request",
        r#"{"type":"control_request","request_id":"r1"}"#,
    ),
    (
        "control_response",
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":{}}}}"#,
    ),
    (
        "control_response",
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":"why","pending_permission_requests":[{"type":"control_request","request_id":"r2","request":{"subtype":"can_use_tool"}}]}}"#,
    ),
    (
        "control_cancel_request",
        r#"{"type":"control_cancel_request","request_id":"r1"}"#,
    ),
    ("keep_alive", r#"{"type":"keep_alive"}"#),
    (
        "update_environment_variables",
        r#"{"type":"update_environment_variables","variables":{"A":"b"}}"#,
    ),
    (
        "attachment_import",
        r#"{"type":"attachment_import","version":1,"operation":"begin","prompt_uuid":"3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27","upload_id":"upl_image1","attachment_id":"att_image1","name":"screen.png","size_bytes":12345,"mime_type":"image/png","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}"#,
    ),
    (
        "attachment_import",
        r#"{"type":"attachment_import","version":1,"operation":"chunk","upload_id":"upl_image1","sequence":0,"data":"AAAA"}"#,
    ),
];

#[test]
fn wire_021_records_pass_with_their_own_members_and_no_other() {
    for (kind, line) in WHOLE {
        assert_eq!(strict(line), Seen::Line(kind), "{line}");
        assert_eq!(claude(line), Seen::Line(kind), "{line}");
        let more = line.replacen('{', r#"{"bogus":"SENTINEL","#, 1);
        assert_eq!(strict(&more), Seen::Fatal, "{more}");
        assert_eq!(claude(&more), Seen::Line(kind), "{more}");
        assert_eq!(
            fault(&more),
            (FaultKind::UnknownMember, "bogus".into(), 9),
            "{more}"
        );
    }
    for operation in ["commit", "abort"] {
        let line = format!(
            r#"{{"type":"attachment_import","version":1,"operation":"{operation}","upload_id":"upl_image1"}}"#
        );
        assert_eq!(strict(&line), Seen::Line("attachment_import"));
        let more = line.replace("\"version\":1", "\"version\":1,\"sequence\":0");
        assert_eq!(strict(&more), Seen::Fatal);
    }
    let (kind, path, _) = fault(
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","error_code":"x"}}"#,
    );
    assert_eq!(
        (kind, path.as_str()),
        (FaultKind::UnknownMember, "response.error_code")
    );
}

#[test]
fn wire_021_a_member_of_another_type_ends_the_strict_stream() {
    for line in [
        r#"{"type":"user","uuid":5,"message":{"content":"x"}}"#,
        r#"{"type":"user","isReplay":"yes","message":{"content":"x"}}"#,
        r#"{"type":"attachment_import","version":"1","operation":"commit","upload_id":"upl_a"}"#,
        r#"{"type":"attachment_import","version":1,"operation":"commit"}"#,
    ] {
        assert_eq!(strict(line), Seen::Fatal, "{line}");
        assert!(matches!(fault(line).0, FaultKind::Shape(_)), "{line}");
        assert_eq!(claude(line), Seen::PassedOver, "{line}");
    }
    assert_eq!(
        strict(r#"{"type":"update_environment_variables","variables":{"A":5}}"#),
        Seen::Fatal
    );
}

#[test]
fn wire_014_ax_s20_a_member_that_stands_twice_ends_the_strict_stream_at_any_depth() {
    let twice = [
        r#"{"type":"keep_alive","type":"keep_alive"}"#,
        r#"{"type":"keep_alive","\u0074ype":"keep_alive"}"#,
        r#"{"type":"control_request","request_id":"a","request_id":"b","request":{"subtype":"interrupt"}}"#,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"interrupt","subtype":"initialize"}}"#,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"x","y":[{"k":1,"\u006b":2}]}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"deny","\u0062ehavior":"allow","updatedInput":{}}}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"a":{"b":1,"b":2}}}}}"#,
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"x","pending_permission_requests":[{"type":"control_request","request_id":"q","request":{"subtype":"a","\u0073ubtype":"b"}}]}}"#,
        r#"{"type":"user","message":{"role":"user","content":"a","cont\u0065nt":"b"}}"#,
        r#"{"type":"frobnicate","x":{"y":1,"y":1}}"#,
    ];
    for line in twice {
        assert_eq!(strict(line), Seen::Fatal, "{line}");
        assert_ne!(claude(line), Seen::Fatal, "{line}");
        let mut members = Members::new();
        let fault = hear(line.as_bytes(), SESSION, &Policy::AGENTX, &mut members).unwrap_err();
        assert_eq!(fault.to_string(), AMBIGUOUS, "fixed: {line}");
    }
}

#[test]
fn wire_014_of_two_members_claude_takes_the_last() {
    let line = r#"{"type":"control_cancel_request","request_id":"a","request_id":"b"}"#;
    let mut members = Members::new();
    let read = hear(line.as_bytes(), SESSION, &Policy::CLAUDE, &mut members).unwrap();
    let Heard::Line(HostLine::Cancel(cancel)) = read else {
        panic!("{read:?}");
    };
    assert_eq!(cancel.request_id.name(), Some("b"));
}

#[test]
fn wire_014_ax_s20_the_canonical_name_and_its_alias_are_two_members() {
    for (line, id) in [
        (r#"{"type":"control_cancel_request","requestId":"b"}"#, "b"),
        (
            r#"{"type":"control_cancel_request","request_id":"a","requestId":"b"}"#,
            "a",
        ),
        (
            r#"{"type":"control_cancel_request","requestId":"b","request_id":"a"}"#,
            "a",
        ),
    ] {
        for policy in Preset::ALL.map(Preset::policy) {
            let mut members = Members::new();
            let read = hear(line.as_bytes(), SESSION, &policy, &mut members).unwrap();
            let Heard::Line(read) = read else {
                panic!("{read:?}");
            };
            let mut out = Vec::new();
            read.encode(&mut out);
            let out = String::from_utf8(out).unwrap();
            let written = format!(r#"{{"type":"control_cancel_request","request_id":"{id}"}}"#);
            assert_eq!(out, written, "the alias is never written");
        }
    }
    let line = r#"{"type":"control_response","response":{"subtype":"success","requestId":"b"}}"#;
    assert_eq!(strict(line), Seen::Line("control_response"));
}

#[test]
fn wire_006_a_control_record_without_an_id_ends_the_strict_stream() {
    for id in [
        "",
        r#""request_id":"","#,
        r#""request_id":5,"#,
        r#""request_id":null,"#,
    ] {
        for line in [
            format!(r#"{{"type":"control_request",{id}"request":{{"subtype":"interrupt"}}}}"#),
            format!(r#"{{"type":"control_cancel_request",{id}"requestId":7}}"#),
        ] {
            assert_eq!(strict(&line), Seen::Fatal, "{line}");
            assert_eq!(fault(&line).0, FaultKind::NoRequestId, "{line}");
            assert!(matches!(claude(&line), Seen::Line(_)), "{line}");
        }
    }
    for request in [
        "{}",
        r#"{"subtype":5}"#,
        r#"{"subtype":""}"#,
        "[]",
        r#""x""#,
    ] {
        let line = format!(r#"{{"type":"control_request","request_id":"r","request":{request}}}"#);
        assert_eq!(strict(&line), Seen::Fatal, "{line}");
        assert_eq!(fault(&line).0, FaultKind::NoSubtype, "{line}");
        assert_eq!(claude(&line), Seen::Line("control_request"), "{line}");
    }
}

#[test]
fn wire_021_another_sessions_id_ends_the_strict_stream() {
    for (id, strictly) in [
        ("", Seen::Line("user")),
        (SESSION, Seen::Line("user")),
        ("default", Seen::Fatal),
        ("ses_ffff", Seen::Fatal),
    ] {
        let line = format!(r#"{{"type":"user","session_id":"{id}","message":{{"content":"x"}}}}"#);
        assert_eq!(strict(&line), strictly, "{line}");
        assert_eq!(claude(&line), Seen::Line("user"), "{line}");
    }
    let line = r#"{"type":"frobnicate","session_id":"default"}"#;
    assert_eq!(
        fault(line),
        (FaultKind::ForeignSession, "session_id".into(), 34)
    );
}

#[test]
fn wire_009_ax_p_the_body_of_a_response_is_a_closed_union() {
    use ResponseFault::*;
    let table = [
        (r#"{"subtype":"success","request_id":"r"}"#, None),
        (
            r#"{"subtype":"success","request_id":"r","response":{}}"#,
            None,
        ),
        (
            r#"{"subtype":"success","request_id":"r","response":[1]}"#,
            None,
        ),
        (r#"{"subtype":"error","request_id":"r","error":"e"}"#, None),
        (
            r#"{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":[]}"#,
            None,
        ),
        ("5", Some(NoBody)),
        ("null", Some(NoBody)),
        (r#"{"request_id":"r"}"#, Some(Subtype)),
        (r#"{"subtype":"nonsense","request_id":"r"}"#, Some(Subtype)),
        (r#"{"subtype":"success"}"#, Some(NoRequestId)),
        (
            r#"{"subtype":"success","request_id":""}"#,
            Some(NoRequestId),
        ),
        (r#"{"subtype":"success","request_id":5}"#, Some(NoRequestId)),
        (
            r#"{"subtype":"success","request_id":"r","error":"e"}"#,
            Some(ErrorOfSuccess),
        ),
        (
            r#"{"subtype":"success","request_id":"r","pending_permission_requests":[]}"#,
            Some(PendingOfSuccess),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":"e","response":{}}"#,
            Some(ResponseOfError),
        ),
        (r#"{"subtype":"error","request_id":"r"}"#, Some(NoError)),
        (
            r#"{"subtype":"error","request_id":"r","error":" "}"#,
            Some(NoError),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":5}"#,
            Some(NoError),
        ),
        (
            r#"{"subtype":"success","request_id":"r","response":null}"#,
            Some(Null),
        ),
        (
            r#"{"subtype":"success","request_id":"r","error":null}"#,
            Some(Null),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":null}"#,
            Some(Null),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":null}"#,
            Some(Null),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":5}"#,
            Some(Pending),
        ),
        (
            r#"{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":[{"request_id":"q"}]}"#,
            Some(Pending),
        ),
    ];
    for (body, expected) in table {
        let line = format!(r#"{{"type":"control_response","response":{body}}}"#);
        match expected {
            None => assert_eq!(strict(&line), Seen::Line("control_response"), "{line}"),
            Some(expected) => {
                assert_eq!(strict(&line), Seen::Fatal, "{line}");
                assert_eq!(fault(&line).0, FaultKind::Response(expected), "{line}");
            }
        }
        let has_id = body.contains(r#""request_id":"r""#);
        let open = if has_id {
            Seen::Line("control_response")
        } else {
            Seen::PassedOver
        };
        assert_eq!(claude(&line), open, "{line}");
    }
    assert_eq!(strict(r#"{"type":"control_response"}"#), Seen::Fatal);
    assert_eq!(claude(r#"{"type":"control_response"}"#), Seen::PassedOver);
    // The place is that of the member.
    let line = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","error":"e"}}"#;
    let (_, path, at) = fault(line);
    assert_eq!(
        (path.as_str(), at),
        ("response.error", line.find(r#""e""#).unwrap())
    );
}

#[test]
fn wire_018_a_step_of_an_upload_has_its_grammar() {
    let begin = WHOLE[11].1;
    let table = [
        (r#""version":1"#, r#""version":2"#, ImportFault::Version),
        ("begin", "resume", ImportFault::Operation),
        ("upl_image1", "upl__x", ImportFault::UploadId),
        ("upl_image1", "image1", ImportFault::UploadId),
        ("upl_image1", "upl_", ImportFault::UploadId),
        ("att_image1", "att_a.b", ImportFault::AttachmentId),
        (
            "3f1e7948-5c1f-4c1f",
            "3f1e7948-5c1f-6c1f",
            ImportFault::PromptUuid,
        ),
        ("-8e2c-", "-7e2c-", ImportFault::PromptUuid),
        ("screen.png", "a/b", ImportFault::Name),
        ("screen.png", "  ", ImportFault::Name),
        ("screen.png", "..", ImportFault::Name),
        ("screen.png", "a\\u202eb", ImportFault::Name),
        ("12345", "0", ImportFault::Size),
        ("12345", "20971521", ImportFault::Size),
        ("image/png", "image/gif", ImportFault::MimeType),
        ("image/png", "Image/PNG", ImportFault::MimeType),
        (
            "0123456789abcdef\"",
            "0123456789abcdeF\"",
            ImportFault::Sha256,
        ),
        (
            "0123456789abcdef\"",
            "0123456789abcde\"",
            ImportFault::Sha256,
        ),
    ];
    for (from, to, expected) in table {
        let line = begin.replacen(from, to, 1);
        assert_ne!(line, begin);
        let (kind, path, _) = fault(&line);
        assert_eq!(kind, FaultKind::Import(expected), "{line}");
        assert_eq!(path, expected.member(), "{line}");
    }
    let long = format!("upl_{}", "a".repeat(63));
    assert_eq!(
        strict(&begin.replace("upl_image1", &long)),
        Seen::Line("attachment_import")
    );
    assert_eq!(
        strict(&begin.replace("upl_image1", &format!("{long}a"))),
        Seen::Fatal
    );
    assert_eq!(
        strict(&begin.replace("3f1e7948", "3F1E7948")),
        Seen::Line("attachment_import")
    );
}

#[test]
fn wire_018_ax_s23_a_chunk_that_isnt_base64_ends_its_upload_or_the_stream() {
    let chunk = WHOLE[12].1;
    let mut fatal = Policy::AGENTX;
    fatal.chunk_fault = turnwire::protocol::agentx::policy::ChunkFault::Fatal;
    for data in ["", "A", "AAA", "AB==", "AA A", "AAA_", "\\n"] {
        let line = chunk.replace("AAAA", data);
        assert_eq!(strict(&line), Seen::Line("attachment_import"), "{line}");
        assert_eq!(seen(&line, &fatal), Seen::Fatal, "{line}");
    }
    for (digits, expected) in [
        (349_528, Seen::Line("attachment_import")),
        (349_532, Seen::Fatal),
    ] {
        // 262,144 bytes end with two signs of padding.
        let data = format!("{}AA==", "A".repeat(digits - 4));
        let line = chunk.replace("AAAA", &data);
        assert_eq!(seen(&line, &fatal), expected);
    }
}

#[test]
fn each_bit_of_the_reader_stands_alone() {
    // A line that one bit decides, and what it comes to as the strict wire and as claude has the bit.
    let table = [
        (
            Bit::member_rules,
            r#"{"type":"keep_alive","bogus":1}"#,
            Seen::Fatal,
            Seen::Line("keep_alive"),
        ),
        (
            Bit::foreign_session_id,
            r#"{"type":"user","session_id":"default"}"#,
            Seen::Fatal,
            Seen::Line("user"),
        ),
        (
            Bit::untyped_or_array_line,
            "[1]",
            Seen::Fatal,
            Seen::PassedOver,
        ),
        (
            Bit::request_envelope,
            r#"{"type":"control_request","request":{"subtype":"x"}}"#,
            Seen::Fatal,
            Seen::Line("control_request"),
        ),
        (
            Bit::response_union,
            r#"{"type":"control_response"}"#,
            Seen::Fatal,
            Seen::PassedOver,
        ),
    ];
    for (bit, line, strictly, openly) in table {
        for other in Bit::ALL {
            let flipped = Policy::AGENTX.with(*other, &Policy::CLAUDE);
            let expected = if *other == bit { &openly } else { &strictly };
            assert_eq!(&seen(line, &flipped), expected, "{}: {line}", other.name());
            let flipped = Policy::CLAUDE.with(*other, &Policy::AGENTX);
            let expected = if *other == bit { &strictly } else { &openly };
            assert_eq!(&seen(line, &flipped), expected, "{}: {line}", other.name());
        }
    }
}

#[test]
fn an_id_is_echoed_whatever_it_is() {
    let line = r#"{"type":"control_request","request_id":{"a":[1]},"request":{"subtype":"x"}}"#;
    let mut members = Members::new();
    let read = hear(line.as_bytes(), SESSION, &Policy::CLAUDE, &mut members).unwrap();
    let Heard::Line(HostLine::Request(request)) = read else {
        panic!("{read:?}");
    };
    let Tag::Other(id) = request.request_id else {
        panic!("{:?}", request.request_id);
    };
    assert_eq!(id.as_str(), r#"{"a":[1]}"#);
}

#[test]
fn wire_010_an_operation_that_takes_no_members_says_whether_it_has_any() {
    for (request, expected) in [
        (r#"{"subtype":"interrupt"}"#, false),
        (r#"{"subtype":"interrupt","a":null}"#, true),
        (r#"{"hooks":null,"subtype":"initialize"}"#, true),
        ("null", false),
    ] {
        let line = format!(r#"{{"type":"control_request","request_id":"r","request":{request}}}"#);
        let mut members = Members::new();
        let read = hear(line.as_bytes(), SESSION, &Policy::AGENTX, &mut members).unwrap();
        let Heard::Line(HostLine::Request(read)) = read else {
            panic!("{read:?}");
        };
        assert_eq!(read.has_fields(), expected, "{line}");
    }
}
