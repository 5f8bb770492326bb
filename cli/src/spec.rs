//! `turnwire spec`: prints a protocol's contract, from the tables that the program itself works by, and the page of the
//! file of providers.

use std::io::{self, Write};

use clap::{Args as Group, ValueEnum};
use turnwire::protocol::agentx::{self, Agentx};
use turnwire::protocol::observer::Observed;
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::protocol::openseek::Openseek;
use turnwire::protocol::spec;
use turnwire::protocol::splice::Splice;

use crate::registry;
use crate::say::Stop;

/// Options of `spec`.
#[derive(Debug, Group)]
pub struct SpecArgs {
    /// The protocol, or the file
    #[arg(value_name = "WHICH")]
    pub protocol: PrintedName,

    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub format: SpecFormat,
}

/// What can be printed: contracts of protocols, and of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrintedName {
    /// openmax-stdio/6
    Openmax,
    /// omp's RPC mode, protocol 1 and 2
    Omp,
    /// The structured SDK wire of agentx
    Agentx,
    /// The wire of the Claude Agent SDKs
    Claude,
    /// openseek's events and commands
    Openseek,
    /// splice's stream-JSON, schema version 2
    Splice,
    /// auth.json, the file of the user's providers
    Providers,
}

/// What can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpecFormat {
    /// Every line with its fields, as Markdown
    Md,
    /// The rules of `check`, as Markdown
    Rules,
    /// A JSON Schema (draft 2020-12) of every line
    JsonSchema,
    /// Types for TypeScript of every line
    Typescript,
}

/// Prints it.
///
/// # Errors
/// [`Stop::Failed`] when stdout can't be written to.
pub fn run(args: &SpecArgs) -> Result<u8, Stop> {
    let text = match args.protocol {
        PrintedName::Openmax => text::<Openmax>(args.format),
        PrintedName::Omp => text::<Omp>(args.format),
        PrintedName::Agentx => text::<Agentx>(args.format),
        PrintedName::Claude => claude(args.format),
        PrintedName::Openseek => text::<Openseek>(args.format),
        PrintedName::Splice => text::<Splice>(args.format),
        PrintedName::Providers => providers(args.format)?,
    };
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Stop::Failed(format!("writing the contract: {error}")))
        }
        Ok(()) | Err(_) => Ok(0),
    }
}

fn text<P: Observed>(format: SpecFormat) -> String {
    match format {
        SpecFormat::Md => spec::markdown::<P>(),
        SpecFormat::Rules => spec::rules_page::<P>(),
        SpecFormat::JsonSchema => spec::json_schema::<P>() + "\n",
        SpecFormat::Typescript => spec::typescript::<P>(),
    }
}

/// The page of `auth.json`, or its schema.
fn providers(format: SpecFormat) -> Result<String, Stop> {
    match format {
        SpecFormat::Md => Ok(registry::PAGE.to_owned()),
        SpecFormat::JsonSchema => Ok(registry::SCHEMA.to_owned()),
        SpecFormat::Rules | SpecFormat::Typescript => Err(Stop::Settings(
            "spec providers: there are --format md and json-schema".to_owned(),
        )),
    }
}

/// The text of claude's contract: its lines are its own, its rules those of the protocol.
fn claude(format: SpecFormat) -> String {
    let contract = &agentx::CLAUDE_SPEC;
    match format {
        SpecFormat::Md => spec::markdown_of(contract, agentx::GUARANTEES),
        SpecFormat::Rules => spec::rules_page::<Agentx>(),
        SpecFormat::JsonSchema => spec::json_schema_of(contract) + "\n",
        SpecFormat::Typescript => spec::typescript_of(contract),
    }
}
