//! Where a model's reply comes from, on a thread.

use std::time::Duration;

use turnwire::model::script::{ScriptEnd, ScriptReply};
use turnwire_io::Part;

use crate::cancel::CancelToken;

/// Plays a scripted reply, with its pauses. `give` says whether more is wanted.
pub(crate) fn play(reply: ScriptReply, cancel: &CancelToken, give: impl Fn(Part) -> bool) {
    // Whether the reply goes on.
    let pause = |us: u64| us == 0 || cancel.sleep(Duration::from_micros(us));
    if !pause(reply.head_after_us) {
        return;
    }
    let head = reply.head();
    let (content_type, retry_after) = (
        head.content_type.map(str::to_owned),
        head.retry_after.map(str::to_owned),
    );
    let end = match reply.end {
        ScriptEnd::Unreached(why) => {
            let reached = false;
            give(Part::Unreached { why, reached });
            return;
        }
        ScriptEnd::Cut(why) => Part::Broken(why),
        ScriptEnd::Whole => Part::End,
    };
    let head = Part::Head {
        status: reply.status,
        reason: String::new(),
        content_type,
        retry_after,
    };
    let whole = give(head)
        && reply
            .pieces
            .into_iter()
            .all(|piece| pause(piece.after_us) && give(Part::Body(piece.bytes.into())));
    if whole {
        give(end);
    }
}
