//! From the command line to a work.

use clap::Parser;
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;

use crate::args::{Args, Command, ServeArgs, ServedName};
use crate::folders::Folders;
use crate::say::{self, Stop};
use crate::settings::Model;
use crate::start::Start;

/// Runs the program; the result is its exit code.
pub fn run() -> u8 {
    let done = match Args::parse().command {
        Command::Serve(args) => serve(&args),
        Command::Check(args) => crate::check::run(&args),
        Command::Spec(args) => crate::spec::run(&args),
        Command::Drive(args) => crate::drive::run(&args),
        Command::Demo(args) => crate::drive::demo(&args),
    };
    done.unwrap_or_else(|stop| {
        say::line(&stop);
        stop.code()
    })
}

fn serve(args: &ServeArgs) -> Result<u8, Stop> {
    let start = Start::prepare(args, Folders::find(), &|name| std::env::var_os(name))?;
    let _logs = crate::logs::start(&start.settings.log)?;
    if matches!(&start.settings.model, Model::Http(provider) if provider.key.is_some()) {
        crate::guard::close_to_others();
    }
    for note in &start.notes {
        say::line(note);
    }
    match args.protocol {
        ServedName::Openmax => crate::session::serve::<Openmax>(args, &start),
        ServedName::Omp => crate::session::serve::<Omp>(args, &start),
    }
}
