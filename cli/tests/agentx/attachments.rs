//! Attachments: uploads, files of the command line, and what becomes of them (WIRE-018 … 022).

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use turnwire::protocol::agentx::Agentx;

use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::{anthropic, openai};

const PROMPT: &str = "3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27";
const OTHER: &str = "4f1e7948-5c1f-4c1f-8e2c-88bc9839ec28";
/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |at: usize| match at <= group.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

fn unbase64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => 0,
    };
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let bits = group.iter().fold(0, |sum, byte| sum << 6 | value(*byte));
        let padding = group.iter().filter(|byte| **byte == b'=').count();
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    bytes
}

fn png() -> Vec<u8> {
    unbase64(PNG)
}

/// A PDF of one page; `more` stands in its catalogue.
fn pdf(more: &str) -> Vec<u8> {
    let mut out = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    let catalog = format!("<< /Type /Catalog /Pages 2 0 R {more} >>");
    for (number, object) in [
        &*catalog,
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>",
    ]
    .iter()
    .enumerate()
    {
        places.push(out.len());
        out += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let start = out.len();
    out += "xref\n0 4\n0000000000 65535 f \n";
    for place in places {
        out += &format!("{place:010} 00000 n \n");
    }
    out += &format!("trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    out.into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn begin(upload: &str, prompt: &str, mime: &str, bytes: &[u8]) -> Value {
    json!({
        "type": "attachment_import", "version": 1, "operation": "begin", "prompt_uuid": prompt,
        "upload_id": format!("upl_{upload}"), "attachment_id": format!("att_{upload}"), "name": format!("{upload}.bin"),
        "size_bytes": bytes.len(), "mime_type": mime, "sha256": hex(bytes),
    })
}

fn chunk(upload: &str, sequence: usize, data: &str) -> Value {
    json!({
        "type": "attachment_import", "version": 1, "operation": "chunk", "upload_id": format!("upl_{upload}"),
        "sequence": sequence, "data": data,
    })
}

fn step(upload: &str, operation: &str) -> Value {
    json!({ "type": "attachment_import", "version": 1, "operation": operation, "upload_id": format!("upl_{upload}") })
}

fn result(program: &mut Program<Agentx>) -> Value {
    program.see_type("attachment_import_result")
}

/// Uploads it in pieces, and gives the manifest.
#[track_caller]
fn bring(
    program: &mut Program<Agentx>,
    upload: &str,
    prompt: &str,
    mime: &str,
    bytes: &[u8],
) -> Value {
    program.send(&begin(upload, prompt, mime, bytes));
    assert_eq!(result(program)["status"], "accepted");
    let pieces = bytes.chunks(bytes.len().div_ceil(2));
    for (sequence, piece) in pieces.enumerate() {
        program.send(&chunk(upload, sequence, &base64(piece)));
    }
    program.send(&step(upload, "commit"));
    let told = result(program);
    assert_eq!(
        (&told["status"], &told["terminal"]),
        (&json!("committed"), &json!(true)),
        "{told}"
    );
    assert_eq!(told["prompt_uuid"], prompt);
    told["attachment"].clone()
}

fn user(prompt: &str, content: &Value) -> Value {
    json!({ "type": "user", "uuid": prompt, "message": { "role": "user", "content_version": 1, "content": content } })
}

fn setup(home: &Home, provider: &Provider) -> Setup {
    Setup::agentx(home, "agentx", provider, "auto")
}

/// The folders of attachments that sessions have.
fn folders(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path("data/turnwire/sessions"));
    let paths = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "media"))
        .collect()
}

/// The files of them.
fn files(home: &Home) -> Vec<PathBuf> {
    let entries = folders(home)
        .into_iter()
        .map(|path| fs::read_dir(path).unwrap());
    entries
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// A line holds neither bytes nor paths of an attachment (WIRE-022).
#[track_caller]
fn private(lines: &[Value], home: &Home, bytes: &[&[u8]]) {
    for line in lines {
        let line = line.to_string();
        let paths = [home.path("data"), home.path("state")];
        assert!(
            paths
                .iter()
                .all(|path| !line.contains(path.to_str().unwrap())),
            "{line}"
        );
        for bytes in bytes {
            assert!(!line.contains(&base64(&bytes[..24])), "{line}");
        }
    }
}

#[test]
fn ax_s22_wire_018_wire_019_wire_022_two_uploads_and_a_prompt_that_refers_to_both() {
    let home = Home::new();
    let provider = Provider::start(["I see a pixel.", "Still there."].map(openai::says));
    let mut program = setup(&home, &provider)
        .args(&["--replay"])
        .start_as::<Agentx>();
    let init = program.see_type("system");
    let limits = &init["input_capabilities"]["attachments"]["limits"];
    assert_eq!(limits["max_item_bytes"], 20_971_520);
    let greeting = program.ask(&json!({ "subtype": "initialize" }));
    assert_eq!(
        greeting["response"]["input_capabilities"],
        init["input_capabilities"]
    );
    let image = bring(&mut program, "pixel", PROMPT, "image/png", &png());
    let document = bring(&mut program, "page", PROMPT, "application/pdf", &pdf(""));
    assert_eq!(document["sha256"], hex(&pdf("")));
    let content = json!([document, { "type": "text", "text": "Compare these." }, image]);
    program.send(&user(PROMPT, &content));
    let told = program.see_type("result");
    assert_eq!(
        (&told["result"], &told["prompt_uuid"]),
        (&json!("I see a pixel."), &json!(PROMPT))
    );
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    let replay = &ended.of("user")[0]["message"];
    assert_eq!(
        (&replay["content_version"], &replay["content"]),
        (&json!(1), &content)
    );
    private(&ended.lines, &home, &[&png(), &pdf("")]);

    // What the model was shown: the picture, written anew, and the document as it was.
    let kept = |manifest: &Value| {
        let name = manifest["sha256"].as_str().unwrap();
        let bytes = fs::read(folders(&home)[0].join(name)).unwrap();
        assert_eq!(
            (hex(&bytes), json!(bytes.len())),
            (name.to_owned(), manifest["size_bytes"].clone())
        );
        base64(&bytes)
    };
    let shown = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        let parts = messages
            .iter()
            .find_map(|message| message["content"].as_array())
            .unwrap();
        assert_eq!(parts[0]["text"], "Compare these.");
        assert_eq!(
            parts[1]["file"],
            json!({
                "filename": "page.bin", "file_data": format!("data:application/pdf;base64,{}", kept(&document)),
            })
        );
        assert_eq!(
            parts[2]["image_url"]["url"],
            format!("data:image/png;base64,{}", kept(&image))
        );
    };
    shown(&provider.request(1).json());
    #[cfg(unix)]
    for path in files(&home) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    // The process that goes on has them still, and knows what they were for.
    let mut program = setup(&home, &provider)
        .args(&["--continue"])
        .start_as::<Agentx>();
    program.send(&begin("pixel", OTHER, "image/png", &png()));
    assert_eq!(result(&mut program)["reason"], "duplicate");
    program.send(&user(OTHER, &json!([image])));
    assert_eq!(program.see_type("result")["stop_reason"], "input_error");
    let lines = program.turn("And now?");
    assert_eq!(of(&lines, "result")[0]["result"], "Still there.");
    shown(&provider.request(2).json());
    program.close_input();
    program.wait();
}

#[test]
fn attachments_reach_a_model_that_speaks_as_anthropic_s_do() {
    let home = Home::new();
    let says = anthropic::reply(&[
        anthropic::start(),
        anthropic::text(0, "Yes."),
        anthropic::end("end_turn"),
    ]);
    let provider = Provider::start([says]);
    let url = provider.url() + "/v1";
    let model = [
        "--trust-project",
        "--approval",
        "auto",
        "--api",
        "anthropic",
        "--model",
        "m-1",
        "--base-url",
        &url,
    ];
    let mut program = Setup::serve_in(&home, "agentx")
        .args(&model)
        .key("ANTHROPIC_API_KEY")
        .start_as::<Agentx>();
    let image = bring(&mut program, "pixel", PROMPT, "image/png", &png());
    let document = bring(&mut program, "page", PROMPT, "application/pdf", &pdf(""));
    program.send(&user(PROMPT, &json!([image, document])));
    assert_eq!(program.see_type("result")["result"], "Yes.");
    let request = provider.request(1).json();
    let content = &request["messages"][0]["content"];
    assert_eq!(content[0]["type"], "image");
    assert_eq!(content[1]["type"], "document");
    assert_eq!(content[1]["source"]["data"], base64(&pdf("")));
    let picture = unbase64(content[0]["source"]["data"].as_str().unwrap());
    assert_eq!(
        (json!(hex(&picture)), &content[0]["source"]["media_type"]),
        (image["sha256"].clone(), &json!("image/png"))
    );
    program.close_input();
    program.wait();
}

/// Bad media, and the reason that each is refused for.
fn bad() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let mut huge = png();
    huge[16..24].copy_from_slice(&[0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff]);
    let crc = crc(&huge[12..29]);
    huge[29..33].copy_from_slice(&crc.to_be_bytes());
    let cut = png()[..50].to_vec();
    let polyglot = [png(), pdf("")].concat();
    vec![
        ("image/jpeg", png(), "mime_mismatch"),
        ("image/png", pdf(""), "mime_mismatch"),
        ("application/pdf", polyglot, "mime_mismatch"),
        (
            "image/png",
            b"<svg onload=alert(1)>".to_vec(),
            "mime_mismatch",
        ),
        ("image/png", cut, "malformed_media"),
        ("image/png", huge, "media_rejected"),
        (
            "application/pdf",
            b"%PDF-1.4 no more\n%%EOF".to_vec(),
            "malformed_media",
        ),
        (
            "application/pdf",
            pdf("/OpenAction << /S /JavaScript /JS (x) >>"),
            "unsupported_media",
        ),
        (
            "application/pdf",
            [pdf(""), b"PK\x03\x04".to_vec()].concat(),
            "malformed_media",
        ),
    ]
}

/// The check of a chunk of PNG.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn ax_s23_wire_018_whatever_is_wrong_with_an_upload_ends_it_once_and_interrupts_nothing() {
    let home = Home::new();
    let provider = Provider::start([Reply::stream().only(0).stall()]);
    let mut program = setup(&home, &provider).start_as::<Agentx>();
    program.prompt("Talk.");
    provider.request(1);
    for (number, (mime, bytes, reason)) in bad().into_iter().enumerate() {
        let upload = format!("bad{number}");
        program.send(&begin(&upload, PROMPT, mime, &bytes));
        assert_eq!(result(&mut program)["status"], "accepted");
        program.send(&chunk(&upload, 0, &base64(&bytes)));
        program.send(&step(&upload, "commit"));
        let told = result(&mut program);
        assert_eq!(
            (&told["status"], &told["reason"]),
            (&json!("failed"), &json!(reason)),
            "{number}"
        );
        program.send(&step(&upload, "abort"));
        assert_eq!(
            program.see_type("attachment_import_rejected")["reason"],
            "upload_already_terminal"
        );
    }
    let small = png();
    for (upload, lines, reason) in [
        (
            "digest",
            vec![
                chunk("digest", 0, &base64(&[0; 70])),
                step("digest", "commit"),
            ],
            "digest_mismatch",
        ),
        (
            "order",
            vec![chunk("order", 1, &base64(&small))],
            "invalid_sequence",
        ),
        (
            "spelling",
            vec![chunk("spelling", 0, "AAA\n")],
            "invalid_base64",
        ),
        (
            "short",
            vec![chunk("short", 0, "AAAA"), step("short", "commit")],
            "size_mismatch",
        ),
    ] {
        program.send(&begin(upload, PROMPT, "image/png", &small[..70]));
        assert_eq!(result(&mut program)["status"], "accepted");
        for line in &lines {
            program.send(line);
        }
        assert_eq!(result(&mut program)["reason"], reason);
    }
    let mut urgent = user(
        PROMPT,
        &json!([{
            "type": "attachment_ref", "attachment_id": "att_bad0", "kind": "image", "name": "bad0.bin", "mime_type": "image/png",
            "size_bytes": 70, "sha256": hex(&small), "storage_id": format!("blob_sha256_{}", hex(&small)),
        }]),
    );
    urgent["priority"] = json!("now");
    program.send(&urgent);
    let told = program.see_type("result");
    assert_eq!(
        (&told["stop_reason"], &told["prompt_uuid"]),
        (&json!("input_error"), &json!(PROMPT))
    );
    // The turn that ran runs on, and nothing was kept.
    assert_eq!((provider.playing(), files(&home)), (1, Vec::new()));
    let answer = program.ask(&json!({ "subtype": "interrupt" }));
    assert_eq!(answer["subtype"], "success");
    program.see_type("result");
    program.close_input();
    program.wait();
}

#[test]
fn wire_019_an_upload_ends_with_the_input_and_leaves_nothing_behind_in_a_crash_either() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hello."), openai::says("Hello.")]);
    let mut program = setup(&home, &provider).start_as::<Agentx>();
    program.turn("Hello.");
    program.send(&begin("half", PROMPT, "image/png", &png()));
    program.send(&chunk("half", 0, &base64(&png()[..30])));
    program.send(&begin("whole", PROMPT, "application/pdf", &pdf("")));
    program.send(&chunk("whole", 0, &base64(&pdf(""))));
    program.send(&step("whole", "commit"));
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    let told: Vec<(&Value, &Value)> = ended
        .of("attachment_import_result")
        .iter()
        .filter(|line| line["terminal"] == true)
        .map(|line| (&line["upload_id"], &line["status"]))
        .collect();
    // A commit that came before the end counts.
    let (half, whole) = (json!("upl_half"), json!("upl_whole"));
    assert_eq!(
        told,
        [(&whole, &json!("committed")), (&half, &json!("aborted"))]
    );
    assert_eq!(files(&home).len(), 2, "the document, and the log");

    let mut program = setup(&home, &provider)
        .args(&["--continue"])
        .start_as::<Agentx>();
    program.send(&begin("lost", OTHER, "image/png", &png()));
    assert_eq!(result(&mut program)["status"], "accepted");
    program.send(&chunk("lost", 0, &base64(&png()[..30])));
    program.send(&step("half", "commit"));
    program.see_type("attachment_import_rejected");
    program.crash();
    assert_eq!(files(&home).len(), 2);
}

#[test]
fn files_of_the_command_line_go_with_the_first_prompt() {
    let home = Home::new();
    fs::write(home.project().join("dot.png"), png()).unwrap();
    fs::write(home.project().join("page.pdf"), pdf("")).unwrap();
    home.write("words.txt", "no picture");
    let provider = Provider::start([openai::says("Two.")]);
    // Nothing is kept of this session, and of its attachments neither.
    let setup = || setup(&home, &provider).args(&["--no-store", "--replay"]);
    let attach = [
        "--prompt",
        "What are these?",
        "--attach",
        "dot.png",
        "--attach",
        "page.pdf",
    ];
    // The observer hears no host here: what the command line says is none of its lines.
    let output = setup().args(&attach).output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    private(&lines, &home, &[&png()]);
    let (said, told) = (of(&lines, "user"), of(&lines, "result"));
    assert_eq!(
        (&told[0]["result"], &told[0]["prompt_uuid"]),
        (&json!("Two."), &said[0]["uuid"])
    );
    let content = &said[0]["message"]["content"];
    assert_eq!(
        (&content[1]["name"], &content[2]["name"]),
        (&json!("dot.png"), &json!("page.pdf"))
    );
    let request = provider.request(1).json();
    let mut messages = request["messages"].as_array().unwrap().iter();
    let parts = messages
        .find_map(|message| message["content"].as_array())
        .unwrap();
    assert_eq!(parts[2]["file"]["filename"], "page.pdf");
    assert_eq!(
        fs::read_dir(home.path("state/turnwire/media"))
            .unwrap()
            .count(),
        0
    );
    for (file, why) in [
        ("words.txt", "no PNG, JPEG or PDF"),
        ("none.png", "No such file"),
        (".", "not a file"),
    ] {
        let output = setup().args(&["--prompt", "x", "--attach", file]).output();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), output.stdout.is_empty()),
            (Some(2), true),
            "{stderr}"
        );
        assert!(stderr.contains(why) && stderr.contains(file), "{stderr}");
    }
}

#[test]
fn limits_of_the_settings_are_said_and_kept() {
    let home = Home::new();
    home.settings("[attachments]\nitem_bytes = 60\n");
    let provider = Provider::start([]);
    let mut program = setup(&home, &provider).start_as::<Agentx>();
    let init = program.see_type("system");
    assert_eq!(
        init["input_capabilities"]["attachments"]["limits"]["max_item_bytes"],
        60
    );
    program.send(&begin("a", PROMPT, "image/png", &png()));
    assert_eq!(result(&mut program)["reason"], "resource_limit");
    program.close_input();
    program.wait();
}
