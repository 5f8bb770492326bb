//! L10 for agentx and claude: reading and writing are inverse, for a line of every kind however it is disturbed; and
//! what is written stands in the documented order, on one line.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use turnwire::json::{Members, scan_value};
use turnwire::protocol::agentx::hear::{Heard, hear};
use turnwire::protocol::agentx::policy::{Bit, Policy, Preset};
use turnwire::protocol::agentx::wire::*;
use turnwire_proptests::fuzz::models::{agentx_agent_again, agentx_host_again};

const SESSION: &str = "ses_0123456789abcdef0123456789abcdef";

/// The lines of a file, one a record.
fn lines(name: &str) -> Vec<String> {
    let path = format!("{}/fixtures/agentx/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("part of the project");
    text.lines().map(str::to_owned).collect()
}

fn agent_lines() -> Vec<String> {
    lines("agent.jsonl")
}

fn host_lines() -> Vec<String> {
    lines("host.jsonl")
}

fn agent_written(line: &str) -> String {
    let mut members = Members::new();
    let read = AgentLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members).unwrap();
    let mut out = Vec::new();
    read.encode(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn ax_04_l10_a_line_of_every_kind_reads_and_writes_back_equal() {
    let (mut kinds, mut members) = (BTreeSet::new(), Members::new());
    for line in agent_lines() {
        assert_eq!(
            agentx_agent_again(line.as_bytes(), &CLOSED_RULES),
            Some(Ok(())),
            "{line}"
        );
        match AgentLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members).unwrap() {
            AgentLine::Record(record) => kinds.insert(record.tag().unwrap()),
            AgentLine::System(system) => kinds.insert(system.tag().unwrap()),
            AgentLine::Request(request) => {
                kinds.insert(request.operation().unwrap().tag().unwrap())
            }
            AgentLine::Response(_) => kinds.insert("control_response"),
            AgentLine::Cancel(_) => kinds.insert("control_cancel_request"),
            AgentLine::Unknown { .. } => panic!("{line}"),
        };
    }
    for line in host_lines() {
        assert_eq!(
            agentx_host_again(line.as_bytes(), &CLOSED_RULES),
            Some(Ok(())),
            "{line}"
        );
        match HostLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members).unwrap() {
            HostLine::Request(request) => kinds.insert(request.operation().unwrap().tag().unwrap()),
            HostLine::Import(import) => kinds.insert(import.tag().unwrap()),
            HostLine::Unknown { .. } => panic!("{line}"),
            read => {
                let kind = HostLine::KINDS
                    .into_iter()
                    .find(|kind| *kind == read.kind());
                kinds.insert(kind.unwrap())
            }
        };
    }
    let known = [Record::TAGS, System::TAGS, Operation::TAGS, Import::TAGS].concat();
    for kind in known.into_iter().chain(HostLine::KINDS) {
        let is_sort = ["system", "control_request", "attachment_import"].contains(&kind);
        assert!(
            is_sort || kinds.contains(kind),
            "a line of {kind} is missing"
        );
    }
}

#[test]
fn l10_members_are_written_in_the_documented_order() {
    for line in agent_lines() {
        assert_eq!(agent_written(&line), line);
    }
    for line in host_lines() {
        let mut members = Members::new();
        let mut out = Vec::new();
        HostLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members)
            .unwrap()
            .encode(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), line);
    }
}

#[test]
fn ax_s02_separators_are_written_as_escapes_and_all_else_as_it_is() {
    let text = "a\u{2028}b\u{2029}\u{2027}\u{202a}\u{e2}\u{2028}";
    let line = AgentLine::from(LocalCommandOutput {
        content: text.into(),
        uuid: "\u{2029}".into(),
        session_id: "s".into(),
        rest: Rest(vec![(
            "k\u{2028}".into(),
            scan_value(b"1", &OPEN_RULES).unwrap(),
        )]),
    });
    let mut out = b"before\xE2\x80\xA8\n".to_vec();
    line.encode(&mut out);
    let written = String::from_utf8(out.split_off(10)).unwrap();
    assert_eq!(
        out, b"before\xE2\x80\xA8\n",
        "what stands before isn't touched"
    );
    let expected = "{\"type\":\"system\",\"subtype\":\"local_command_output\",\"content\":\"a\\u2028b\\u2029\u{2027}\u{202a}\u{e2}\\u2028\",\"uuid\":\"\\u2029\",\"session_id\":\"s\",\"k\\u2028\":1}";
    assert_eq!(written, expected);
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["content"], text);
    // Values that are passed on as they came, too.
    let raw = "{\"type\":\"frobnicate\",\"x\":[\"\u{2028}\"]}";
    assert_eq!(agent_written(raw), raw.replace('\u{2028}', "\\u2028"));
    let mut answer = Vec::new();
    let payload = scan_value("{\"a\":\"\u{2029}\"}".as_bytes(), &OPEN_RULES).unwrap();
    Answer::Other(payload).encode(&Tag::from("r"), &mut answer);
    assert!(String::from_utf8(answer).unwrap().contains("\"\\u2029\""));
}

#[test]
fn wire_012_ax_s16_no_price_is_null_and_a_known_zero_is_zero() {
    let of = |cost: Option<u64>| {
        let cost = || Nullable(cost.map(Num::from));
        let line = AgentLine::from(TurnResult {
            total_cost_usd: cost(),
            model_usage: Some(Map(vec![(
                "m".into(),
                ModelUsage {
                    cost_usd: cost(),
                    ..ModelUsage::default()
                },
            )])),
            ..TurnResult::default()
        });
        let mut out = Vec::new();
        line.encode(&mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        let model = value["modelUsage"]["m"].clone();
        assert!(value.as_object().unwrap().contains_key("total_cost_usd"));
        assert!(model.as_object().unwrap().contains_key("costUSD"));
        (value["total_cost_usd"].clone(), model["costUSD"].clone())
    };
    assert_eq!(of(None), (Value::Null, Value::Null));
    assert_eq!(of(Some(0)), (Value::from(0), Value::from(0)));
    // A record without the member isn't one.
    let line = agent_lines()
        .into_iter()
        .find(|line| line.contains("total_cost_usd"))
        .unwrap();
    let less = line.replace("\"total_cost_usd\":null,", "");
    assert_ne!(less, line);
    let mut members = Members::new();
    assert!(AgentLine::decode(less.as_bytes(), &CLOSED_RULES, &mut members).is_err());
}

#[test]
fn wire_026_the_list_of_providers_is_one_document() {
    let document = r#"{"version":1,"providers":[{"value":"sol-east","id":"sol-east","providerType":"azure_openai","model":"gpt-5.6-sol","displayName":"sol-east (gpt-5.6-sol)","description":"x","default":true,"selected":false,"supportsEffort":true,"supportedReasoningEfforts":["low","medium","high"],"defaultReasoningEffort":"high","reasoning":{"supported":true,"efforts":["low","medium","high"],"defaultEffort":"high"}}]}"#;
    let value = scan_value(document.as_bytes(), &CLOSED_RULES).unwrap();
    let list: ProviderList<'_> = value.decode().unwrap();
    let mut out = Vec::new();
    list.encode(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), document);
}

#[test]
fn wire_019_wire_022_an_upload_is_told_with_its_manifest_and_no_more() {
    let line = AgentLine::from(ImportResult {
        version: 1,
        upload_id: "upl_a".into(),
        attachment_id: "att_a".into(),
        status: ImportStatus::Accepted,
        prompt_uuid: Some("p".into()),
        ..ImportResult::default()
    });
    let mut out = Vec::new();
    line.encode(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"type":"attachment_import_result","version":1,"upload_id":"upl_a","attachment_id":"att_a","status":"accepted","terminal":false,"prompt_uuid":"p"}"#
    );
}

/// What can stand anywhere.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["", "now", "text", "user", "r1", "success", "allow"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(
                ("[a-z]{0,5}|type|subtype|requestId|request_id", inner),
                0..3
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Puts another value in the place of one, takes it away, or adds a member.
fn disturb(value: &mut Value, path: &[Index], with: Option<Value>) {
    let Some((step, rest)) = path.split_first() else {
        *value = with.unwrap_or(Value::Null);
        return;
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            let name = members
                .keys()
                .nth(step.index(members.len()))
                .unwrap()
                .clone();
            if rest.is_empty() && with.is_none() {
                members.remove(&name);
            } else {
                disturb(members.get_mut(&name).unwrap(), rest, with);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = step.index(items.len());
            disturb(&mut items[index], rest, with);
        }
        other => *other = with.unwrap_or(Value::Null),
    }
}

proptest! {
    #[test]
    fn l10_a_disturbed_line_reads_and_writes_back_equal(
        line in any::<Index>(),
        edits in prop::collection::vec(
            (prop::collection::vec(any::<Index>(), 1..5), prop::option::weighted(0.8, anything())),
            0..4,
        ),
    ) {
        let (agent, host) = (agent_lines(), host_lines());
        let index = line.index(agent.len() + host.len());
        let from_host = index >= agent.len();
        let text = if from_host { &host[index - agent.len()] } else { &agent[index] };
        let mut value: Value = serde_json::from_str(text).unwrap();
        for (path, with) in edits {
            disturb(&mut value, &path, with);
        }
        let bytes = serde_json::to_vec(&value).unwrap();
        for rules in [&CLOSED_RULES, &OPEN_RULES] {
            let again = if from_host {
                agentx_host_again(&bytes, rules)
            } else {
                agentx_agent_again(&bytes, rules)
            };
            if let Some(again) = again {
                prop_assert_eq!(again, Ok(()));
            }
        }
        // Whatever any policy takes, a policy that is open in one more bit takes as the same record.
        let mut members = Members::new();
        let open = hear(&bytes, SESSION, &Policy::CLAUDE, &mut members);
        for bit in Bit::ALL {
            let stricter = Policy::CLAUDE.with(*bit, &Policy::AGENTX);
            let mut members = Members::new();
            if let Ok(Heard::Line(read)) = hear(&bytes, SESSION, &stricter, &mut members) {
                prop_assert_eq!(Ok(&Heard::Line(read)), open.as_ref(), "{}", bit.name());
            }
        }
        for preset in Preset::ALL {
            let mut members = Members::new();
            let _ = hear(&bytes, SESSION, &preset.policy(), &mut members);
        }
    }
}
