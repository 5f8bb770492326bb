//! `turnwire check`: reads what was said over a protocol, and shows where the contract is broken.
//!
//! Streams of any length take the memory of their longest line: they are read in pieces, and what is found is written
//! at once.

mod args;
mod human;
mod json;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use turnwire::check::{Check, Checked, Summary};
use turnwire::protocol::observer::Observed;
use turnwire::protocol::openmax::{ObserverConfig, Openmax};

use crate::args::ProtocolName;
use crate::say::{self, Stop};

pub use args::CheckArgs;
use args::Format;

/// Nothing of severity error was found.
const CLEAN: u8 = 0;
/// Something was.
const BROKEN: u8 = 1;
/// There is input that couldn't be read, or no place for the result. Counts more than [`BROKEN`].
const UNREADABLE: u8 = 2;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// What is to be written is written when it is more than this, in bytes, and after each piece.
const WRITE_AT: usize = 64 * 1024;
/// Input of fewer bytes is read before anybody could read a progress bar.
const WORTH_A_BAR: u64 = 64 * 1024 * 1024;

/// Checks every file; the result is the exit code.
///
/// # Errors
/// [`Stop::Settings`] when there is nothing to read but a terminal.
pub fn run(args: &CheckArgs) -> Result<u8, Stop> {
    let stdin = [Path::new("-").to_owned()];
    let files = if args.files.is_empty() {
        if io::stdin().is_terminal() {
            return Err(Stop::Settings(
                "check: name a file, or - and pipe lines to stdin".to_owned(),
            ));
        }
        &stdin[..]
    } else {
        &args.files
    };
    let mut worst = CLEAN;
    for path in files {
        let code = match args.protocol {
            ProtocolName::Openmax => {
                let config = ObserverConfig {
                    wire: args.wire.into(),
                };
                let check = Check::<Openmax>::new(config, args.from());
                one(check, path, args)
            }
        };
        match code {
            Ok(code) => worst = worst.max(code),
            Err(Fault::Input(error)) => {
                say::line(format_args!("{}: {error}", path.display()));
                worst = UNREADABLE;
            }
            Err(Fault::Output(error)) => {
                // A reader that has seen enough is no fault worth a line.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    say::line(format_args!("writing the result: {error}"));
                }
                return Ok(UNREADABLE);
            }
        }
    }
    Ok(worst)
}

/// Which side failed.
enum Fault {
    Input(io::Error),
    Output(io::Error),
}

/// Checks one file.
fn one<P: Observed>(mut check: Check<P>, path: &Path, args: &CheckArgs) -> Result<u8, Fault> {
    let (mut input, size) = open(path).map_err(Fault::Input)?;
    let name = if path == Path::new("-") {
        "stdin".into()
    } else {
        path.to_string_lossy()
    };
    let mut page = Page::new(args, &name, size);
    let mut piece = vec![0; PIECE];
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Fault::Input(error)),
        };
        let bytes = piece.get(..count).unwrap_or_default();
        check.read(bytes, &mut |checked| page.put(&checked));
        page.passed(count);
        page.flush().map_err(Fault::Output)?;
    }
    check.end(&mut |checked| page.put(&checked));
    let summary = check.summary();
    page.end(&summary).map_err(Fault::Output)?;
    Ok(if summary.bad_rows > 0 {
        UNREADABLE
    } else if summary.is_broken() {
        BROKEN
    } else {
        CLEAN
    })
}

/// The input, and its size if that is known.
fn open(path: &Path) -> io::Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    let size = about.is_file().then_some(about.len());
    Ok((Box::new(file), size))
}

/// Where the result goes: stdout, coloured if it is a terminal that wants it.
struct Page<'a> {
    format: Format,
    each: bool,
    name: &'a str,
    out: anstream::AutoStream<io::Stdout>,
    text: Vec<u8>,
    fault: Option<io::Error>,
    bar: Option<ProgressBar>,
}

impl<'a> Page<'a> {
    fn new(args: &CheckArgs, name: &'a str, size: Option<u64>) -> Self {
        let bar = size
            .filter(|&size| size >= WORTH_A_BAR && io::stderr().is_terminal())
            .map(|size| {
                let style =
                    ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
                let bar = ProgressBar::new(size);
                match style {
                    Ok(style) => bar.with_style(style),
                    Err(_) => bar,
                }
            });
        Page {
            format: args.format,
            each: args.each,
            name,
            out: anstream::stdout(),
            text: Vec::new(),
            fault: None,
            bar,
        }
    }

    fn put(&mut self, checked: &Checked<'_>) {
        if self.fault.is_some() || (matches!(checked, Checked::Line { .. }) && !self.each) {
            return;
        }
        match self.format {
            Format::Human => human::put(self.name, checked, &mut self.text),
            Format::Json => json::put(self.name, checked, &mut self.text),
        }
        if self.text.len() > WRITE_AT {
            self.write();
        }
    }

    /// So many bytes of input are done with.
    fn passed(&self, bytes: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes as u64);
        }
    }

    fn write(&mut self) {
        if self.text.is_empty() || self.fault.is_some() {
            return;
        }
        let (out, text) = (&mut self.out, &self.text);
        let mut write = || out.write_all(text).and_then(|()| out.flush());
        let done = match &self.bar {
            // The bar steps aside, or both would stand in one line.
            Some(bar) => bar.suspend(write),
            None => write(),
        };
        self.fault = done.err();
        self.text.clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write();
        self.fault.take().map_or(Ok(()), Err)
    }

    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        match self.format {
            Format::Human => human::summary(self.name, summary, &mut self.text),
            Format::Json => json::summary(self.name, summary, &mut self.text),
        }
        self.flush()
    }
}
