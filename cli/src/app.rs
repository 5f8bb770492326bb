//! From the command line to a work.

use clap::Parser;

use crate::args::{Args, Command, ServeArgs, TrustArgs};
use crate::folders::Folders;
use crate::foreign::{self, Program, listing};
use crate::protocols::{ServeWork, Served};
use crate::say::{self, Stop};
use crate::settings::Model;
use crate::start::{self, Start};

/// Runs the program; the result is its exit code. Where it stands for another one, what is refused has that one's.
pub fn run() -> u8 {
    let words = foreign::spelt_out(std::env::args_os());
    let refused = foreign::is_foreign(&words).then_some(foreign::REFUSED);
    let env = |name: &str| std::env::var_os(name);
    if let Some(form) = foreign::of_agentx(&words).and_then(listing::wanted) {
        let done = form.and_then(|form| listing::run(form, Folders::find(), &env));
        return done.unwrap_or_else(|stop| {
            say::line(&stop);
            foreign::REFUSED
        });
    }
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(usage) => {
            let _ = usage.print();
            // Help and version are no refusal.
            let code = u8::try_from(usage.exit_code()).unwrap_or(2);
            return refused.filter(|_| code != 0).unwrap_or(code);
        }
    };
    let done = match args.command {
        Command::Serve(mut args) => serve(&mut args),
        Command::As { program } => stand_for(program),
        Command::Trust(args) => trust(&args),
        Command::Check(args) => crate::check::run(&args),
        Command::Spec(args) => crate::spec::run(&args),
        Command::Drive(args) => crate::drive::run(&args),
        Command::Approve(args) => crate::external::approve::run(&args),
        Command::Demo(args) => crate::drive::demo(&args),
    };
    done.unwrap_or_else(|stop| {
        say::line(&stop);
        refused.unwrap_or(stop.code())
    })
}

fn stand_for(program: Program) -> Result<u8, Stop> {
    let env = |name: &str| std::env::var_os(name);
    let mut args = program.into_serve(&env)?;
    args.trust_project = start::trusted_by_environment(args.project.as_deref(), &env);
    serve(&mut args)
}

fn trust(args: &TrustArgs) -> Result<u8, Stop> {
    let env = |name: &str| std::env::var_os(name);
    let root = start::trust(args.project.as_deref(), Folders::find(), &env)?;
    say::line(format_args!("trusted project {}", root.display()));
    Ok(0)
}

fn serve(args: &mut ServeArgs) -> Result<u8, Stop> {
    args.given_mcp = crate::mcp::read(&args.tools.mcp_config, &|name| std::env::var_os(name))?;
    let args = &*args;
    let start = Start::prepare(args, Folders::find(), &|name| std::env::var_os(name))?;
    let _logs = crate::logs::start(&start.settings.log)?;
    if matches!(&start.settings.model, Model::Http(provider) if provider.key.is_some()) {
        crate::guard::close_to_others();
    }
    for note in &start.notes {
        say::line(note);
    }
    args.protocol.with(Serve {
        args,
        start: &start,
    })
}

/// Serving, in the protocol that was named.
struct Serve<'a> {
    args: &'a ServeArgs,
    start: &'a Start,
}

impl ServeWork for Serve<'_> {
    type Done = Result<u8, Stop>;

    fn run<P: Served>(self) -> Self::Done {
        crate::session::serve::<P>(self.args, self.start)
    }
}
