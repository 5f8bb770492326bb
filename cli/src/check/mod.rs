//! `turnwire check`: reads what was said over a protocol, and shows where the contract is broken.
//!
//! Streams of any length take the memory of their longest line: they are read in pieces, and what is found is written
//! at once.

mod args;
mod human;
mod json;
mod junit;
mod sarif;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use turnwire::check::{Check, Checked, Summary};
use turnwire::protocol::observer::{Observed, Rule, Watch};

use crate::contracts::Checking;
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
/// [`Stop::Settings`] when there is nothing to read but a terminal, or the format has no verdicts on lines.
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
    if args.each && matches!(args.format, Format::Sarif | Format::Junit) {
        return Err(Stop::Settings(
            "check: --each goes with the formats human and json".to_owned(),
        ));
    }
    let done = args
        .protocol
        .with(args.wire, args.original, Reading { files, args });
    let done = done.map_err(|there_are| {
        Stop::Settings(format!("check: --wire of this protocol: {there_are}"))
    })?;
    done.or_else(|error| {
        // A reader that has seen enough is no fault worth a line.
        if error.kind() != io::ErrorKind::BrokenPipe {
            say::line(format_args!("writing the result: {error}"));
        }
        Ok(UNREADABLE)
    })
}

/// Reading the files, by the contract that was named.
struct Reading<'a> {
    files: &'a [PathBuf],
    args: &'a CheckArgs,
}

impl Checking for Reading<'_> {
    type Done = io::Result<u8>;

    fn run<P: Observed<Watch: Watch<Config: Copy>>>(
        self,
        config: <P::Watch as Watch>::Config,
    ) -> io::Result<u8> {
        let Reading { files, args } = self;
        all(files, args, || Check::<P>::new(config, args.from()))
    }
}

/// Which side failed.
enum Fault {
    Input(io::Error),
    Output(io::Error),
}

/// Checks the files one after the other. An error is one of the output.
fn all<P: Observed>(
    files: &[PathBuf],
    args: &CheckArgs,
    check: impl Fn() -> Check<P>,
) -> io::Result<u8> {
    let mut page = Page::new(args, P::RULES);
    let mut worst = CLEAN;
    for path in files {
        match one(check(), path, &mut page) {
            Ok(code) => worst = worst.max(code),
            Err(Fault::Input(error)) => {
                say::line(format_args!("{}: {error}", path.display()));
                page.failed(&error.to_string());
                worst = UNREADABLE;
            }
            Err(Fault::Output(error)) => return Err(error),
        }
    }
    page.finish(worst)?;
    Ok(worst)
}

/// Checks one file.
fn one<P: Observed>(mut check: Check<P>, path: &Path, page: &mut Page) -> Result<u8, Fault> {
    page.file(path);
    let (mut input, size) = open(path).map_err(Fault::Input)?;
    page.bar(size);
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

/// The form of the result.
enum Form {
    Human,
    Json,
    Sarif(sarif::Log),
    Junit(Box<junit::Book>),
}

/// Where the result goes: stdout, coloured if it is a terminal that wants it.
struct Page {
    form: Form,
    each: bool,
    /// The file that is read.
    name: String,
    out: anstream::AutoStream<io::Stdout>,
    text: Vec<u8>,
    fault: Option<io::Error>,
    bar: Option<ProgressBar>,
}

impl Page {
    fn new(args: &CheckArgs, rules: &'static [Rule]) -> Self {
        let mut text = Vec::new();
        Page {
            form: match args.format {
                Format::Human => Form::Human,
                Format::Json => Form::Json,
                Format::Sarif => Form::Sarif(sarif::Log::begin(rules, &mut text)),
                Format::Junit => Form::Junit(Box::new(junit::Book::new(rules))),
            },
            each: args.each,
            name: String::new(),
            out: anstream::stdout(),
            text,
            fault: None,
            bar: None,
        }
    }

    /// Goes on with this file.
    fn file(&mut self, path: &Path) {
        let path = if path == Path::new("-") {
            Path::new("stdin")
        } else {
            path
        };
        self.name = path.to_string_lossy().into_owned();
        match &mut self.form {
            Form::Human | Form::Json => {}
            Form::Sarif(log) => log.file(path),
            Form::Junit(book) => book.file(path),
        }
    }

    /// Shows how far it is, if the file is worth it.
    fn bar(&mut self, size: Option<u64>) {
        self.bar = size
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
    }

    fn put(&mut self, checked: &Checked<'_>) {
        if self.fault.is_some() || (matches!(checked, Checked::Line { .. }) && !self.each) {
            return;
        }
        match &mut self.form {
            Form::Human => human::put(&self.name, checked, &mut self.text),
            Form::Json => json::put(&self.name, checked, &mut self.text),
            Form::Sarif(log) => log.put(checked, &mut self.text),
            Form::Junit(book) => book.put(checked),
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

    /// The end of a file.
    fn end(&mut self, summary: &Summary) -> io::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        match &mut self.form {
            Form::Human => human::summary(&self.name, summary, &mut self.text),
            Form::Json => json::summary(&self.name, summary, &mut self.text),
            Form::Sarif(log) => log.summary(summary),
            Form::Junit(book) => book.summary(summary),
        }
        self.flush()
    }

    /// The file can't be read, or not to its end: stderr says so, and so do reports.
    fn failed(&mut self, why: &str) {
        self.bar = None;
        match &mut self.form {
            Form::Human | Form::Json => {}
            Form::Sarif(log) => log.failed(why),
            Form::Junit(book) => book.failed(why),
        }
    }

    /// The end of all.
    fn finish(&mut self, code: u8) -> io::Result<()> {
        match &self.form {
            Form::Human | Form::Json => {}
            Form::Sarif(log) => log.end(code, &mut self.text),
            Form::Junit(book) => book.end(&mut self.text)?,
        }
        self.flush()
    }
}
