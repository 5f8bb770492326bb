//! Single values, checked where they come in, so that a flag and a file are refused with the same words.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;
use url::Url;

/// Who plays the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's chat completions, which many servers speak.
    #[value(help = "OpenAI's chat completions, which many servers speak")]
    Openai,
    /// Anthropic's messages.
    #[value(help = "Anthropic's messages")]
    Anthropic,
    /// A script: the built-in one, or a file.
    #[value(help = "A script: the built-in one, or --script FILE")]
    Scripted,
}

impl Api {
    /// The word that files use.
    pub fn word(self) -> &'static str {
        match self {
            Api::Openai => "openai",
            Api::Anthropic => "anthropic",
            Api::Scripted => "scripted",
        }
    }
}

/// What the model may do without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// Everything.
    #[value(help = "Every tool runs unasked")]
    Auto,
    /// Read; the host is asked about the rest.
    #[value(help = "Reading runs unasked; the host is asked about the rest")]
    Ask,
    /// Read, and change files; the host is asked about the rest. Only another program's command line can say so.
    #[value(skip)]
    #[serde(skip)]
    Edits,
    /// Read; the rest is refused.
    #[value(help = "Reading runs unasked; the rest is refused")]
    Readonly,
    /// Read; the rest isn't run, since it is planned first. Only another program's command line can say so.
    #[value(skip)]
    #[serde(skip)]
    Plan,
    /// Read; what would be asked is denied. Only another program's command line can say so.
    #[value(skip)]
    #[serde(skip)]
    Never,
}

impl Approval {
    /// The word that files and protocols use.
    pub fn word(self) -> &'static str {
        match self {
            Approval::Auto => "auto",
            Approval::Ask => "ask",
            Approval::Edits => "edits",
            Approval::Readonly => "readonly",
            Approval::Plan => "plan",
            Approval::Never => "never",
        }
    }
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue(pub String);

impl fmt::Display for BadValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadValue {}

/// Reads a value out of a file by the same check as on the command line.
macro_rules! deserialize_by {
    ($name:ident, $from:ty) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                $name::checked(<$from>::deserialize(input)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// An address of a provider: http or https, no user, query or fragment, no slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    fn checked(text: String) -> Result<Self, BadValue> {
        // What stands in an address may be a secret put in the wrong place, so no message repeats it.
        let url =
            Url::parse(&text).map_err(|fault| BadValue(format!("not an address: {fault}")))?;
        let fault = if !matches!(url.scheme(), "http" | "https") {
            "an address begins with http:// or https://"
        } else if !url.username().is_empty() || url.password().is_some() {
            "an address holds no user name or password; put the key in an environment variable and name that"
        } else if url.query().is_some() || url.fragment().is_some() {
            "an address ends with its path; it has no ? and no #"
        } else {
            return Ok(BaseUrl(url));
        };
        Err(BadValue(fault.to_owned()))
    }

    /// As text, with no slash at the end.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// Whether what is sent there can be read on the way: plain http to another machine.
    pub fn is_open_to_view(&self) -> bool {
        let here = match self.0.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.0.scheme() == "http" && !here
    }
}

deserialize_by!(BaseUrl, String);

impl FromStr for BaseUrl {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.to_owned())
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvName(String);

impl EnvName {
    fn checked(text: String) -> Result<Self, BadValue> {
        let name = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name && !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) {
            return Ok(EnvName(text));
        }
        // A key given here by mistake must not be shown.
        Err(BadValue(
            "not the name of an environment variable (letters, digits and _)".to_owned(),
        ))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

deserialize_by!(EnvName, String);

impl FromStr for EnvName {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.to_owned())
    }
}

/// Randomness of a reply: 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f64);

impl Temperature {
    fn checked(number: f64) -> Result<Self, BadValue> {
        if (0.0..=2.0).contains(&number) {
            return Ok(Temperature(number));
        }
        Err(BadValue("a temperature is a number from 0 to 2".to_owned()))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

deserialize_by!(Temperature, f64);

impl FromStr for Temperature {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.parse().unwrap_or(f64::NAN))
    }
}

/// A number of tokens: 1 to 100 million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens(u64);

impl Tokens {
    const MOST: u64 = 100_000_000;

    fn checked(number: u64) -> Result<Self, BadValue> {
        if (1..=Self::MOST).contains(&number) {
            return Ok(Tokens(number));
        }
        Err(BadValue(format!(
            "a number of tokens is a whole number from 1 to {}",
            Self::MOST
        )))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

deserialize_by!(Tokens, u64);

impl FromStr for Tokens {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.parse().unwrap_or(0))
    }
}

/// A short time: 0 to 10,000 milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Millis(u32);

impl Millis {
    fn checked(number: u32) -> Result<Self, BadValue> {
        if number <= 10_000 {
            return Ok(Millis(number));
        }
        Err(BadValue(
            "a short time is a whole number of milliseconds from 0 to 10000".to_owned(),
        ))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

deserialize_by!(Millis, u32);

/// A time limit: a tenth of a second to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(Duration);

impl Seconds {
    fn checked(number: f64) -> Result<Self, BadValue> {
        if (0.1..=86_400.0).contains(&number) {
            return Ok(Seconds(Duration::from_secs_f64(number)));
        }
        Err(BadValue(
            "a time limit is a number of seconds from 0.1 to 86400".to_owned(),
        ))
    }

    /// The time.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Seconds {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.parse().unwrap_or(f64::NAN))
    }
}

deserialize_by!(Seconds, f64);

/// An amount in US dollars: 0 to a million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dollars(f64);

impl Dollars {
    fn checked(number: f64) -> Result<Self, BadValue> {
        if (0.0..=1e6).contains(&number) {
            return Ok(Dollars(number));
        }
        Err(BadValue(
            "an amount is a number of US dollars from 0 to 1000000".to_owned(),
        ))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// In millionths of a millionth of a dollar.
    pub fn pico(self) -> u64 {
        // At most 10^18, and never negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pico = (self.0 * 1e12).round() as u64;
        pico
    }

    /// The price of one of a million things that cost this together, in millionths of a millionth of a dollar.
    pub fn of_a_million(self) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pico = (self.0 * 1e6).round() as u64;
        pico
    }
}

deserialize_by!(Dollars, f64);

impl FromStr for Dollars {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::checked(text.parse().unwrap_or(f64::NAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_their_text_isnt_repeated() {
        for (text, want) in [
            ("http://localhost:11434/v1", "http://localhost:11434/v1"),
            ("https://api.example.com/v1/", "https://api.example.com/v1"),
            ("https://api.example.com", "https://api.example.com"),
        ] {
            assert_eq!(text.parse::<BaseUrl>().unwrap().as_str(), want);
        }
        for bad in [
            "sk-hidden",
            "ftp://hidden/x",
            "https://hidden:pw@h/v1",
            "https://h/v1?key=hidden",
            "",
            "/v1",
        ] {
            let fault = bad.parse::<BaseUrl>().unwrap_err().to_string();
            assert!(!fault.contains("hidden"), "{fault}");
        }
    }

    #[test]
    fn only_plain_http_to_another_machine_is_open_to_view() {
        for (text, want) in [
            ("http://localhost:1/v1", false),
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("https://example.com", false),
            ("http://example.com", true),
            ("http://192.168.0.7:8080", true),
        ] {
            assert_eq!(
                text.parse::<BaseUrl>().unwrap().is_open_to_view(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_have_limits() {
        assert!("0".parse::<Temperature>().is_ok() && "2".parse::<Temperature>().is_ok());
        for bad in ["-0.1", "2.1", "NaN", "warm", ""] {
            assert!(bad.parse::<Temperature>().is_err(), "{bad}");
        }
        assert!("1".parse::<Tokens>().is_ok() && "100000000".parse::<Tokens>().is_ok());
        for bad in ["0", "100000001", "-1", "1.5", "many"] {
            assert!(bad.parse::<Tokens>().is_err(), "{bad}");
        }
        assert!("0.1".parse::<Seconds>().is_ok() && "86400".parse::<Seconds>().is_ok());
        for (text, pico, of_a_million) in [
            ("0", 0, 0),
            ("1.25", 1_250_000_000_000, 1_250_000),
            ("1e-6", 1_000_000, 1),
            ("1000000", 1_000_000_000_000_000_000, 1_000_000_000_000),
        ] {
            let dollars: Dollars = text.parse().unwrap();
            assert_eq!(
                (dollars.pico(), dollars.of_a_million()),
                (pico, of_a_million)
            );
        }
        for bad in ["-1", "1000001", "NaN", "inf", "much"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
        }
        for bad in ["0", "0.09", "86401", "inf", "NaN", "soon"] {
            assert!(bad.parse::<Seconds>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_in_the_place_of_a_name_isnt_shown() {
        assert!("OPENAI_API_KEY".parse::<EnvName>().is_ok() && "_x9".parse::<EnvName>().is_ok());
        for bad in ["sk-hidden", "9x", "", "A B", "A=hidden"] {
            let fault = bad.parse::<EnvName>().unwrap_err().to_string();
            assert!(!fault.contains("hidden"), "{fault}");
        }
    }
}
