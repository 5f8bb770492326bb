//! This driver, as the contract's tests want it.

use turnwire::protocol::{Protocol, Server};
use turnwire::vocab::{Agent, HookReply, Text, ToolUpdate};
use turnwire_io_contract::{Cancel, Driver};
use turnwire_tokio::hooks::{self, HookJob};
use turnwire_tokio::tools::{self, CancelToken, Toolbox};
use turnwire_tokio::{Error, Host, World};

pub struct Tokio;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    done
}

fn token(cancel: &Cancel) -> CancelToken {
    let token = CancelToken::new();
    let said = token.clone();
    cancel.then(move || said.cancel());
    token
}

impl Driver for Tokio {
    fn serve<P: Protocol, A: Agent>(
        server: Server<P>,
        agent: A,
        world: World,
        host: Host<P>,
    ) -> Result<u8, Error> {
        block_on(turnwire_tokio::serve(server, agent, world, host))
    }

    fn tool(
        tools: &Toolbox,
        name: &str,
        input: &str,
        cancel: &Cancel,
        updates: &mut (dyn FnMut(ToolUpdate) + Send),
    ) -> ToolUpdate {
        block_on(tools::run(tools, name, input, token(cancel), updates))
    }

    fn shell(tools: &Toolbox, line: &str, cancel: &Cancel) -> ToolUpdate {
        block_on(tools::shell(tools, line, token(cancel), |_| {}))
    }

    fn hook(job: &HookJob, cancel: &Cancel) -> Result<HookReply, Text> {
        block_on(hooks::run(job, &token(cancel)))
    }
}
