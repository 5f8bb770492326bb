//! Every recording of the real program, heard by the Client: the neutral stream keeps its laws, says what happened, and
//! a Server of another protocol makes legal lines of it.

use crate::agentx_client_kit::recorded::{all, heard};
use crate::agentx_client_kit::{Out, config, text};
use turnwire::protocol::agentx::Policy;
use turnwire_proptests::laws::ClientInput;

/// The laws are watched by the rig. What it finds beside them is what the recordings are known for.
#[test]
fn every_recording_gives_a_lawful_stream() {
    for (name, rows) in all() {
        let rig = heard(&rows, config(Policy::CLAUDE));
        assert_eq!(rig.out.last(), Some(&Out::Closed), "{name}");
        for finding in rig.findings() {
            let known = match &*name {
                // Answers to what a Client never writes: a second greeting, operations without an id.
                "second_initialize_pending_permission"
                | "second_initialize_pending_permission.v2.1.197"
                | "controls"
                | "unknown_subtype"
                | "unknown_subtype.v2.1.197" => {
                    finding.ends_with("which nobody sent")
                        || finding == "a response without the id of a request"
                }
                _ => false,
            };
            assert!(known, "{name}: {finding}\n{}", text::events(&rig.out));
        }
        let asked = rig.told.iter().filter_map(|(input, _)| match input {
            ClientInput::Call(call) => Some(call.id),
            _ => None,
        });
        for command in asked {
            assert!(rig.replied(command).is_some(), "{name}: {command:?}");
        }
    }
}
