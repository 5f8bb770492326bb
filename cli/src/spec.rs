//! `turnwire spec`: prints a protocol's contract, from the tables that the program itself works by.

use std::io::{self, Write};

use clap::{Args as Group, ValueEnum};
use turnwire::protocol::observer::Observed;
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::protocol::spec;

use crate::args::ContractName;
use crate::say::Stop;

/// Options of `spec`.
#[derive(Debug, Group)]
pub struct SpecArgs {
    /// The protocol
    #[arg(value_name = "PROTOCOL")]
    pub protocol: ContractName,

    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub format: SpecFormat,
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
        ContractName::Openmax => text::<Openmax>(args.format),
        ContractName::Omp => text::<Omp>(args.format),
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
