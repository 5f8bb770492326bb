//! Where in its line a finding points.

use alloc::string::String;
use core::ops::Range;

use super::{At, push_pointer};
use crate::json::{DecodeError, JsonFault, JsonFaultKind, Object, Raw};

/// Whether the fault is one of nesting, which no document limits.
pub(in crate::protocol) fn is_depth(fault: &JsonFault) -> bool {
    matches!(fault.kind, JsonFaultKind::TooDeep { .. })
}

/// Whether the fault is one of encoding.
pub(in crate::protocol) fn is_utf8(fault: &JsonFault) -> bool {
    matches!(fault.kind, JsonFaultKind::NotUtf8 { .. })
}

/// Where a fault of the text is.
pub(in crate::protocol) fn at_fault(fault: &JsonFault) -> At {
    At {
        span: fault.at..fault.at,
        pointer: pointer(&fault.path),
        ..At::line()
    }
}

/// Where a field doesn't fit.
pub(in crate::protocol) fn at_field(error: &DecodeError) -> At {
    At {
        span: error.at()..error.at(),
        pointer: pointer(error.path()),
        ..At::line()
    }
}

/// A member of the line.
pub(in crate::protocol) fn at_member(object: &Object<'_, '_>, name: &str) -> At {
    match object.get(name) {
        Some(value) => At::member(name, span(object.line(), value)),
        None => At::line(),
    }
}

/// Where a value stands in its line.
pub(in crate::protocol) fn span(line: &str, value: Raw<'_>) -> Range<usize> {
    let text = value.as_str();
    let start = (text.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let end = start + text.len();
    if end <= line.len() { start..end } else { 0..0 }
}

/// A path such as `messages[3].role` as a JSON pointer.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for step in path.split(['.', '[']) {
        let step = step.strip_suffix(']').unwrap_or(step);
        if !step.is_empty() {
            push_pointer(&mut pointer, step);
        }
    }
    pointer
}
