//! The observer between a host and a Server: what the Server writes never breaks the contract, whatever else happens.

use turnwire::frame::Split;
use turnwire::protocol::observer::Dir;
use turnwire::protocol::openmax::{ObserverConfig, Openmax};
use turnwire_proptests::wiretap::Wiretap;

/// An observer of both directions that fails the test on a finding of weight.
#[derive(Debug)]
pub struct Watched(Wiretap<Openmax>);

impl Watched {
    pub fn new() -> Self {
        Watched(Wiretap::new(ObserverConfig::default()))
    }

    pub fn host(&mut self, line: &Split<'_>) {
        self.0.line(Dir::Host, *line);
        self.judge();
    }

    pub fn agent(&mut self, bytes: &[u8]) {
        self.0.agent(bytes);
        self.judge();
    }

    pub fn host_end(&mut self) {
        self.0.end(Dir::Host);
        self.judge();
    }

    /// The process has left with this code: nothing more comes.
    pub fn exit(&mut self, code: u8) {
        self.0.end(Dir::Agent);
        self.0.exit(i64::from(code));
        self.judge();
    }

    fn judge(&self) {
        // A crash or a signal excuses this one.
        if let Some(breach) = self.0.breach(&["OM-14.e"]) {
            panic!("{breach}");
        }
    }
}
