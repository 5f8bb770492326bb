//! Which ids the name of a test begins with.

/// Words that stand before a number of their own, the longer ones first.
pub const PREFIXES: &[&[&str]] = &[
    &["wire", "perm"],
    &["wire", "eof"],
    &["wire"],
    &["om"],
    &["omp"],
    &["os"],
    &["sp"],
    &["ax"],
    &["tw"],
    &["s"],
    &["t"],
];

/// The ids that a name begins with, as they are written elsewhere: `f04_om_10_a_line` gives F04 and OM-10,
/// `om_15_16_a_question` gives OM-15 and OM-16.
pub fn of(name: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let mut rest = words.as_slice();
    let mut ids = Vec::new();
    let mut open: Option<String> = None;
    while let Some((&word, after)) = rest.split_first() {
        // AX-P06, AX-P07: a letter of theirs is no case. Laws are laws behind them too.
        let letter =
            open.as_deref() == Some("AX") && word.starts_with(['s', 'p']) && joined(word).is_some();
        if letter {
            ids.push(format!("AX-{}", word.to_uppercase()));
            rest = after;
        } else if let Some(id) = joined(word) {
            ids.push(id);
            rest = after;
            open = None;
        } else if let Some((prefix, number, after)) = split(rest) {
            ids.push(format!("{prefix}-{number}"));
            rest = after;
            open = Some(prefix);
        } else if let Some(prefix) = open.as_deref().filter(|_| digits(word) && word.len() == 2) {
            ids.push(format!("{prefix}-{word}"));
            rest = after;
        } else {
            break;
        }
    }
    ids
}

/// Laws and cases, whose letter and number are one word: `l10`, `f03`.
fn joined(word: &str) -> Option<String> {
    let (letter, number) = word.split_at_checked(1)?;
    let fits = match letter {
        "l" => (1..=2).contains(&number.len()),
        "f" | "j" | "s" | "d" | "e" | "p" => number.len() == 2,
        _ => false,
    };
    (fits && digits(number)).then(|| word.to_uppercase())
}

/// A prefix, its number, and the words behind them.
fn split<'w, 'n>(words: &'w [&'n str]) -> Option<(String, String, &'w [&'n str])> {
    PREFIXES.iter().find_map(|prefix| {
        let (&number, after) = words.strip_prefix(*prefix)?.split_first()?;
        // AX-S01 has a letter there.
        let bare = number.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let fits = bare.len() >= 2 && number.len() <= bare.len() + 1 && digits(bare);
        fits.then(|| {
            (
                prefix.join("-").to_uppercase(),
                number.to_uppercase(),
                after,
            )
        })
    })
}

fn digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn ids_are_read_at_the_beginning_of_a_name_alone() {
    let cases: &[(&str, &[&str])] = &[
        ("om_07_a_mode_is_answered", &["OM-07"]),
        ("om_15_16_a_question", &["OM-15", "OM-16"]),
        ("f04_om_10_the_limit", &["F04", "OM-10"]),
        ("l1_l2_l5_the_same", &["L1", "L2", "L5"]),
        ("l10_a_line", &["L10"]),
        ("s_61_tw_10_a_host", &["S-61", "TW-10"]),
        ("s01_characters", &["S01"]),
        ("s_01_an_input", &["S-01"]),
        ("t_05_steer", &["T-05"]),
        ("om_34_what_isnt", &["OM-34"]),
        ("om_128_calls", &["OM-128"]),
        ("om_23_8_refusals", &["OM-23"]),
        ("tw_08_64_kib", &["TW-08", "TW-64"]),
        ("omp_02_a_response", &["OMP-02"]),
        ("wire_001_a_line", &["WIRE-001"]),
        ("wire_eof_001_the_end", &["WIRE-EOF-001"]),
        ("ax_s01_a_scenario", &["AX-S01"]),
        ("ax_p06_p07_two", &["AX-P06", "AX-P07"]),
        (
            "ax_s12_ax_01_wire_011_an_interrupt",
            &["AX-S12", "AX-01", "WIRE-011"],
        ),
        ("ax_04_l10_a_line", &["AX-04", "L10"]),
        ("a_test_of_om_07", &[]),
        ("os_error_is_named", &[]),
        ("p_95_is_low", &[]),
        ("s_", &[]),
        ("", &[]),
    ];
    for (name, ids) in cases {
        assert_eq!(of(name), *ids, "{name}");
    }
}
