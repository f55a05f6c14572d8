//! The program behind a server: what answers the requests that are no plain file. It is asked by whatever speaks to the server.
//!
//! The fact that constrains it: several processes of it may run side by side. So the log is written under a lock of the file's own, and
//! the two data files are looked at for each user, for they may have been made anew since.

mod log;
mod shown;

use crate::ads::{Chosen, FIRST_USER};
use crate::answer::{PAGE_TAIL, PRE, TITLE};
use crate::file_set::Place;
use crate::post_log::Posted;
use shown::Shown;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What a server hands on of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The path, without what follows a question mark.
    pub script: &'a str,
    /// What follows it.
    pub query: &'a str,
    /// The header `Cookie`.
    pub cookie: &'a str,
    /// What was posted; `None` of a GET.
    pub body: Option<&'a str>,
    /// What the server calls itself.
    pub software: &'a str,
    /// Who asks.
    pub address: &'a str,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// 200, or what went wrong.
    pub status: u16,
    /// The cookie that is set.
    pub cookie: Option<String>,
    /// A page.
    pub body: Vec<u8>,
}

/// The program.
#[derive(Debug)]
pub struct Program {
    root: PathBuf,
    folder: PathBuf,
    shown: Mutex<Shown>,
}

impl Program {
    /// One for the files below `root`, with its own files in `folder`.
    pub fn new(root: &Path, folder: &Path) -> Self {
        Self { root: root.to_owned(), folder: folder.to_owned(), shown: Mutex::default() }
    }

    /// Answers a request at `now_s`, in seconds since 1970, as the process `pid`.
    pub fn answer(&self, asked: &Asked<'_>, now_s: i64, pid: u32) -> Answered {
        let answered = match asked.body {
            Some(body) => self.post(asked, body, now_s, pid),
            None => self.get(asked, now_s),
        };
        answered.unwrap_or_else(|(status, why)| Answered { status, cookie: None, body: why.into_bytes() })
    }

    fn get(&self, asked: &Asked<'_>, now_s: i64) -> Result<Answered, (u16, String)> {
        let place = Place::of_path(asked.query).ok_or_else(|| (404, "no such file\n".to_owned()))?;
        let mut file = self.file(place)?;
        let mut cookie = None;
        if let Some(who) = asked.cookie.strip_prefix("my_cookie=user_id=") {
            let (chosen, picture) = self.advertisement(who, now_s)?.unzip();
            if let (1 | 2, Some(picture)) = (place.class, picture) {
                shown::replace(&mut file, picture);
            }
            cookie = Some(Chosen::cookie(chosen));
        }
        Ok(Answered { status: 200, cookie, body: page(asked, &file) })
    }

    /// What the user is shown; `None` where the user is unknown or nothing suits.
    fn advertisement(&self, who: &str, now_s: i64) -> Result<Option<(Chosen, Place)>, (u16, String)> {
        let numbers = who.split_once("&last_ad=");
        let read = numbers.and_then(|(user, last)| Some((user.parse::<u32>().ok()?, last.parse().ok()?)));
        let Some((user, last)) = read else { return Ok(None) };
        let mut shown = self.shown.lock().map_err(|_| failed("the advertisements"))?;
        shown.renew(&self.folder).map_err(|why| (500, why))?;
        let user = user.checked_sub(FIRST_USER).map(|user| user as usize);
        Ok(user.and_then(|user| shown.choose(user, last, now_s, self.directories())))
    }

    /// How many directories there are, of those in which pictures are.
    fn directories(&self) -> u32 {
        let is_there = |directory: &u32| self.root.join(format!("file_set/dir{directory:05}")).is_dir();
        (0..shown::PICTURE_DIRECTORIES).take_while(is_there).count().max(1) as u32
    }

    fn post(&self, asked: &Asked<'_>, body: &str, now_s: i64, pid: u32) -> Result<Answered, (u16, String)> {
        let wrong = || (400, "what was posted cannot be read\n".to_owned());
        let field = |name: &str| {
            let named =
                |field: &str| field.split_once('=').filter(|(of, _)| *of == name).map(|(_, value)| value.to_owned());
            body.split('&').find_map(named).and_then(|value| value.parse::<u64>().ok())
        };
        let number = |name| field(name).ok_or_else(wrong);
        let (directory, class, file) = (number("dir")?, number("class")?, number("num")?);
        let path = format!("/file_set/dir{directory:05}/class{class}_{file}");
        let place = Place::of_path(&path).ok_or_else(wrong)?;
        let cookie = asked.cookie.strip_prefix("my_cookie=").and_then(|value| value.parse().ok()).ok_or_else(wrong)?;
        let client = number("client")?;
        let Place { directory, class, file } = place;
        let posted = Posted { directory, class, file, client, name: &path, cookie };
        let file = self.file(place)?;
        log::append(&self.folder.join(log::NAME), &posted, now_s, pid).map_err(|error| failed(&error.to_string()))?;
        Ok(Answered { status: 200, cookie: Some(format!("my_cookie={cookie}")), body: page(asked, &file) })
    }

    fn file(&self, place: Place) -> Result<Vec<u8>, (u16, String)> {
        std::fs::read(self.root.join(&place.path()[1..])).map_err(|error| (404, format!("{}: {error}\n", place.path())))
    }
}

fn failed(why: &str) -> (u16, String) {
    (500, format!("{why}\n"))
}

fn page(asked: &Asked<'_>, file: &[u8]) -> Vec<u8> {
    let Asked { software, address, script, query, .. } = asked;
    let head = format!(
        "<html>\n<head>{TITLE}</head>\n<body>\n<p>SERVER_SOFTWARE = {software}\n<p>REMOTE_ADDR = {address}\n\
         <p>SCRIPT_NAME = {script}\n<p>QUERY_STRING = {query}\n{PRE}"
    );
    [head.as_bytes(), file, PAGE_TAIL.as_bytes()].concat()
}
