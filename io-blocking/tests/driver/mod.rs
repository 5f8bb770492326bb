//! This driver, as the contract's tests want it.

use turnwire::protocol::{Protocol, Server};
use turnwire::vocab::{Agent, HookReply, Text, ToolUpdate};
use turnwire_blocking::hooks::{self, HookJob};
use turnwire_blocking::tools::{self, CancelToken, Toolbox};
use turnwire_blocking::{Error, Host, World};
use turnwire_io_contract::{Cancel, Driver};

pub struct Blocking;

fn token(cancel: &Cancel) -> CancelToken {
    let token = CancelToken::new();
    let said = token.clone();
    cancel.then(move || said.cancel());
    token
}

impl Driver for Blocking {
    fn serve<P: Protocol, A: Agent>(
        server: Server<P>,
        agent: A,
        world: World,
        host: Host<P>,
    ) -> Result<u8, Error> {
        turnwire_blocking::serve(server, agent, world, host)
    }

    fn tool(
        tools: &Toolbox,
        name: &str,
        input: &str,
        cancel: &Cancel,
        updates: &mut (dyn FnMut(ToolUpdate) + Send),
    ) -> ToolUpdate {
        tools::run(tools, name, input, &token(cancel), updates)
    }

    fn shell(tools: &Toolbox, line: &str, cancel: &Cancel) -> ToolUpdate {
        tools::shell(tools, line, &token(cancel), |_| {})
    }

    fn hook(job: &HookJob, cancel: &Cancel) -> Result<HookReply, Text> {
        hooks::run(job, &token(cancel))
    }
}
