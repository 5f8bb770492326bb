//! What the real program was recorded saying: every part of it is known, and comes back equal.

use std::collections::BTreeMap;

use turnwire::json::Members;
use turnwire::protocol::agentx::wire::*;
use turnwire_proptests::fuzz::models::{agentx_agent_again, agentx_host_again};

use crate::agentx_kit::{From, recordings};

#[test]
fn l10_every_recorded_line_reads_and_writes_back_equal() {
    let (mut host, mut agent) = (0, 0);
    for (name, rows) in recordings() {
        for row in rows {
            let line = row.line.as_bytes();
            let again = match row.from {
                From::Host => {
                    host += 1;
                    agentx_host_again(line, &OPEN_RULES)
                }
                From::Agent => {
                    agent += 1;
                    agentx_agent_again(line, &OPEN_RULES)
                }
            };
            match again {
                Some(again) => assert_eq!(again, Ok(()), "{name}: {}", row.line),
                // What the host wrote wrong on purpose.
                None => assert_eq!(row.from, From::Host, "{name}: {}", row.line),
            }
        }
    }
    assert_eq!((host, agent), (218, 619));
}

#[test]
fn ax_04_no_recorded_line_of_the_agent_has_a_part_that_isnt_known() {
    for (name, rows) in recordings() {
        // Which operation a response answers.
        let mut asked = BTreeMap::new();
        for row in &rows {
            let mut members = Members::new();
            let line = row.line.as_bytes();
            match row.from {
                From::Host => {
                    if let Ok(HostLine::Request(request)) =
                        HostLine::decode(line, &OPEN_RULES, &mut members)
                    {
                        let id = request.request_id.shown().to_owned();
                        asked.insert(id, request.subtype().shown().to_owned());
                    }
                }
                From::Agent => {
                    let read = AgentLine::decode(line, &OPEN_RULES, &mut members).unwrap();
                    known(&name, &row.line, &read, &asked);
                }
            }
        }
    }
}

fn known(name: &str, line: &str, read: &AgentLine<'_>, asked: &BTreeMap<String, String>) {
    let what = || format!("{name}: {line}");
    match read {
        AgentLine::Unknown { .. } | AgentLine::System(System::Unknown(_)) => panic!("{}", what()),
        AgentLine::System(_) | AgentLine::Cancel(_) => {}
        AgentLine::Request(request) => {
            let operation = request.operation().unwrap();
            match operation {
                Operation::CanUseTool(asks) => {
                    for update in asks.permission_suggestions.unwrap() {
                        let update = update.known().expect(name);
                        assert!(
                            !matches!(update, PermissionUpdate::Unknown(_)),
                            "{}",
                            what()
                        );
                    }
                    assert_eq!(asks.rest, Rest::default(), "{}", what());
                }
                Operation::HookCallback(call) => {
                    let input = call.input.known().expect(name);
                    assert_eq!(input.rest, Rest::default(), "{}", what());
                    assert!(!matches!(input.hook_event_name, HookEvent::Other(_)));
                }
                other => panic!("{other:?}"),
            }
        }
        AgentLine::Response(response) => {
            let response = response.known().unwrap();
            let subtype = asked.get(response.request_id.shown());
            let answer = Answer::decode(subtype.map_or("", String::as_str), response.response);
            assert!(answer.is_ok(), "{answer:?} {}", what());
        }
        AgentLine::Record(record) => {
            let message = match record {
                Record::Assistant(record) => &record.message.content,
                Record::User(record) => match record.message.as_ref().unwrap().known().unwrap() {
                    Said::Text(_) => return,
                    Said::Message(message) => match &message.content {
                        Content::Text(_) => return,
                        Content::Blocks(blocks) => blocks,
                    },
                },
                Record::Stream(piece) => {
                    let event = piece.event.known().expect(name);
                    assert!(!matches!(event, StreamEvent::Unknown(_)), "{}", what());
                    return;
                }
                _ => return,
            };
            for block in message {
                let block = block.known().expect(name);
                assert!(!matches!(block, Block::Unknown(_)), "{}", what());
            }
        }
    }
}
