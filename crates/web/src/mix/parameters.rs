//! What a request for the workload may say, with its defaults.
//!
//! The fact that constrains it: of the original only parts are public. Whatever is not is a parameter.

use crate::ads::USERS_MAX;
use crate::answer::Verify;
use serde::Deserialize;

/// Zipf's law over nine ranks, whose order is 4, 3, 5, 2, 6, 1, 7, 8, 0.
const FILES: [f64; 9] = [1.0 / 9.0, 1.0 / 6.0, 1.0 / 4.0, 1.0 / 2.0, 1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 8.0];
const REQUESTS_MAX: u32 = 1 << 30;

/// Shares of the kinds of request; what they sum to does not matter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "they are called as the kinds")]
pub struct Shares {
    #[serde(default)]
    pub r#static: f64,
    #[serde(default)]
    pub dynamic: f64,
    #[serde(default)]
    pub cgi: f64,
    #[serde(default)]
    pub custom_ad: f64,
    #[serde(default)]
    pub post: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { r#static: 70.0, dynamic: 12.45, cgi: 0.15, custom_ad: 12.6, post: 4.8 }
    }
}

/// The workload's part of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(rename = "name")]
    _name: Option<String>,
    /// Decides what every transaction is.
    pub seed: u64,
    /// Directories of the file set.
    pub directories: u32,
    /// A tag for an advertisement in each so many bytes of classes 1 and 2.
    #[serde(default = "kilobyte")]
    pub ad_every_bytes: u32,
    /// Shares of the kinds.
    #[serde(default)]
    pub mix: Shares,
    /// Shares of the classes of files.
    #[serde(default = "classes")]
    pub classes: [f64; 4],
    /// Shares of the files of a class.
    #[serde(default = "files")]
    pub files: [f64; 9],
    /// Exponent of the choice among directories; 0: all alike.
    #[serde(default = "one")]
    pub zipf: f64,
    /// Users who are shown advertisements.
    #[serde(default = "users")]
    pub users: u32,
    /// Share of the requests on connections that carry several.
    #[serde(default = "persistent")]
    pub persistent: f64,
    /// How many those carry: from, to.
    #[serde(default = "requests")]
    pub requests_a_connection: (u32, u32),
    /// Share of the connections that speak HTTP/1.0.
    #[serde(default = "half")]
    pub http_1_0: f64,
    /// The line speed of a connection, held by reading no faster; without it as fast as it comes.
    #[serde(default)]
    pub line_bits_per_s: Option<u64>,
    /// With a line speed: bytes of a read, those of a TCP segment.
    #[serde(default = "segment")]
    pub read_bytes: u32,
    /// With a line speed: the socket's receive buffer, so that what is not read stays at the server.
    #[serde(default = "receive_buffer")]
    pub receive_buffer_bytes: u32,
    /// A connection whose work was done at this speed or faster conforms.
    #[serde(default = "conforming")]
    pub conforming_bits_per_s: u64,
    /// A request without its whole answer after so long is lost.
    #[serde(default = "deadline")]
    pub deadline_ms: u32,
    /// How much of a body is compared.
    #[serde(default)]
    pub verify: Verify,
}

fn kilobyte() -> u32 {
    1024
}

fn classes() -> [f64; 4] {
    [35.0, 50.0, 14.0, 1.0]
}

fn files() -> [f64; 9] {
    FILES
}

fn one() -> f64 {
    1.0
}

fn half() -> f64 {
    0.5
}

fn users() -> u32 {
    2_000
}

fn persistent() -> f64 {
    0.7
}

fn requests() -> (u32, u32) {
    (5, 15)
}

fn segment() -> u32 {
    1_460
}

fn receive_buffer() -> u32 {
    16_384
}

fn conforming() -> u64 {
    320_000
}

fn deadline() -> u32 {
    30_000
}

impl Parameters {
    /// Checks what the types cannot, and what nobody else does.
    pub(super) fn validate(&self) -> Result<(), String> {
        let share = |name: &str, share: f64| match (0.0..=1.0).contains(&share) {
            true => Ok(()),
            false => Err(format!("{name}: {share} is not between 0 and 1")),
        };
        share("persistent", self.persistent)?;
        share("http_1_0", self.http_1_0)?;
        if !(0.0..=100.0).contains(&self.zipf) {
            return Err(format!("zipf: {} is not between 0 and 100", self.zipf));
        }
        if !(1..=USERS_MAX).contains(&self.users) {
            return Err(format!("users: {} is not between 1 and {USERS_MAX}", self.users));
        }
        let (low, high) = self.requests_a_connection;
        if !(1 <= low && low <= high && high <= REQUESTS_MAX) {
            return Err(format!("requests_a_connection: {low} to {high} is not a range within 1 to {REQUESTS_MAX}"));
        }
        if self.line_bits_per_s.is_some_and(|speed| !(1_000..=1_000_000_000_000).contains(&speed)) {
            return Err("line_bits_per_s: is not between 1000 and 1000000000000".to_owned());
        }
        if !(1..=65_536).contains(&self.read_bytes) {
            return Err(format!("read_bytes: {} is not between 1 and 65536", self.read_bytes));
        }
        if !(1_024..=1 << 30).contains(&self.receive_buffer_bytes) {
            return Err(format!(
                "receive_buffer_bytes: {} is not between 1024 and {}",
                self.receive_buffer_bytes,
                1 << 30
            ));
        }
        if !(1..=3_600_000).contains(&self.deadline_ms) {
            return Err(format!("deadline_ms: {} is not between 1 and 3600000", self.deadline_ms));
        }
        Ok(())
    }
}
