//! Attachments: uploads, and prompts that refer to them (WIRE-018 … 022; AX-S22, AX-S23).

use crate::agentx_client_kit::{self, Out, Rig};
use crate::agentx_kit::duo::{Duo, server_config, session_config};
use crate::server::{one, results};
use serde_json::{Value, json};
use turnwire::json::Str;
use turnwire::protocol::agentx::wire::{Import, ImportBegin, ImportChunk, ImportCommit};
use turnwire::protocol::agentx::{
    AgentxAsk, AgentxOutcome, Attachments, ImportLimits, Imported, Policy,
};
use turnwire::vocab::*;

const PROMPT: &str = "3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27";
const OTHER: &str = "4f1e7948-5c1f-4c1f-8e2c-88bc9839ec28";
/// "hello" in base64.
const CHUNK: &str = "aGVsbG8=";

fn duo() -> Duo {
    let mut config = server_config(Policy::AGENTX);
    config.attachments = Some(Attachments::default());
    config.replay = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.lines.clear();
    duo
}

fn begin(upload: &str, prompt: &str, size: u64) -> Value {
    json!({"type":"attachment_import","version":1,"operation":"begin","prompt_uuid":prompt,"upload_id":format!("upl_{upload}"),"attachment_id":format!("att_{upload}"),"name":" screen.png ","size_bytes":size,"mime_type":"image/png","sha256":"0123456789abcdef".repeat(4)})
}

fn chunk(upload: &str, sequence: u64, data: &str) -> Value {
    json!({"type":"attachment_import","version":1,"operation":"chunk","upload_id":format!("upl_{upload}"),"sequence":sequence,"data":data})
}

fn step(upload: &str, operation: &str) -> Value {
    json!({"type":"attachment_import","version":1,"operation":operation,"upload_id":format!("upl_{upload}")})
}

/// Says the line, and has the embedder keep what there is to be kept. What the host is told.
fn said(duo: &mut Duo, line: &Value) -> Vec<Value> {
    duo.say(line);
    keep(duo);
    std::mem::take(&mut duo.lines)
}

/// Settles all that is asked.
fn keep(duo: &mut Duo) {
    while let Some((_, ask)) = duo.asks.first() {
        let outcome = match ask {
            AgentxAsk::BlobCommit { upload, .. } => kept(upload),
            AgentxAsk::BlobAppend { .. } => AgentxOutcome::Success(None),
            _ => AgentxOutcome::Default,
        };
        duo.settle_ask(outcome);
    }
}

fn digest(upload: &str) -> String {
    format!("{:0>64}", upload.len())
}

/// An image comes out smaller than it was declared.
fn kept(upload: &str) -> AgentxOutcome {
    let sha = digest(upload);
    let payload = json!({"size_bytes":4,"sha256":sha,"storage_id":format!("blob_sha256_{sha}")});
    AgentxOutcome::Success(Some(RawJson(payload.to_string().as_str().into())))
}

fn manifest(upload: &str) -> Value {
    let sha = digest(&format!("upl_{upload}"));
    json!({"type":"attachment_ref","attachment_id":format!("att_{upload}"),"kind":"image","name":"screen.png","mime_type":"image/png","size_bytes":4,"sha256":sha,"storage_id":format!("blob_sha256_{sha}")})
}

/// An upload from its beginning to its end.
fn bring(duo: &mut Duo, upload: &str, prompt: &str) {
    let told = said(duo, &begin(upload, prompt, 5));
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["status"], "accepted");
    assert_eq!(told[0]["terminal"], false);
    assert_eq!(told[0]["prompt_uuid"], prompt);
    assert_eq!(said(duo, &chunk(upload, 0, CHUNK)), [] as [Value; 0]);
    let told = said(duo, &step(upload, "commit"));
    assert_eq!(
        told,
        [
            json!({"type":"attachment_import_result","version":1,"upload_id":format!("upl_{upload}"),"attachment_id":format!("att_{upload}"),"status":"committed","terminal":true,"prompt_uuid":prompt,"attachment":manifest(upload)})
        ]
    );
}

fn user(prompt: &str, content: &Value) -> Value {
    json!({"type":"user","uuid":prompt,"message":{"role":"user","content_version":1,"content":content}})
}

/// The line is refused, and nothing else happens.
fn refused(duo: &mut Duo, line: &Value) {
    duo.commands.clear();
    let told = said(duo, line);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["stop_reason"], "input_error");
    assert!(duo.commands.is_empty(), "{:?}", duo.commands);
}

/// A terminal result, and nothing else of the upload.
fn failed(duo: &mut Duo, line: &Value, status: &str, reason: &str) {
    let told = said(duo, line);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["type"], "attachment_import_result");
    let seen = (&told[0]["status"], &told[0]["reason"]);
    assert_eq!(seen, (&json!(status), &json!(reason)));
    assert_eq!(told[0]["terminal"], true);
    assert!(told[0].get("attachment").is_none());
}

fn rejected(duo: &mut Duo, line: &Value, reason: &str) {
    let told = said(duo, line);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["type"], "attachment_import_rejected");
    let seen = (&told[0]["terminal"], &told[0]["reason"]);
    assert_eq!(seen, (&json!(false), &json!(reason)));
}

#[test]
fn ax_s22_wire_019_two_uploads_one_prompt_and_its_replay() {
    let mut duo = duo();
    bring(&mut duo, "a", PROMPT);
    bring(&mut duo, "bb", PROMPT);
    let content = json!([{"type":"input_text","text":"Compare."},manifest("bb"),manifest("a")]);
    duo.say(&user(PROMPT, &content));
    let Some(Command::Prompt(prompt)) = duo.commands.last() else {
        panic!("{:?}", duo.commands);
    };
    assert_eq!(prompt.content[0], Block::Text("Compare.".into()));
    let names: Vec<&str> = prompt.content[1..]
        .iter()
        .map(|block| match block {
            Block::Media {
                kind: MediaKind::Image,
                source: Source::Stored(stored),
            } => &*stored.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["att_bb", "att_a"]);
    duo.play("reply");
    let replay = &duo.lines[0];
    assert_eq!(replay["isReplay"], true);
    assert_eq!(replay["uuid"], PROMPT);
    assert_eq!(replay["message"]["content_version"], 1);
    let canonical = json!([{"type":"text","text":"Compare."},manifest("bb"),manifest("a")]);
    assert_eq!(replay["message"]["content"], canonical);
    assert_eq!(results(&duo)[0]["prompt_uuid"], PROMPT);
    assert_ne!(results(&duo)[0]["uuid"], PROMPT);
    // WIRE-022: no bytes and no base64 in any line.
    assert!(
        duo.raw
            .iter()
            .all(|line| !line.contains(CHUNK) && !line.contains("hello"))
    );
    // What was replayed can be read again, and doesn't run again.
    duo.lines.clear();
    let mut again = user(PROMPT, &canonical);
    again["priority"] = json!("now");
    duo.say(&again);
    assert_eq!(duo.words(), format!("replay({PROMPT})"));
    rejected(&mut duo, &begin("c", PROMPT, 5), "prompt_already_accepted");
    // One that comes again with what isn't its own is no repetition.
    for content in [
        json!([manifest("a")]),
        json!([manifest("a"), manifest("zz")]),
    ] {
        refused(&mut duo, &user(PROMPT, &content));
    }
}

#[test]
fn ax_s23_wire_018_a_chunk_that_is_wrong_ends_its_upload_once() {
    for (first, then, reason) in [
        (None, chunk("a", 1, CHUNK), "invalid_sequence"),
        (Some(0), chunk("a", 0, CHUNK), "invalid_sequence"),
        (Some(0), chunk("a", 2, CHUNK), "invalid_sequence"),
        (None, chunk("a", 0, "aGVsbG9="), "invalid_base64"),
        (None, chunk("a", 0, "aGVs bG8="), "invalid_base64"),
        (None, chunk("a", 0, ""), "invalid_base64"),
        (None, chunk("a", 0, &"A".repeat(349_532)), "invalid_base64"),
        (Some(0), chunk("a", 1, "aGVsbG9o"), "size_mismatch"),
        (Some(0), step("a", "commit"), "size_mismatch"),
        (None, step("a", "commit"), "size_mismatch"),
    ] {
        let mut duo = duo();
        said(&mut duo, &begin("a", PROMPT, 10));
        if let Some(sequence) = first {
            assert!(said(&mut duo, &chunk("a", sequence, CHUNK)).is_empty());
        }
        failed(&mut duo, &then, "failed", reason);
        for late in [
            chunk("a", 1, CHUNK),
            step("a", "commit"),
            step("a", "abort"),
        ] {
            rejected(&mut duo, &late, "upload_already_terminal");
        }
        rejected(&mut duo, &begin("a", PROMPT, 5), "duplicate_upload");
        // The prompt isn't admitted, and one that says `now` leaves the turn alone.
        duo.play("«u1» begin text");
        duo.lines.clear();
        let mut bad = user(PROMPT, &json!([manifest("a")]));
        bad["priority"] = json!("now");
        refused(&mut duo, &bad);
        duo.play("fin(end_turn)");
        assert_eq!(results(&duo)[0]["subtype"], "success");
        // What was reserved is free again.
        duo.lines.clear();
        for upload in ["b", "c", "d", "e", "f", "g", "h", "i"] {
            let told = said(&mut duo, &begin(upload, PROMPT, 5));
            assert_eq!(told[0]["status"], "accepted", "{upload}");
        }
    }
}

#[test]
fn ax_s23_what_the_embedder_finds_wrong_is_said_in_the_contracts_words() {
    for (outcome, reason) in [
        (
            AgentxOutcome::Failure("digest_mismatch".into()),
            "digest_mismatch",
        ),
        (
            AgentxOutcome::Failure("mime_mismatch".into()),
            "mime_mismatch",
        ),
        (
            AgentxOutcome::Failure("malformed_media".into()),
            "malformed_media",
        ),
        (
            AgentxOutcome::Failure("/home/me/secret: no".into()),
            "commit_failed",
        ),
        (AgentxOutcome::Default, "storage_failure"),
        (AgentxOutcome::Success(None), "commit_failed"),
        (
            AgentxOutcome::Success(Some(RawJson(
                r#"{"size_bytes":4,"sha256":"no","storage_id":"blob_sha256_no"}"#.into(),
            ))),
            "commit_failed",
        ),
    ] {
        let mut duo = duo();
        said(&mut duo, &begin("a", PROMPT, 5));
        said(&mut duo, &chunk("a", 0, CHUNK));
        duo.say(&step("a", "commit"));
        // While it is judged it takes nothing more.
        rejected_now(&mut duo, &step("a", "commit"));
        let asked = duo.settle_ask(outcome);
        assert!(matches!(asked, AgentxAsk::BlobCommit { .. }), "{asked:?}");
        let line = one(&mut duo);
        assert_eq!(
            (&line["status"], &line["reason"]),
            (&json!("failed"), &json!(reason))
        );
        assert!(matches!(&duo.asks[0].1, AgentxAsk::BlobDrop { .. }));
    }
    let mut duo = duo();
    said(&mut duo, &begin("a", PROMPT, 5));
    duo.say(&chunk("a", 0, CHUNK));
    assert!(matches!(&duo.asks[0].1, AgentxAsk::BlobAppend { bytes, .. } if bytes == b"hello"));
    duo.settle_ask(AgentxOutcome::Default);
    let line = one(&mut duo);
    assert_eq!(line["reason"], "storage_failure");
}

fn rejected_now(duo: &mut Duo, line: &Value) {
    duo.say(line);
    assert_eq!(one(duo)["reason"], "upload_already_terminal");
}

#[test]
fn wire_020_a_prompt_refers_to_all_that_is_its_own_and_to_nothing_else() {
    let mut duo = duo();
    bring(&mut duo, "a", PROMPT);
    bring(&mut duo, "bb", PROMPT);
    bring(&mut duo, "ccc", OTHER);
    let (a, b, c) = (manifest("a"), manifest("bb"), manifest("ccc"));
    for content in [
        json!([a]),
        json!([{"type":"text","text":"none of them"}]),
        json!([a, b, c]),
        json!([a, c]),
        json!([a, a]),
    ] {
        refused(&mut duo, &user(PROMPT, &content));
    }
    refused(&mut duo, &user(OTHER, &json!([a, b])));
    let mut changed = b.clone();
    changed["name"] = json!("screen2.png");
    refused(&mut duo, &user(PROMPT, &json!([a, changed])));
    // What the agent does by itself takes none.
    let command = json!([{"type":"text","text":"/help"}, a, b]);
    refused(&mut duo, &user(PROMPT, &command));
    // One is still coming.
    said(&mut duo, &begin("dd", PROMPT, 5));
    refused(&mut duo, &user(PROMPT, &json!([a, b])));
    failed(&mut duo, &step("dd", "abort"), "aborted", "caller_abort");
    duo.say(&user(PROMPT, &json!([a, b])));
    assert!(matches!(duo.commands.last(), Some(Command::Prompt(_))));
}

#[test]
fn wire_018_so_many_uploads_and_so_many_bytes_and_no_more() {
    let mut duo = duo();
    rejected(&mut duo, &step("x", "commit"), "import_failed");
    for upload in 0..8 {
        let told = said(&mut duo, &begin(&upload.to_string(), PROMPT, 5));
        assert_eq!(told[0]["status"], "accepted");
    }
    failed(&mut duo, &begin("8", OTHER, 5), "failed", "resource_limit");
    failed(&mut duo, &step("0", "abort"), "aborted", "caller_abort");
    let mut same = begin("9", OTHER, 5);
    same["attachment_id"] = json!("att_1");
    failed(&mut duo, &same, "failed", "duplicate");
    for (upload, expected) in [("a", "accepted"), ("b", "accepted"), ("c", "failed")] {
        // The third one would be more than 40 MiB of one prompt.
        let mut duo = self::duo();
        for before in ["a", "b", "c"].iter().take_while(|one| **one != upload) {
            said(&mut duo, &begin(before, PROMPT, 20_971_520));
        }
        let told = said(&mut duo, &begin(upload, PROMPT, 20_971_520));
        assert_eq!(told[0]["status"], expected, "{upload}");
    }
}

#[test]
fn wire_019_an_upload_that_nobody_ends_is_ended_in_time_or_with_the_input() {
    let mut duo = duo();
    said(&mut duo, &begin("b", PROMPT, 5));
    let due = duo.server.poll_timeout().unwrap();
    assert_eq!(
        (due.why, due.at_us),
        ("upload", duo.now.mono_us + 120_000_000)
    );
    duo.wake_server(119_000_000);
    said(&mut duo, &begin("a", PROMPT, 5));
    duo.wake_server(1_000_000);
    let line = one(&mut duo);
    assert_eq!(
        (&line["upload_id"], &line["status"]),
        (&json!("upl_b"), &json!("expired"))
    );
    assert_eq!(line["reason"], "timeout");
    said(&mut duo, &begin("0", PROMPT, 5));
    duo.end();
    let ended: Vec<(&Value, &Value)> = duo
        .lines
        .iter()
        .filter(|line| line["type"] == "attachment_import_result")
        .map(|line| (&line["upload_id"], &line["reason"]))
        .collect();
    let eof = json!("eof");
    assert_eq!(ended, [(&json!("upl_0"), &eof), (&json!("upl_a"), &eof)]);
    assert!(
        duo.server
            .poll_timeout()
            .is_none_or(|due| due.why != "upload")
    );

    let mut duo = self::duo();
    said(&mut duo, &begin("a", PROMPT, 5));
    duo.host("no json");
    let seen: Vec<&Value> = duo.lines.iter().map(|line| &line["reason"]).collect();
    assert_eq!(seen[0], "process_failure");
    assert_eq!(duo.exit, Some(1));
}

#[test]
fn wire_017_what_is_offered_is_said_at_the_start_and_to_whoever_asks() {
    let mut config = server_config(Policy::AGENTX);
    config.attachments = Some(Attachments::default());
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    // Word for word as the contract has it.
    let expected: Value = serde_json::from_str(include_str!("capability.json")).unwrap();
    assert_eq!(duo.lines[0]["input_capabilities"], expected);
    duo.lines.clear();
    duo.play("«init»");
    assert_eq!(
        one(&mut duo)["response"]["response"]["input_capabilities"],
        expected
    );

    let lower = Attachments {
        limits: ImportLimits {
            item_bytes: 1_000,
            pdf_pages: 500,
            ..ImportLimits::CONTRACT
        },
        ..Attachments::default()
    };
    let said: Value = serde_json::from_str(lower.capability().as_str()).unwrap();
    assert_eq!(said["attachments"]["limits"]["max_item_bytes"], 1_000);
    assert_eq!(said["attachments"]["media_types"][2]["max_bytes"], 1_000);
    // Never more than the contract's.
    assert_eq!(said["attachments"]["limits"]["max_pdf_pages"], 100);
}

/// A Server whose session has such attachments already.
fn going_on(attachments: Attachments) -> Duo {
    let mut config = server_config(Policy::AGENTX);
    config.attachments = Some(attachments);
    config.replay = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.lines.clear();
    duo
}

fn earlier(upload: &str, prompt: &str) -> Imported {
    let sha256: [u8; 32] = std::array::from_fn(|at| {
        let sha = digest(&format!("upl_{upload}"));
        u8::from_str_radix(&sha[2 * at..2 * at + 2], 16).unwrap()
    });
    Imported {
        prompt: prompt.into(),
        kind: MediaKind::Image,
        stored: std::sync::Arc::new(Stored {
            blob: format!("blob_sha256_{}", digest(&format!("upl_{upload}")))
                .as_str()
                .into(),
            id: format!("att_{upload}").as_str().into(),
            name: "screen.png".into(),
            mime: "image/png".into(),
            size: 4,
            sha256,
        }),
    }
}

#[test]
fn wire_020_what_an_earlier_process_committed_can_be_referred_to_and_for_its_prompt_alone() {
    let mut duo = going_on(Attachments {
        committed: vec![earlier("a", PROMPT), earlier("bb", OTHER)],
        ..Attachments::default()
    });
    refused(&mut duo, &user(OTHER, &json!([manifest("a")])));
    refused(
        &mut duo,
        &user(PROMPT, &json!([manifest("a"), manifest("bb")])),
    );
    let mut same = begin("c", OTHER, 5);
    same["attachment_id"] = json!("att_a");
    failed(&mut duo, &same, "failed", "duplicate");
    duo.say(&user(PROMPT, &json!([manifest("a")])));
    assert!(matches!(duo.commands.last(), Some(Command::Prompt(_))));
}

#[test]
fn wire_017_a_replay_brings_nothing_in_and_bypasses_no_rule_of_attachments() {
    let mut duo = going_on(Attachments {
        committed: vec![earlier("a", PROMPT)],
        ..Attachments::default()
    });
    let replay = |prompt: &str, content: &Value| {
        let mut line = user(prompt, content);
        line["isReplay"] = json!(true);
        line["session_id"] = json!("ses_00000000000000000000000000000001");
        line
    };
    // Never committed, of another prompt, and with one left out.
    refused(&mut duo, &replay(OTHER, &json!([manifest("zz")])));
    refused(&mut duo, &replay(OTHER, &json!([manifest("a")])));
    duo.commands.clear();
    assert!(said(&mut duo, &replay(PROMPT, &json!([manifest("a")]))).is_empty());
    let Some(Command::Recall(messages)) = duo.commands.last() else {
        panic!("{:?}", duo.commands);
    };
    assert!(matches!(
        &*messages[0].content[0],
        Block::Media { source: Source::Stored(stored), .. } if &*stored.id == "att_a"
    ));
}

#[test]
fn wire_018_what_is_kept_is_bounded_and_each_blob_counts_once() {
    let limits = ImportLimits {
        stored_bytes: 10,
        ..ImportLimits::CONTRACT
    };
    let twice = |id: &str| {
        let mut one = earlier("a", OTHER);
        std::sync::Arc::make_mut(&mut one.stored).id = id.into();
        one
    };
    let mut duo = going_on(Attachments {
        limits,
        committed: vec![twice("att_a"), twice("att_b"), twice("att_c")],
    });
    // Four bytes are there, however many attachments they are; six are left, and what is coming has its share.
    failed(&mut duo, &begin("x", PROMPT, 7), "failed", "resource_limit");
    assert_eq!(
        said(&mut duo, &begin("y", PROMPT, 5))[0]["status"],
        "accepted"
    );
    failed(&mut duo, &begin("z", PROMPT, 2), "failed", "resource_limit");
    failed(&mut duo, &step("y", "abort"), "aborted", "caller_abort");
    assert_eq!(
        said(&mut duo, &begin("w", PROMPT, 6))[0]["status"],
        "accepted"
    );

    let mut duo = going_on(Attachments {
        limits: ImportLimits {
            item_bytes: 4,
            uploads: 1,
            ..ImportLimits::CONTRACT
        },
        ..Attachments::default()
    });
    failed(&mut duo, &begin("a", PROMPT, 5), "failed", "resource_limit");
    said(&mut duo, &begin("b", PROMPT, 4));
    failed(&mut duo, &begin("c", PROMPT, 4), "failed", "resource_limit");
}

#[test]
fn wire_018_no_line_is_wanted_while_bytes_pile_up_or_an_upload_is_judged() {
    let mut duo = duo();
    said(&mut duo, &begin("a", PROMPT, 20_971_520));
    let most = "A".repeat(349_524);
    for sequence in 0..16 {
        assert!(duo.server.wants_lines(), "{sequence}");
        duo.say(&chunk("a", sequence, &most));
    }
    duo.say(&chunk("a", 16, &most));
    assert!(!duo.server.wants_lines());
    duo.settle_ask(AgentxOutcome::Success(None));
    duo.settle_ask(AgentxOutcome::Success(None));
    assert!(duo.server.wants_lines());
    keep(&mut duo);
    said(&mut duo, &begin("b", PROMPT, 5));
    said(&mut duo, &chunk("b", 0, CHUNK));
    duo.say(&step("b", "commit"));
    assert!(!duo.server.wants_lines());
    // An embedder that never comes back doesn't hold the host for good.
    duo.wake_server(120_000_000);
    assert!(duo.server.wants_lines());
}

/// Carries lines between a Client and its agent until both are quiet; the embedder keeps what there is to be kept.
fn carry(rig: &mut Rig, duo: &mut Duo, heard: &mut usize) {
    loop {
        while let Some(line) = duo.raw.get(*heard).cloned() {
            *heard += 1;
            rig.agent(&line);
        }
        let lines = std::mem::take(&mut rig.written);
        if lines.is_empty() && duo.asks.is_empty() {
            return;
        }
        for line in lines {
            duo.host(&line);
        }
        keep(duo);
    }
}

#[test]
fn ax_s22_a_client_brings_an_attachment_in_and_the_session_gets_it() {
    let mut config = server_config(Policy::AGENTX);
    config.attachments = Some(Attachments::default());
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    let mut rig = Rig::new(agentx_client_kit::config(Policy::AGENTX));
    let mut heard = 0;
    carry(&mut rig, &mut duo, &mut heard);
    rig.import(&Import::Begin(ImportBegin {
        version: 1,
        prompt_uuid: PROMPT.into(),
        upload_id: "upl_a".into(),
        attachment_id: "att_a".into(),
        name: "screen.png".into(),
        size_bytes: 5,
        mime_type: "image/png".into(),
        sha256: Str("0123456789abcdef".repeat(4).into()),
        ..ImportBegin::default()
    }));
    carry(&mut rig, &mut duo, &mut heard);
    rig.import(&Import::Chunk(ImportChunk {
        version: 1,
        upload_id: "upl_a".into(),
        sequence: 0,
        data: CHUNK.into(),
        ..ImportChunk::default()
    }));
    rig.import(&Import::Commit(ImportCommit {
        version: 1,
        upload_id: "upl_a".into(),
        ..ImportCommit::default()
    }));
    carry(&mut rig, &mut duo, &mut heard);
    let told: Vec<Value> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Extra(extra) if &*extra.kind == "attachment_import_result" => {
                Some(serde_json::from_str(extra.line.as_str()).unwrap())
            }
            _ => None,
        })
        .collect();
    let how: Vec<&Value> = told.iter().map(|line| &line["status"]).collect();
    assert_eq!(how, [&json!("accepted"), &json!("committed")]);
    assert_eq!(told[1]["attachment"], manifest("a"));

    let image = Block::Media {
        kind: MediaKind::Image,
        source: Source::Stored(earlier("a", PROMPT).stored),
    };
    let content = vec![image, Block::Text("What is it?".into())];
    rig.command(Command::Prompt(Prompt {
        id: PromptId(1),
        tag: Some(PROMPT.into()),
        content: content.clone(),
        deliver: Deliver::Queue(Rank::Next),
        literal: false,
        details: None,
    }));
    carry(&mut rig, &mut duo, &mut heard);
    let Some(Command::Prompt(prompt)) = duo.commands.last() else {
        panic!("{:?}", duo.commands);
    };
    assert_eq!(prompt.content, content);
    duo.play("reply");
    carry(&mut rig, &mut duo, &mut heard);
    let ended = rig.out.iter().any(
        |out| matches!(out, Out::Event(event) if matches!(event.what, What::TurnEnded { .. })),
    );
    assert!(ended);
}
