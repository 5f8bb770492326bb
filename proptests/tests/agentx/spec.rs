//! The tables of lines, against the types and against what the real program wrote.

use std::collections::BTreeSet;

use boon::{Compiler, Schemas};
use serde_json::Value;
use turnwire::json::Members;
use turnwire::protocol::agentx::wire::{HostLine, Import, OPEN_RULES, Operation, Record, System};
use turnwire::protocol::agentx::{CLAUDE_SPEC, GUARANTEES, SPEC};
use turnwire::protocol::observer::Dir;
use turnwire::protocol::spec::json_schema_of;

use crate::agentx_kit::{From, recordings};

#[test]
fn ax_04_every_record_event_and_operation_is_in_the_tables() {
    let mut agent: BTreeSet<&str> = BTreeSet::new();
    let mut host: BTreeSet<&str> = BTreeSet::new();
    for spec in [&SPEC, &CLAUDE_SPEC] {
        for line in spec.lines {
            match line.dir {
                Dir::Agent => agent.insert(line.name),
                Dir::Host => host.insert(line.name),
            };
        }
    }
    let control = [
        "control_request",
        "control_response",
        "control_cancel_request",
    ];
    let expected = [Record::TAGS, System::TAGS, &control].concat();
    assert_eq!(agent, expected.into_iter().collect());
    let mut expected: BTreeSet<&str> = HostLine::KINDS.into_iter().collect();
    expected.remove("attachment_import");
    expected.extend(Import::TAGS);
    assert_eq!(host, expected);
    let (_, tag, operations) = SPEC.parts[0];
    let names: Vec<&str> = operations.iter().map(|kind| kind.name).collect();
    assert_eq!((tag, names.as_slice()), ("subtype", Operation::TAGS));
    // What the seed's tables of records and events name.
    for name in [
        "user",
        "assistant",
        "init",
        "result",
        "stream_event",
        "compact_boundary",
        "status",
        "post_turn_summary",
        "local_command_output",
        "hook_started",
        "hook_progress",
        "hook_response",
        "tool_progress",
        "auth_status",
        "rate_limit_event",
        "files_persisted",
        "task_started",
        "task_progress",
        "task_notification",
        "session_state_changed",
        "tool_use_summary",
        "elicitation_complete",
        "prompt_suggestion",
        "streamlined_text",
        "streamlined_tool_use_summary",
        "attachment_import_result",
        "attachment_import_rejected",
    ] {
        assert!(SPEC.line(Dir::Agent, name).is_some(), "{name}");
    }
}

#[test]
fn every_promise_has_a_number_of_its_own() {
    let ids: Vec<&str> = GUARANTEES.iter().map(|row| row.id).collect();
    let mut expected: Vec<String> = (1..=26).map(|number| format!("WIRE-{number:03}")).collect();
    expected.push("WIRE-EOF-001".into());
    expected.extend((1..=4).map(|number| format!("WIRE-PERM-{number:03}")));
    assert_eq!(ids, expected);
}

#[test]
fn the_schema_of_claude_takes_what_the_real_program_wrote() {
    let schema: Value = serde_json::from_str(&json_schema_of(&CLAUDE_SPEC)).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("lines.json", schema).unwrap();
    let index = compiler.compile("lines.json", &mut schemas).unwrap();
    let mut count = 0;
    for (name, rows) in recordings() {
        for row in rows {
            if row.from == From::Host && !is_whole(&row.line) {
                continue;
            }
            let value: Value = serde_json::from_str(&row.line).unwrap();
            let valid = schemas.validate(&value, index);
            assert!(
                valid.is_ok(),
                "{name}: {}\n{}",
                row.line,
                valid.unwrap_err()
            );
            count += 1;
        }
    }
    assert!(count > 800, "{count}");
}

/// Whether a host wrote what the contract has: some recordings are about what happens else.
fn is_whole(line: &str) -> bool {
    let mut members = Members::new();
    match HostLine::decode(line.as_bytes(), &OPEN_RULES, &mut members) {
        Ok(HostLine::Request(request)) => {
            let known = !matches!(request.operation(), Ok(Operation::Unknown(_)) | Err(_));
            known && request.request_id.name().is_some()
        }
        Ok(HostLine::Response(response)) => response.known().is_some(),
        Ok(HostLine::Unknown { .. }) | Err(_) => false,
        Ok(_) => true,
    }
}
