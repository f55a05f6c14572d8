//! The program: what answers the requests that are no plain file. It is asked by whatever speaks to the server.
//!
//! The fact that constrains it: several processes of it may run side by side. So the log is written under a lock of the file's own, and
//! the two data files are looked at for each user, for they may have been made anew since.

mod files;
mod log;
mod shown;

pub use files::reset;

use plimsoll_web::ads::{Chosen, FIRST_USER};
use plimsoll_web::post_log::Posted;
use plimsoll_web::{PAGE_TAIL, PRE, Place, TITLE};
use shown::Shown;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const HTML: &str = "text/html";
const TEXT: &str = "text/plain";
/// The last name of the path by which it is told to do something with its files.
const COMMAND: &str = "command";
/// What is said before the cause on standard error where a POST cannot be logged; the front looks for it (run/servers/web/at_work.py).
const LOG_REFUSES: &str = "POSTs cannot be logged and are refused";

/// What a server hands on of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The path, without what follows a question mark. All are answered alike but for one whose last name is `command`.
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
    /// Of what kind the body is.
    pub media: &'static str,
    /// A page, the log, or a line that says what went wrong.
    pub body: Vec<u8>,
}

/// A status and why.
type Refused = (u16, String);

/// The program.
#[derive(Debug)]
pub struct Program {
    root: PathBuf,
    folder: PathBuf,
    shown: Mutex<Shown>,
    refuses_posts: AtomicBool,
}

impl Program {
    /// One for the files below `root`, with its own files in `folder`.
    pub fn new(root: &Path, folder: &Path) -> Self {
        Self {
            root: root.to_owned(),
            folder: folder.to_owned(),
            shown: Mutex::default(),
            refuses_posts: AtomicBool::new(false),
        }
    }

    /// Answers a request at `now_s`, in seconds since 1970, as the process `pid`.
    pub fn answer(&self, asked: &Asked<'_>, now_s: i64, pid: u32) -> Answered {
        let answered = match asked.body {
            Some(body) => self.post(asked, body, now_s, pid),
            None if asked.script.rsplit('/').next() == Some(COMMAND) => self.command(asked.query, now_s),
            None => self.get(asked, now_s),
        };
        let refused = |(status, why): Refused| Answered { status, cookie: None, media: TEXT, body: why.into_bytes() };
        answered.unwrap_or_else(refused)
    }

    /// `Reset&seed=S&users=U` makes the two data files anew and the log empty, `Fetch` gives the log.
    fn command(&self, query: &str, now_s: i64) -> Result<Answered, Refused> {
        let done = |body| Answered { status: 200, cookie: None, media: TEXT, body };
        let failed = |error: io::Error| failed(&error.to_string());
        match query.split_once('&').unwrap_or((query, "")) {
            ("Fetch", "") => log::read(&self.folder).map(done).map_err(failed),
            ("Reset", fields) => {
                let (seed, users) = files::asked(fields).map_err(|why| (400, format!("Reset: {why}\n")))?;
                reset(&self.folder, seed, users, now_s).map_err(failed)?;
                Ok(done(b"reset\n".to_vec()))
            }
            _ => Err((400, "a command is Reset&seed=S&users=U, or Fetch\n".to_owned())),
        }
    }

    fn get(&self, asked: &Asked<'_>, now_s: i64) -> Result<Answered, Refused> {
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
        Ok(Answered { status: 200, cookie, media: HTML, body: page(asked, &file) })
    }

    /// What the user is shown; `None` where the user is unknown or nothing suits.
    fn advertisement(&self, who: &str, now_s: i64) -> Result<Option<(Chosen, Place)>, Refused> {
        let numbers = who.split_once("&last_ad=");
        let read = numbers.and_then(|(user, last)| Some((user.parse::<u32>().ok()?, last.parse().ok()?)));
        let Some((user, last)) = read else { return Ok(None) };
        let mut shown = self.shown.lock().map_err(|_| failed("the advertisements"))?;
        shown.renew(&self.root, &self.folder).map_err(|why| (500, why))?;
        let user = user.checked_sub(FIRST_USER).map(|user| user as usize);
        Ok(user.and_then(|user| shown.choose(user, last, now_s)))
    }

    fn post(&self, asked: &Asked<'_>, body: &str, now_s: i64, pid: u32) -> Result<Answered, Refused> {
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
        let logged = log::append(&self.folder, &posted, now_s, pid);
        self.tell_of(logged.as_ref().err());
        logged.map_err(|error| failed(&error.to_string()))?;
        Ok(Answered { status: 200, cookie: Some(format!("my_cookie={cookie}")), media: HTML, body: page(asked, &file) })
    }

    /// Says once, on standard error, that POSTs cannot be logged, and again after some could.
    fn tell_of(&self, error: Option<&io::Error>) {
        let was_refused = self.refuses_posts.swap(error.is_some(), Ordering::Relaxed);
        if let Some(error) = error.filter(|_| !was_refused) {
            // At once, for the server writes there too. Whether anybody hears it changes nothing: the POST is refused.
            let _ = io::stderr().write_all(format!("{LOG_REFUSES}: {error}\n").as_bytes());
        }
    }

    fn file(&self, place: Place) -> Result<Vec<u8>, Refused> {
        std::fs::read(self.root.join(&place.path()[1..])).map_err(|error| (404, format!("{}: {error}\n", place.path())))
    }
}

fn failed(why: &str) -> Refused {
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
