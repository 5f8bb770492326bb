//! The rows, one test a section, so that the name says where a failure belongs.

use alloc::{string::String, vec::Vec};

use super::trace::play_row;

const ROWS: &str = include_str!("rows.txt");

fn play_section(section: &str) {
    let rows: Vec<&str> = ROWS
        .lines()
        .filter(|row| row.starts_with(section))
        .collect();
    assert!(!rows.is_empty(), "no rows for section {section}");
    let faults: Vec<String> = rows
        .into_iter()
        .filter_map(|row| play_row(row).err())
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn s_05_commands_in_every_phase() {
    play_section("3.");
}

#[test]
fn s_03_s_04_other_inputs_in_every_phase() {
    play_section("4.");
}

#[test]
fn s_67_gates_budgets_and_the_end_of_a_turn() {
    play_section("5.");
}

#[test]
fn s_20_s_25_requests_retries_and_streams() {
    play_section("6.");
}

#[test]
fn s_30_s_37_tools_and_questions() {
    play_section("7.");
}

#[test]
fn s_40_s_41_hooks() {
    play_section("8.");
}

#[test]
fn s_50_s_52_cancel_in_every_phase() {
    play_section("10.");
}

#[test]
fn s_55_s_06_closing() {
    play_section("11.");
}

#[test]
fn s_60_what_waits_for_room() {
    play_section("13.");
}
