//! `turnwire check` as a report for other programs: SARIF and JUnit.

use serde_json::{Value, json};

use crate::kit::{Done, Place, fixture};

fn check(args: &[&str], input: &[u8]) -> Done {
    Place::new().run(&[&["check", "--protocol", "openmax"], args].concat(), input)
}

/// The log, which must be as the standard's own schema says.
#[track_caller]
fn sarif(done: &Done) -> Value {
    let schema = include_str!("../data/sarif-2.1.0.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let log: Value = serde_json::from_str(&done.stdout).unwrap();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("mem:sarif", schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile("mem:sarif", &mut schemas).unwrap();
    if let Err(error) = schemas.validate(&log, index) {
        panic!("{error:#}\n{}", done.stdout);
    }
    log
}

#[test]
fn sarif_has_a_result_for_each_finding_with_its_place() {
    let input = "{\"cmd\":\"user\",\"text\":\"hi\"}\n{\"cmd\": \"reb\u{f6}\u{f6}t\"}\n";
    let done = check(&["--format", "sarif", "-"], input.as_bytes());
    assert_eq!((done.code, &*done.stderr), (Some(1), ""));
    let log = sarif(&done);
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let [result] = &results[..] else {
        panic!("{results:?}")
    };
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&json!("OM-06.a"), &json!("error"))
    );
    let index = result["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "OM-06.a");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "stdin");
    assert_eq!(
        place["region"],
        json!({"startLine": 2, "startColumn": 9, "endColumn": 17}),
        "columns are characters"
    );
    assert_eq!(
        result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"],
        "/cmd"
    );
    let end = &run["invocations"][0];
    assert_eq!(
        (&end["exitCode"], &end["executionSuccessful"]),
        (&json!(1), &json!(true))
    );
    let skipped = end["toolConfigurationNotifications"].as_array().unwrap();
    assert!(
        skipped
            .iter()
            .any(|notice| notice["associatedRule"]["id"] == "OM-01.a")
    );
}

#[test]
fn sarif_of_several_files_of_any_kind_is_one_valid_log() {
    let place = Place::new();
    // A row that can't be read, one whose line breaks a rule, and rubbish with every byte.
    place.write(
        "rows é.jsonl",
        "{\"dir\":\"in\",\"t_ms\":1,\"line\":\"{\\\"cmd\\\":\\\"reboot\\\"}\"}\nrubbish\n",
    );
    place.write("rubbish", (0..=255).chain(0..=255).collect::<Vec<u8>>());
    let related = fixture("rules/openmax/OM-02.a.bad.jsonl");
    let clean = fixture("rules/openmax/OM-17.a.ok.jsonl");
    let files = ["rows é.jsonl", "rubbish", "nowhere", &related, &clean];
    let args = [
        &["check", "--protocol", "openmax", "--format", "sarif"],
        &files[..],
    ]
    .concat();
    let done = place.run(&args, "");
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    let log = sarif(&done);
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let of = |rule: &str| {
        results
            .iter()
            .find(|result| result["ruleId"] == rule)
            .unwrap()
    };
    let row = &of("recording-row")["locations"][0]["physicalLocation"];
    assert_eq!(row["artifactLocation"]["uri"], "rows%20%C3%A9.jsonl");
    assert_eq!(row["region"], json!({"startLine": 2}));
    // The columns of a line within a row aren't those of the file.
    let region = &of("OM-06.a")["locations"][0]["physicalLocation"]["region"];
    assert_eq!(*region, json!({"startLine": 1}));
    assert!(of("OM-02.a")["relatedLocations"][0]["message"]["text"].is_string());
    let end = &run["invocations"][0];
    assert_eq!(
        (&end["exitCode"], &end["executionSuccessful"]),
        (&json!(2), &json!(false))
    );
    let failed = &end["toolExecutionNotifications"][0];
    assert_eq!(
        failed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "nowhere"
    );
}

#[test]
fn sarif_of_nothing_is_valid() {
    let done = check(&["--format", "sarif"], b"");
    assert_eq!(done.code, Some(0));
    assert_eq!(sarif(&done)["runs"][0]["results"], json!([]));
}

#[test]
fn junit_has_a_case_for_each_rule_that_fails_only_for_errors() {
    let input =
        b"{\"cmd\":\"reboot\"}\n{\"cmd\":\"\x1b]\x07\"}\n{\"cmd\":\"user\",\"text\":\"\"}\n";
    let done = check(&["--format", "junit"], input);
    assert_eq!((done.code, &*done.stderr), (Some(1), ""));
    let xml = &done.stdout;
    for part in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        "<testsuites name=\"turnwire check\"",
        "<testsuite name=\"stdin\"",
        "<testcase name=\"OM-06.a cmd is one of the contract&apos;s\" classname=\"stdin\"",
        "<failure message=\"line 1 (in /cmd): error: ",
        "type=\"OM-06.a\"",
        "<skipped message=\"lines of the agent weren&apos;t observed\"",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    assert!(!xml.contains(['\x1b', '\x07']), "XML can't hold these");
    let count = |part: &str| xml.matches(part).count();
    let rules = check(&["--format", "json"], input).json().pop().unwrap();
    let summary = &rules["summary"];
    let skipped = summary["skipped"].as_array().unwrap().len();
    assert_eq!(count("<skipped"), skipped);
    assert_eq!(
        count("<testcase"),
        skipped + summary["judged"].as_u64().unwrap() as usize
    );
}

#[test]
fn junit_stays_small_whatever_is_found() {
    let mut input = b"{\"cmd\":\"reboot\"}\n".repeat(1000);
    input.extend(format!("{{\"{}\":1}}\n", "x".repeat(100_000)).into_bytes());
    let done = check(&["--format", "junit", "--from", "host"], &input);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.contains("and 980 more"), "{}", done.stdout);
    assert!(done.stdout.len() < 40_000, "{}", done.stdout.len());
    let done = check(&["--format", "junit", "nowhere.jsonl"], b"");
    assert_eq!(done.code, Some(2));
    assert!(
        done.stdout.contains("<error message=\"No such file"),
        "{}",
        done.stdout
    );
}

#[test]
fn reports_have_no_verdicts_on_lines() {
    for format in ["sarif", "junit"] {
        let done = check(&["--format", format, "--each"], b"");
        assert_eq!((done.code, &*done.stdout), (Some(2), ""));
        assert!(done.stderr.contains("--each"), "{}", done.stderr);
    }
}
