//! Values that stand in the members of lines: the version of the schema, and words.

use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected};

use super::SCHEMA_VERSION;
use crate::json::{self, Kind, Raw, shorten};
use crate::protocol::member::{Member, unlike, words};
use crate::protocol::spec::FieldKind;
use crate::protocol::wire::Hole;

/// The number 2, and no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version;

impl<'a> Deserialize<'a> for Version {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        if value.u64() == Some(SCHEMA_VERSION) {
            Ok(Version)
        } else if value.kind() == Kind::Number {
            let found = shorten(value.as_str());
            Err(D::Error::invalid_value(Unexpected::Other(&found), &"2"))
        } else {
            Err(unlike(value, "the number 2"))
        }
    }
}

impl Hole for Version {
    fn put(&self, out: &mut Vec<u8>) {
        json::write_u64(out, SCHEMA_VERSION);
    }
}

impl<'a> Member<'a> for Version {
    const KIND: FieldKind = FieldKind::Number(SCHEMA_VERSION);

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(Some)
    }
}

words! {
    /// What a tool may do.
    SideEffectWord {
        Read "read",
        Write "write",
        Shell "shell",
        Network "network",
        None "none",
        Unknown "unknown",
    }

    /// What a call came to.
    ResultStatus {
        Ok "ok",
        Error "error",
    }

    /// How a run ended.
    RunStatusWord {
        Success "success",
        Error "error",
        Incomplete "incomplete",
        Interrupted "interrupted",
        SpecReviewRequired "spec_review_required",
    }

    /// What is known of a request's price.
    CostStatus {
        Priced "priced",
        Unpriced "unpriced",
        Error "error",
    }

    /// How an amount is known.
    CostProvenance {
        RuntimeEstimate "runtime_estimate",
        PersistedEstimate "persisted_estimate",
        ReconstructedEstimate "reconstructed_estimate",
        Reported "reported",
    }

    /// How a stage stands.
    StageStatus {
        Running "running",
        Completed "completed",
        Failed "failed",
        Skipped "skipped",
        Incomplete "incomplete",
    }
}

/// Whether it is the id of a run: a letter or digit, and up to 127 of letters, digits, `.`, `_`, `:` and `-`.
pub fn is_run_id(id: &str) -> bool {
    let mut bytes = id.bytes();
    id.len() <= 128
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_01_ids_of_runs_have_a_pattern() {
        for good in ["r", "7", "run_20260101000000_0a1b2c", "a.b:c-d_e"] {
            assert!(is_run_id(good), "{good}");
        }
        let long = "a".repeat(128);
        assert!(is_run_id(&long) && !is_run_id(&(long + "a")));
        for bad in ["", "_a", "-", "a b", "ä", "a/b"] {
            assert!(!is_run_id(bad), "{bad}");
        }
    }
}
