//! Bodies of fuzz targets: any bytes, one invariant.
//!
//! A target is a function of the bytes that a fuzzer mutates; an `Err` is a finding, and so is a panic. They are
//! plain functions, so that a test replays kept inputs and a property test can call them, too. The package
//! `turnwire-fuzz` wraps each one for libFuzzer; the inputs that it starts from are in `fuzz/seeds`, a folder a target.
//! What every protocol has is in [`of`]: another protocol is one line in the list of targets.
//!
//! Where a story needs more than the bytes of a peer, the other things are control bytes between them (`Told`): they
//! can't stand in a line that anybody writes, and a seed stays readable.

mod agentx;
mod client;
mod frames;
mod imports;
mod json;
mod model;
mod observer;
mod omp;
mod openseek;
mod server;
mod splice;
mod whole;
mod wire;

use turnwire::{
    protocol::{agentx::Agentx, omp::Omp, openmax::Openmax, openseek::Openseek, splice::Splice},
    vocab::Now,
};

use crate::laws::Broken;

pub use self::agentx::{agentx_agent_line, agentx_host_line};
pub use self::frames::{lines, sse};
pub use self::imports::agentx_imports;
pub use self::json::{scan, writer};
pub use self::model::{anthropic, openai, script};
pub use self::omp::{omp_agent_line, omp_frames_in, omp_frames_out, omp_host_line};
pub use self::openseek::{openseek_agent_line, openseek_host_line};
pub use self::splice::{splice_agent_line, splice_host_line};
pub use self::whole::{scenario, session, session_laws};
pub use self::wire::{openmax_agent_line, openmax_host_line};

/// The targets that every protocol has: those of its Server, its Client, its observer, recordings of it, and its world.
pub mod of {
    pub use super::client::client;
    pub use super::observer::{observer, recording};
    pub use super::server::server;
    pub use super::whole::{laws, world};
}

pub(crate) use self::json::same_value;

/// Plain models and comparisons that the property tests use as well.
pub mod models {
    pub use super::agentx::{
        agent_line_again as agentx_agent_again, host_line_again as agentx_host_again,
    };
    pub use super::frames::{LineSeen, SseSeen, model_lines, model_sse, split_lines, split_sse};
    pub use super::json::{agree, same_value, strict};
    pub use super::omp::{agent_line_again, host_line_again, messages_of};
    pub use super::openseek::{
        agent_line_again as openseek_agent_again, host_line_again as openseek_host_again,
    };
    pub use super::splice::{
        agent_line_again as splice_agent_again, host_line_again as splice_host_again,
    };
}

/// What a target makes of its bytes.
pub type Target = fn(&[u8]) -> Result<(), Broken>;

macro_rules! targets {
    (
        once: $($name:ident)*;
        $($protocol:ident: $server:ident $client:ident $observer:ident $recording:ident $world:ident $laws:ident;)*
    ) => {
        $(targets! { @of $protocol, $server server $client client $observer observer $recording recording $world world $laws laws })*

        /// Every target, by the name of its binary and of its folder of seeds.
        pub const TARGETS: &[(&str, Target)] = &[
            $((stringify!($name), $name),)*
            $(
                (stringify!($server), $server),
                (stringify!($client), $client),
                (stringify!($observer), $observer),
                (stringify!($recording), $recording),
                (stringify!($world), $world),
                (stringify!($laws), $laws),
            )*
        ];
    };
    (@of $protocol:ident, $($name:ident $body:ident)*) => {
        $(
            #[doc = concat!("[`", stringify!($body), "`](of::", stringify!($body), ") of ", stringify!($protocol), ".")]
            ///
            /// # Errors
            /// [`Broken`] with what was found.
            pub fn $name(data: &[u8]) -> Result<(), Broken> {
                of::$body::<$protocol>(data)
            }
        )*
    };
}

targets! {
    once: lines sse scan writer openai anthropic script scenario session session_laws
        openmax_agent_line openmax_host_line omp_agent_line omp_host_line omp_frames_out omp_frames_in
        agentx_agent_line agentx_host_line agentx_imports
        openseek_agent_line openseek_host_line
        splice_agent_line splice_host_line;
    Openmax: openmax_server openmax_client openmax_observer openmax_recording openmax_world openmax_laws;
    Omp: omp_server omp_client omp_observer omp_recording omp_world omp_laws;
    Agentx: agentx_server agentx_client agentx_observer agentx_recording agentx_world agentx_laws;
    Openseek: openseek_server openseek_client openseek_observer openseek_recording openseek_world openseek_laws;
    Splice: splice_server splice_client splice_observer splice_recording splice_world splice_laws;
}

fn must(holds: bool, law: &'static str, why: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds {
        return Ok(());
    }
    Err(Broken { law, why: why() })
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a value that is kept as text can be another text once it is written: a carriage return between two tokens
/// is left out, and half a surrogate pair is replaced.
fn is_respelled(line: &[u8]) -> bool {
    line.contains(&b'\r') || line.windows(2).any(|two| two == b"\\u")
}

/// A part of a story: bytes that a peer writes at once, or a control byte with the byte behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told<'a> {
    Bytes(&'a [u8]),
    /// 1 to 31, but for tab, newline and carriage return.
    Control(u8, u8),
}

/// The most parts of a story.
const MOST_PARTS: usize = 400;

/// Reads a story. See the [module](self).
fn story(data: &[u8]) -> Vec<Told<'_>> {
    let is_control = |byte: &u8| matches!(byte, 1..=8 | 11 | 12 | 14..=31);
    let mut parts = Vec::new();
    let mut rest = data;
    while parts.len() < MOST_PARTS {
        rest = match rest {
            [] => break,
            [control, tail @ ..] if is_control(control) => {
                let (pick, tail) = tail.split_first().unwrap_or((&0, &[]));
                parts.push(Told::Control(*control, *pick));
                tail
            }
            _ => {
                let end = rest.iter().position(is_control).unwrap_or(rest.len());
                let (bytes, tail) = rest.split_at(end);
                parts.push(Told::Bytes(bytes));
                tail
            }
        };
    }
    parts
}

/// The time of everything in a target that has no clock.
const NOW: Now = crate::world::START;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_bytes_and_controls() {
        assert_eq!(
            story(b"a\nb\x01zc\x02"),
            [
                Told::Bytes(b"a\nb"),
                Told::Control(1, b'z'),
                Told::Bytes(b"c"),
                Told::Control(2, 0)
            ]
        );
        assert_eq!(story(b""), []);
    }

    #[test]
    fn no_bytes_break_nothing() {
        for &(name, target) in TARGETS {
            assert_eq!(target(b""), Ok(()), "{name}");
        }
    }
}
