//! Names of jobs and of sessions within sessions, for any text.

use proptest::prelude::*;
use turnwire::protocol::openseek::*;

/// Texts that look like what the names are about, and any other.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(compact_job_id),
        any::<[u8; 16]>().prop_map(|bytes| job_storage_name(&compact_job_id(bytes)).into_owned()),
        "uuid-[0-9a-fA-F]{32}",
        "[A-Za-z0-9_-]{22}",
        "[A-Za-z0-9_.-]{1,8}",
        "bg-[0-9]{1,3}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn os_a05_os_12_a_compact_id_is_reversible_and_its_file_lower_case(bytes in any::<[u8; 16]>()) {
        let id = compact_job_id(bytes);
        prop_assert_eq!(id.len(), 22);
        let file = job_storage_name(&id).into_owned();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(&file, &format!("uuid-{hex}"));
        prop_assert_eq!(file.to_lowercase(), file.clone());
        prop_assert_eq!(job_id_from_storage(&file), id.as_str());
        prop_assert!(is_job_id(&id) && valid_job_component(&id) && valid_job_component(&file));
        prop_assert!(!is_job_id(&file), "a job of that name would share the file");
    }

    #[test]
    fn os_12_no_two_ids_that_live_share_a_file(one in id(), other in id()) {
        for id in [&one, &other] {
            let file = job_storage_name(id);
            prop_assert!(file.len() == 37 && file.starts_with("uuid-") || file == id.as_str());
            prop_assert_eq!(valid_job_component(&file), valid_job_component(id));
        }
        if one != other && is_job_id(&one) && is_job_id(&other) {
            prop_assert_ne!(job_storage_name(&one), job_storage_name(&other));
        }
        // Compact ones don't where upper case isn't told from lower, either.
        let is_compact = |id: &str| is_job_id(id) && job_storage_name(id) != id;
        if one != other && is_compact(&one) && is_compact(&other) {
            let lower = |id: &str| job_storage_name(id).to_ascii_lowercase();
            prop_assert_ne!(lower(&one), lower(&other));
        }
    }

    #[test]
    fn os_12_a_component_is_one_step_of_a_path(text in prop_oneof![id(), "[a./\\\\:]{1,4}", "\\PC{190,210}"]) {
        let fits = (1..=200).contains(&text.encode_utf16().count())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && ![".", ".."].contains(&text.as_str());
        prop_assert_eq!(valid_job_component(&text), fits);
        if fits {
            let path = std::path::Path::new("jobs").join(&text);
            prop_assert_eq!(path.components().count(), 2);
            prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(text.as_str()));
        }
    }

    #[test]
    fn os_a05_os_11_a_child_leads_to_its_parent(parent in prop_oneof!["[a-z]{1,4}(-sr-[0-9]{1,3}){0,3}", any::<String>()], number in 0..2_000_000_000u32) {
        let child = child_session_id(&parent, number);
        let digits = number.to_string().len();
        // A parent that ends in the beginning of a suffix gives it up to the one behind it.
        prop_assume!(!parent.is_empty() && !parent.ends_with("-sr"));
        let expected = (digits <= 9).then_some((parent.as_str(), number));
        prop_assert_eq!(split_child_session_id(&child), expected);
    }

    #[test]
    fn os_11_whatever_isnt_a_suffix_of_digits_is_no_child(text in prop_oneof![any::<String>(), "[a0-]{0,3}(-sr-[0-9x]{0,11}){0,3}"]) {
        if let Some((parent, number)) = split_child_session_id(&text) {
            let digits = &text[parent.len() + 4..];
            prop_assert!(!parent.is_empty() && (1..=9).contains(&digits.len()));
            prop_assert_eq!(digits.parse(), Ok(number));
            prop_assert_eq!(&text[parent.len()..parent.len() + 4], "-sr-");
            prop_assert!(!digits.contains('-'), "the innermost one");
        }
    }
}
