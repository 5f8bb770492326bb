//! What agentx is held to beside its numbered guarantees: the acceptance scenarios of its contract, its catalogue of
//! permissions, and what goes through all of its tables.

use turnwire::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// What is still owed in part, of the guarantees.
pub const OWES: &[(&str, &str)] = &[];

/// What is still owed in part, of the scenarios.
pub const SCENES_OWE: &[(&str, &str)] = &[];

/// The acceptance scenarios.
pub const SCENARIOS: &[Guarantee] = &[
    row(
        "AX-S01",
        "Objects that come in any chunks, the last without a newline, are each read once.",
    ),
    row(
        "AX-S02",
        "U+2028 and U+2029 in a text stay on their line, and are read as they were.",
    ),
    row(
        "AX-S03",
        "A permission never passes the call that it is about.",
    ),
    row(
        "AX-S04",
        "A request that is withdrawn is cancelled once, and its late answer changes nothing.",
    ),
    row(
        "AX-S05",
        "At the end of input two open permissions are both refused, and nothing is asked any more.",
    ),
    row(
        "AX-S06",
        "Of a hook and the host, in either order, the first decision wins, once.",
    ),
    row("AX-S07", "An answer that comes twice makes one result."),
    row(
        "AX-S08",
        "A change of the servers is answered with what was added, removed and failed, before any of them is greeted.",
    ),
    row(
        "AX-S09",
        "Progress and notice of finite work, then the result, then `idle`.",
    ),
    row(
        "AX-S10",
        "Settings come with their sources in order, and apart from what applies as it runs.",
    ),
    row(
        "AX-S11",
        "An interrupt is answered at once and without a payload; the result follows, and input stays usable.",
    ),
    row(
        "AX-S12",
        "With two permissions open both are withdrawn before the interrupt is answered; each call has its result, finite work its end before the turn's, and `idle` comes behind the flush.",
    ),
    row(
        "AX-S13",
        "A last line without a newline answers its request; only the other one is refused by the end.",
    ),
    row(
        "AX-S14",
        "A last line that is broken answers nothing: it is told, and ends the process with 1.",
    ),
    row(
        "AX-S15",
        "`idle` behind a flush of what others hear claims nothing about the result's own delivery.",
    ),
    row(
        "AX-S16",
        "A price that nobody knows is `null` and a known zero 0, for the whole and for each model.",
    ),
    row(
        "AX-S17",
        "The exact final bytes are searched for credentials, separators, newline and every occurrence of a member included.",
    ),
    row(
        "AX-S18",
        "Who judges and who writes may call back, panic and fail: no deadlock, and one fixed fault for good.",
    ),
    row(
        "AX-S19",
        "A question, or its withdrawal, that can't be written strands nobody; an answer that was taken stands.",
    ),
    row(
        "AX-S20",
        "A member that stands twice is refused at each level, in any spelling, in both directions; an alias is another member.",
    ),
    row(
        "AX-S21",
        "A key of the settings is `user` at both places, and nothing else of it is said.",
    ),
    row(
        "AX-S22",
        "Two uploads, and a prompt that refers to both: each ends once, and the replay has their order and manifests and nothing more.",
    ),
    row(
        "AX-S23",
        "A chunk or a commit that is wrong in any way ends its upload once; the prompt isn't admitted, and interrupts nothing.",
    ),
    row(
        "AX-S24",
        "Without the capability text goes as ever, and attachments are refused before a provider hears of them.",
    ),
    row(
        "AX-S25",
        "`system/init` names the selected provider with what was declared of it, and no other.",
    ),
    row(
        "AX-S26",
        "The catalogue is whole, in order, one of it selected, and agrees with itself; `models` has one.",
    ),
    row(
        "AX-S27",
        "Nothing of how a provider is reached is in what is said at the start, and the catalogue isn't cut for it.",
    ),
    row(
        "AX-S28",
        "`set_model` says how to start another process, `set_provider` isn't known, neither changes anything, and a session doesn't go on with another provider.",
    ),
    row(
        "AX-S29",
        "Providers are listed beforehand in one document, none selected; a process that is bound to one has the same list, and an unsafe list isn't written.",
    ),
];

/// The catalogue of permissions.
pub const PERMISSIONS: &[Guarantee] = &[
    row("AX-P01", "A permission is asked for by `can_use_tool`."),
    row(
        "AX-P02",
        "It has the names of its tool and of its call, both texts.",
    ),
    row("AX-P03", "Its input is an object, with any JSON inside."),
    row(
        "AX-P04",
        "Suggestions are a list of updates, each judged by itself, or not there.",
    ),
    row(
        "AX-P05",
        "Paths, reasons, titles and descriptions are texts that explain, or not there.",
    ),
    row(
        "AX-P06",
        "An allow has the input to run with, a deny a message.",
    ),
    row(
        "AX-P07",
        "An allow may have updates, a deny may interrupt; both may name the call and classify.",
    ),
    row(
        "AX-P08",
        "An allow without an input denies in the strict wire; in claude the input is the original.",
    ),
    row("AX-P09", "An input that isn't an object denies."),
    row("AX-P10", "An empty input is the original."),
    row("AX-P11", "Any other input replaces the whole."),
    row(
        "AX-P12",
        "Updates of which one is malformed are dropped together, and the allow stands.",
    ),
    row(
        "AX-P13",
        "Updates that are whole are applied where they can be; the strict wire, where they can't, denies.",
    ),
    row("AX-P14", "Updates that are null deny."),
    row(
        "AX-P15",
        "A classification that nobody knows counts as none.",
    ),
    row("AX-P16", "The id of the call in an answer isn't compared."),
    row(
        "AX-P17",
        "A deny without a message denies, and says what was wrong with it.",
    ),
    row("AX-P18", "A deny that interrupts ends the turn."),
    row("AX-P19", "Any other behaviour denies."),
    row("AX-P20", "A host that answers with an error denies."),
    row("AX-P21", "A success without a payload denies."),
    row(
        "AX-P22",
        "The end of input denies what is open, and the turn goes on to its result.",
    ),
    row(
        "AX-P23",
        "Rules are added, replaced or removed, for a behaviour and a destination.",
    ),
    row("AX-P24", "A mode is set for a destination."),
    row(
        "AX-P25",
        "Directories are added or removed, for a destination.",
    ),
    row(
        "AX-P26",
        "Who waits is known by the request's id alone, from before it can be written until exactly one end.",
    ),
    row(
        "AX-P27",
        "A hook and the host are asked at once; a hook that decides first withdraws the question, and a late answer changes nothing.",
    ),
    row(
        "AX-P28",
        "The last thousand settled calls are known, and late answers to them ignored; an orphan is handed on once.",
    ),
    row(
        "AX-P29",
        "With replay, an answer that was waited for is repeated as it came, and no other.",
    ),
    row(
        "AX-P30",
        "Calls that may run at once may be asked about at once, and answered in any order.",
    ),
    row(
        "AX-P31",
        "A connection to the network is asked for as a call with an id of its own; only an allow opens it.",
    ),
];

/// What goes through all of its tables.
pub const TABLES: &[Guarantee] = &[
    row(
        "AX-01",
        "What follows an interrupt comes in the contract's order, item by item.",
    ),
    row(
        "AX-02",
        "A thousand settled calls are known, the oldest forgotten first; late twins are ignored, orphans handed on.",
    ),
    row(
        "AX-03",
        "Every operation of the strict wire works or fails as its table says; any other isn't supported.",
    ),
    row(
        "AX-04",
        "Every record and every event of the tables has a type, both ways.",
    ),
];
