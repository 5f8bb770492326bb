//! `turnwire spec`.

use crate::kit::Place;

#[test]
fn om_33_the_contract_is_printed_in_three_forms() {
    let place = Place::new();
    let page = place.run(&["spec", "openmax"], "");
    assert_eq!((page.code, &*page.stderr), (Some(0), ""));
    assert_eq!(
        place.run(&["spec", "openmax", "--format", "md"], "").stdout,
        page.stdout
    );
    for part in [
        "openmax-stdio/6",
        "### `user`",
        "### `approval_request`",
        "| `stop_reason` |",
    ] {
        assert!(page.stdout.contains(part), "{part}");
    }
    let rules = place.run(&["spec", "openmax", "--format", "rules"], "");
    let kept = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/rules-openmax.md"
    ))
    .unwrap();
    assert!(
        rules.stdout == kept,
        "docs/rules-openmax.md is what is printed"
    );
    let schema = place.run(&["spec", "openmax", "--format", "json-schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(
        schema["$defs"]["host.user"]["properties"]["cmd"]["const"],
        "user"
    );
    assert_eq!(
        schema["$defs"]["agent.done"]["properties"]["type"]["const"],
        "done"
    );
}

#[test]
fn om_33_typescript_has_an_interface_a_line_and_a_union_a_side() {
    let types = Place::new()
        .run(&["spec", "openmax", "--format", "typescript"], "")
        .stdout;
    for part in [
        "export interface HostApprovalMode {\n  /** the command */\n  cmd: \"approval_mode\";\n",
        "  mode: \"auto\" | \"ask\" | \"readonly\";\n",
        "export interface AgentToolStart {\n",
        "  args: JsonObject;\n",
        "  cached_tokens: number | null;\n",
        "  protocol_version: 6;\n",
        "  env?: [string, ...string[]];\n",
        "  messages: {\n    /** who speaks */\n    role: \"user\" | \"assistant\";\n",
        "export type HostLine =\n  | HostUser\n",
        "  | AgentError;\n",
    ] {
        assert!(types.contains(part), "{part}: {types}");
    }
    let count = |part: &str| types.matches(part).count();
    assert_eq!(count("export interface Host"), 6);
    assert_eq!(count("export interface "), count("\n  | "));
}

#[test]
fn the_contract_of_omp_is_printed_too() {
    let place = Place::new();
    let page = place.run(&["spec", "omp"], "");
    assert_eq!((page.code, &*page.stderr), (Some(0), ""));
    for part in [
        "### `abort_and_prompt`",
        "### `extension_ui_request select`",
        "| `sessionSettled` | boolean; may be left out |",
    ] {
        assert!(page.stdout.contains(part), "{part}");
    }
    let rules = place.run(&["spec", "omp", "--format", "rules"], "");
    assert!(rules.stdout.contains("## OMP-09.c"));
    let schema = place.run(&["spec", "omp", "--format", "json-schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(
        schema["$defs"]["agent.extension_ui_request.select"]["properties"]["method"]["const"],
        "select"
    );
    let types = place
        .run(&["spec", "omp", "--format", "typescript"], "")
        .stdout;
    assert!(types.contains("export interface AgentExtensionUiRequestSelect {"));
    assert!(types.contains("  streamingBehavior?: \"steer\" | \"followUp\";"));
}

#[test]
fn an_unknown_protocol_or_form_is_refused() {
    for args in [
        &["spec"][..],
        &["spec", "morse"],
        &["spec", "openmax", "--format", "poem"],
    ] {
        assert_eq!(Place::new().run(args, "").code, Some(2), "{args:?}");
    }
}

#[test]
fn ax_04_the_contracts_of_agentx_and_claude_are_printed() {
    let place = Place::new();
    for (name, own, other) in [
        ("agentx", "attachment_import_result", "api_retry"),
        ("claude", "system api_retry", "attachment_import_result"),
    ] {
        let page = place.run(&["spec", name], "");
        assert_eq!((page.code, &*page.stderr), (Some(0), ""));
        assert!(page.stdout.contains(&format!("### `{own}`")), "{name}");
        assert!(!page.stdout.contains(&format!("### `{other}`")), "{name}");
        assert!(page.stdout.contains("| WIRE-PERM-004 |"), "{name}");
        let schema = place.run(&["spec", name, "--format", "json-schema"], "");
        let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
        let request = &schema["$defs"]["host.control_request"]["properties"]["request"];
        assert_eq!(
            request["oneOf"][0]["properties"]["subtype"]["const"],
            "initialize"
        );
        let types = place.run(&["spec", name, "--format", "typescript"], "");
        assert!(types.stdout.contains("export interface AgentResult {\n"));
    }
}

#[test]
fn the_file_of_providers_has_a_page_and_a_schema() {
    let place = Place::new();
    let page = place.run(&["spec", "providers"], "");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/providers.md");
    let kept = std::fs::read_to_string(docs).unwrap();
    assert_eq!(page.code, Some(0));
    assert!(page.stdout == kept, "docs/providers.md is what is printed");
    let schema = place.run(&["spec", "providers", "--format", "json-schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(schema["properties"]["version"]["const"], 2);
    let types = place.run(&["spec", "providers", "--format", "typescript"], "");
    assert_eq!((types.code, &*types.stdout), (Some(2), ""));
}

#[test]
fn sp_03_the_contract_of_splice_is_printed() {
    let place = Place::new();
    let page = place.run(&["spec", "splice"], "");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    for word in ["### `run_start`", "### `message`", "| `usageSequence` |"] {
        assert!(page.stdout.contains(word), "{word}");
    }
    let rules = place.run(&["spec", "splice", "--format", "rules"], "");
    assert!(rules.stdout.contains("SP-12.b"), "{}", rules.stdout);
    let types = place.run(&["spec", "splice", "--format", "typescript"], "");
    assert!(
        types.stdout.contains("type: \"run_end\";"),
        "{}",
        types.stdout
    );
}

#[test]
fn os_10_the_contract_of_openseek_is_printed() {
    let place = Place::new();
    let page = place.run(&["spec", "openseek"], "");
    assert_eq!((page.code, &*page.stderr), (Some(0), ""));
    for line in ["goal set", "approval_requested", "mcp_no_tools"] {
        assert!(page.stdout.contains(&format!("### `{line}`")), "{line}");
    }
    assert!(page.stdout.contains("| OS-A13 |"));
    let rules = place.run(&["spec", "openseek", "--format", "rules"], "");
    assert!(rules.stdout.contains("| [OS-A09.a](#os-a09a) |"));
    let types = place.run(&["spec", "openseek", "--format", "typescript"], "");
    assert!(types.stdout.contains("export interface AgentAgentStep {\n"));
}
