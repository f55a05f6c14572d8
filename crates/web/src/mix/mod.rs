//! The mix: what is asked with each index, and on what kind of connection.

mod parameters;
mod popularity;

pub use parameters::{Parameters, Shares};

use crate::ads::{self, ADS, Ad, Chosen, FIRST_USER};
use crate::file_set::Place;
use plimsoll_keys::Words;
use popularity::{Popularity, Share, fraction};

/// Kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A file as it lies there.
    Static = 0,
    /// A file in a page that a program makes.
    Dynamic = 1,
    /// The same by a process that is started for it.
    Cgi = 2,
    /// The same with advertisements chosen for the user of the cookie.
    CustomAd = 3,
    /// The same, after something was written to the server's log.
    Post = 4,
}

/// All kinds, in the order of their numbers, with what records call them.
pub const KINDS: [(Kind, &str); 5] = [
    (Kind::Static, "static"),
    (Kind::Dynamic, "dynamic"),
    (Kind::Cgi, "cgi"),
    (Kind::CustomAd, "custom_ad"),
    (Kind::Post, "post"),
];

/// Tables of addressed random words: of a request, and of the connection that is opened for it.
const REQUESTS: u64 = 101;
const CONNECTIONS: u64 = 102;
/// Fields of a request.
const KIND: u64 = 0;
const PLACE: u64 = 10;
const USER: u64 = 20;
const LAST_AD: u64 = 21;
/// Fields of a connection.
const PERSISTENT: u64 = 0;
const VERSION: u64 = 1;
const LENGTH: u64 = 2;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its index.
    pub index: u64,
    /// What is asked for.
    pub kind: Kind,
    /// The file.
    pub place: Place,
    /// Who asks, from 0.
    pub user: u32,
    /// The advertisement that the user was shown last.
    pub last_ad: u16,
}

impl Request {
    /// The number of the user, as the cookie says it.
    pub fn user_number(&self) -> u32 {
        FIRST_USER + self.user
    }
}

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// HTTP/1.0, and not 1.1.
    pub old: bool,
    /// It is closed after so many requests; one that is not to be kept has one.
    pub requests: u32,
}

/// The mix.
#[derive(Clone, Debug)]
pub struct Mix {
    seed: u64,
    kinds: Share,
    popularity: Popularity,
    users: u32,
    /// Of the connections, so that the share of the requests is as asked for.
    persistent: f64,
    old: f64,
    requests: (u32, u32),
    ads: Vec<Ad>,
    directories: u32,
}

impl Mix {
    /// The mix of these parameters, over so many directories.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub fn new(parameters: &Parameters, directories: u32) -> Result<Self, String> {
        parameters.validate()?;
        let Parameters { seed, mix, classes, files, zipf, users, .. } = parameters;
        let kinds = Share::new("mix", &[mix.r#static, mix.dynamic, mix.cgi, mix.custom_ad, mix.post])?;
        let (low, high) = parameters.requests_a_connection;
        let mean = (f64::from(low) + f64::from(high)) / 2.0;
        let share = parameters.persistent;
        Ok(Self {
            seed: *seed,
            kinds,
            popularity: Popularity::new(*seed, classes, files, *zipf, directories)?,
            users: *users,
            persistent: share / (share + (1.0 - share) * mean),
            old: parameters.http_1_0,
            requests: (low, high),
            ads: ads::ads(*seed, 0),
            directories,
        })
    }

    /// Request `index`.
    pub fn request(&self, index: u64) -> Request {
        let words = Words::new(self.seed, REQUESTS, index);
        let (kind, _) = KINDS[self.kinds.of(&words, KIND)];
        Request {
            index,
            kind,
            place: self.popularity.place(&words, PLACE),
            user: words.below(USER, self.users.into()) as u32,
            last_ad: words.below(LAST_AD, ADS.into()) as u16,
        }
    }

    /// The connection that is opened for request `index`.
    pub fn connection(&self, index: u64) -> Connection {
        let words = Words::new(self.seed, CONNECTIONS, index);
        let (low, high) = self.requests;
        let persistent = fraction(words.word(PERSISTENT)) < self.persistent;
        let requests = if persistent { words.between(LENGTH, low.into(), high.into()) as u32 } else { 1 };
        Connection { old: fraction(words.word(VERSION)) < self.old, requests }
    }

    /// What the user of a request is to be shown. Advertisements expire far from now, so that none does in between.
    pub fn advertisement(&self, request: &Request) -> Option<(Chosen, Place)> {
        let chosen = ads::choose(&self.ads, ads::personality(self.seed, request.user), request.last_ad, 0)?;
        Some((chosen, self.ads[usize::from(chosen.ad)].picture(self.directories)))
    }
}
