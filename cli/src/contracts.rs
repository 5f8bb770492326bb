//! What the program has to know of a contract that it checks and prints. A protocol may be served before its contract
//! can be checked, and one observer may know several contracts.

use clap::ValueEnum;
use turnwire::protocol::agentx::{self, Agentx, Preset};
use turnwire::protocol::observer::{Observed, Watch};
use turnwire::protocol::omp::{self, Generation, Omp};
use turnwire::protocol::openmax::{self, Openmax, Wire};
use turnwire::protocol::openseek::{self, Openseek, wire::Shapes};
use turnwire::protocol::splice::{self, Splice};

/// The contracts, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContractName {
    /// openmax-stdio/6
    Openmax,
    /// omp's RPC mode, protocol 1 and 2
    Omp,
    /// The structured SDK wire of agentx
    Agentx,
    /// The same, with all that its contract allows a program to install
    AgentxFull,
    /// The wire of the Claude Agent SDKs
    Claude,
    /// openseek's events and commands
    Openseek,
    /// splice's stream-JSON, schema version 2
    Splice,
}

/// What is done by a contract that only the command line names.
pub trait Checking {
    /// What comes of it.
    type Done;

    /// Does it, with an observer of these settings.
    fn run<P: Observed<Watch: Watch<Config: Copy>>>(
        self,
        config: <P::Watch as Watch>::Config,
    ) -> Self::Done;
}

impl ContractName {
    /// Does a work by the contract of this name, in the version of the wire that `--wire` names; `original`: as the known
    /// agent speaks it.
    ///
    /// # Errors
    /// The versions that there are, if that isn't one.
    pub fn with<W: Checking>(
        self,
        wire: Option<u64>,
        original: bool,
        work: W,
    ) -> Result<W::Done, &'static str> {
        match self {
            Self::Splice if wire.is_some() => Err("it has one version"),
            Self::Splice => Ok(work.run::<Splice>(splice::ObserverConfig { original })),
            _ if original => Err("--original is for splice"),
            Self::Openmax => {
                let wire = wire.map_or(Some(Wire::default()), Wire::of);
                let wire = wire.ok_or("there are 5 and 6")?;
                Ok(work.run::<Openmax>(openmax::ObserverConfig { wire }))
            }
            Self::Omp => {
                let generation = wire.map_or(Some(Generation::default()), Generation::of);
                let generation = generation.ok_or("there are 1, 2 and 3")?;
                Ok(work.run::<Omp>(omp::ObserverConfig { generation }))
            }
            Self::Agentx => agentx(Preset::Agentx, wire, work),
            Self::AgentxFull => agentx(Preset::AgentxFull, wire, work),
            Self::Claude => agentx(Preset::Claude, wire, work),
            Self::Openseek => {
                let shapes = wire.map_or(Some(Shapes::default()), Shapes::of);
                let shapes = shapes.ok_or("there are 1 and 2")?;
                Ok(work.run::<Openseek>(openseek::ObserverConfig { shapes }))
            }
        }
    }
}

/// One observer for all that agentx and claude differ in.
fn agentx<W: Checking>(
    preset: Preset,
    wire: Option<u64>,
    work: W,
) -> Result<W::Done, &'static str> {
    match wire {
        Some(_) => Err("it has no versions"),
        None => Ok(work.run::<Agentx>(agentx::ObserverConfig {
            policy: preset.policy(),
        })),
    }
}
