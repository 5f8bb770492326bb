//! Markers of stages, which stand inside `reasoning` (SP-11).

use alloc::string::String;
use alloc::vec::Vec;

use super::escape_markup;
use super::values::StageStatus;
use crate::json::{self, LoneSurrogates, ScanRules, Str};
use crate::protocol::member::{Nullable, objects};
use crate::protocol::wire::Hole;

/// What a marker begins with. It ends with another NUL.
pub const MARKER: &str = "\0STAGE";

objects! { without [];
    /// How a stage of the pipeline stands.
    Marker {
        /// Null at the beginning, and where the stage failed early.
        changed_files "changedFiles": Nullable<Vec<Str<'a>>>,
        /// A sentence for people.
        detail "detail": Str<'a>,
        name "name": Str<'a>,
        /// 0 or 100.
        progress "progress": u64,
        status "status": StageStatus<'a>,
    }
}

const RULES: ScanRules = ScanRules {
    lone_surrogates: LoneSurrogates::Replace,
    ..ScanRules::STRICT
};

impl<'a> Marker<'a> {
    /// The marker that a delta is; `None` if it isn't exactly one.
    pub fn read(delta: &'a str) -> Option<Marker<'a>> {
        let json = delta.strip_prefix(MARKER)?.strip_suffix('\0')?;
        json::scan_value(json.as_bytes(), &RULES)
            .ok()?
            .decode()
            .ok()
    }

    /// The delta that it is.
    pub fn write(&self) -> String {
        let mut json = Vec::new();
        self.put(&mut json);
        escape_markup(&mut json, 0);
        let mut delta = String::from(MARKER);
        delta.push_str(core::str::from_utf8(&json).unwrap_or_default());
        delta.push('\0');
        delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_a06_sp_11_the_framing_is_exact_and_an_unknown_status_is_tolerated() {
        for (delta, status) in [
            (
                "\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"code_writer\",\"progress\":0,\"status\":\"running\"}\0",
                "running",
            ),
            (
                "\0STAGE{\"changedFiles\":[],\"detail\":\"a \\u003cb\\u003e\",\"name\":\"x\",\"progress\":100,\"status\":\"retry\"}\0",
                "retry",
            ),
            (
                "\0STAGE{\"changedFiles\":[\"a\",\"b\"],\"detail\":\"\",\"name\":\"\",\"progress\":7,\"status\":\"failed\"}\0",
                "failed",
            ),
        ] {
            let marker = Marker::read(delta).unwrap();
            assert_eq!(marker.status.as_str(), status);
            assert_eq!(marker.write(), delta);
        }
        for bad in [
            "",
            "\0STAGE",
            "\0STAGE\0",
            "\0STAGE{}\0",
            "x\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"a\",\"progress\":0,\"status\":\"running\"}\0",
            "\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"a\",\"progress\":0,\"status\":\"running\"}\0 ",
            "\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"a\",\"progress\":0,\"status\":\"running\"}",
            "\0STAGE{\"changedFiles\":{},\"detail\":\"\",\"name\":\"a\",\"progress\":0,\"status\":\"running\"}\0",
            "\0STAGE{\"detail\":\"\",\"name\":\"a\",\"progress\":0,\"status\":\"running\"}\0",
        ] {
            assert_eq!(Marker::read(bad), None, "{bad:?}");
        }
    }
}
