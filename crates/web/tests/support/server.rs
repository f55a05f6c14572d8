//! A web server of the tests: a thread a connection, the file set, the dynamic part, and faults on demand.

use super::{DIRECTORIES, SEED, page};
use plimsoll_web::ads::{self, Chosen, FIRST_USER};
use plimsoll_web::post_log::{self, Posted};
use plimsoll_web::{Contents, PATH_BYTES, Place};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does wrong, each time that it has the occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    /// The last byte is missing, and the length says so.
    Truncated,
    /// The connection ends before the last byte.
    Cut,
    OtherFile,
    StaleCookie,
    AdNotReplaced,
    /// The POST is answered, and not in the log.
    PostLost,
    PostTwice,
    Status500,
    /// No answer at all.
    Silent,
    /// The connection ends after an answer that promised to keep it.
    ClosesUntold,
}

/// What a connection's bytes are put through.
pub(crate) trait Both: Read + Write + Send {}

impl<T: Read + Write + Send> Both for T {}

/// Makes such of a connection that was taken; none: it is closed at once.
pub(crate) type Wrap = Box<dyn Fn(TcpStream) -> Option<Box<dyn Both>> + Send + Sync>;

/// How the length of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    Close,
}

pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<State>,
}

struct State {
    seed: u64,
    directories: u32,
    contents: Contents,
    framing: Framing,
    wrong: Wrong,
    /// It is wrong in one of so many that it could be wrong in.
    one_in: u64,
    occasions: AtomicU64,
    requests: Mutex<BTreeMap<&'static str, u64>>,
    connections: AtomicU64,
    log: Mutex<Vec<String>>,
    stale: Mutex<String>,
    is_over: AtomicBool,
}

struct Asked {
    target: String,
    is_post: bool,
    old: bool,
    keeps: bool,
    cookie: String,
    body: String,
}

impl Server {
    pub(crate) fn start(
        seed: u64,
        directories: u32,
        ad_every_bytes: usize,
        framing: Framing,
        wrong: Wrong,
        one_in: u64,
    ) -> Self {
        let plain: Wrap = Box::new(|stream| Some(Box::new(stream)));
        Self::start_with(plain, seed, directories, ad_every_bytes, framing, wrong, one_in)
    }

    pub(crate) fn start_with(
        wrap: Wrap,
        seed: u64,
        directories: u32,
        ad_every_bytes: usize,
        framing: Framing,
        wrong: Wrong,
        one_in: u64,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            seed,
            directories,
            contents: Contents::new(ad_every_bytes),
            framing,
            wrong,
            one_in,
            occasions: AtomicU64::new(0),
            requests: Mutex::default(),
            connections: AtomicU64::new(0),
            log: Mutex::default(),
            stale: Mutex::new("none".to_owned()),
            is_over: AtomicBool::new(false),
        });
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (state, stream) = (Arc::clone(&served), stream.unwrap());
                let _ = stream.set_nodelay(true);
                let Some(stream) = wrap(stream) else { continue };
                std::thread::spawn(move || drop(state.serve(stream)));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// How often it was wrong.
    pub(crate) fn wrongs(&self) -> u64 {
        self.state.occasions.load(Ordering::Relaxed) / self.state.one_in
    }

    /// Requests by version and kind of connection.
    pub(crate) fn requests(&self, name: &str) -> u64 {
        self.state.requests.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// The post log, as the file would be.
    pub(crate) fn log(&self) -> Vec<u8> {
        let records = self.state.log.lock().unwrap();
        (post_log::count_line(records.len() as u64) + &records.concat()).into_bytes()
    }
}

/// A server of the seed and the directories that tests have, wrong in one of so many.
pub(crate) fn start(framing: Framing, wrong: Wrong, one_in: u64) -> Server {
    Server::start(SEED, DIRECTORIES, 1024, framing, wrong, one_in)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(&self.address));
    }
}

impl State {
    /// Whether to be wrong in this way this time.
    fn errs(&self, wrong: Wrong) -> bool {
        self.wrong == wrong && (self.occasions.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.one_in)
    }

    fn serve(&self, stream: Box<dyn Both>) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut is_counted = false;
        while let Some(asked) = ask(&mut reader)? {
            if !std::mem::replace(&mut is_counted, true) {
                self.connections.fetch_add(1, Ordering::Relaxed);
            }
            let name = if asked.old { "HTTP/1.0" } else { "HTTP/1.1" };
            for name in [name, if asked.keeps { "kept" } else { "last" }] {
                *self.requests.lock().unwrap().entry(name).or_default() += 1;
            }
            if self.errs(Wrong::Silent) {
                std::thread::sleep(Duration::from_secs(5));
                return Ok(());
            }
            if !self.answer(reader.get_mut(), &asked)? || self.errs(Wrong::ClosesUntold) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the connection is kept.
    fn answer(&self, stream: &mut impl Write, asked: &Asked) -> std::io::Result<bool> {
        let (mut cookie, mut body) = self.content(asked);
        let mut status = "200 OK";
        if self.errs(Wrong::Status500) {
            (status, body, cookie) = ("500 Internal Server Error", b"oops".to_vec(), None);
        }
        if self.errs(Wrong::Truncated) {
            body.pop();
        }
        let cut = usize::from(self.errs(Wrong::Cut));
        if let Some(now) = &mut cookie {
            let before = std::mem::replace(&mut *self.stale.lock().unwrap(), now.clone());
            if self.errs(Wrong::StaleCookie) {
                *now = before;
            }
        }
        let chunks = self.framing == Framing::Chunked && !asked.old;
        let until_close = self.framing == Framing::Close || self.framing == Framing::Chunked && asked.old;
        let keeps = asked.keeps && !until_close;
        let mut head = format!("HTTP/1.1 {status}\r\nServer: test\r\n");
        if let Some(cookie) = cookie {
            head += &format!("Set-Cookie: {cookie}; Path=/\r\n");
        }
        head += &match (chunks, until_close) {
            (true, _) => "Transfer-Encoding: chunked\r\n".to_owned(),
            (false, true) => String::new(),
            (false, false) => format!("Content-Length: {}\r\n", body.len()),
        };
        head += match (asked.old, keeps) {
            (_, false) => "Connection: close\r\n\r\n",
            (true, true) => "Connection: keep-alive\r\n\r\n",
            (false, true) => "\r\n",
        };
        let mut out = head.into_bytes();
        if chunks {
            for chunk in body.chunks(5_000) {
                out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
        } else {
            out.extend_from_slice(&body);
        }
        stream.write_all(&out[..out.len() - cut])?;
        stream.flush()?;
        Ok(keeps && cut == 0)
    }

    /// The cookie and the body.
    fn content(&self, asked: &Asked) -> (Option<String>, Vec<u8>) {
        let (script, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        if asked.is_post {
            return self.post(asked);
        }
        let path = if query.is_empty() { script } else { query };
        let mut place = Place::of_path(path).unwrap();
        if self.errs(Wrong::OtherFile) {
            place.directory = (place.directory + 1) % self.directories;
        }
        match script {
            "/web/dynamic" | "/web/cgi" => (None, page(path, &self.contents.file(place))),
            "/web/custom_ad" => {
                let (user, last) =
                    asked.cookie.strip_prefix("my_cookie=user_id=").unwrap().split_once("&last_ad=").unwrap();
                let who = ads::personality(self.seed, user.parse::<u32>().unwrap() - FIRST_USER);
                let all = ads::ads(self.seed, 0);
                let found = ads::choose(&all, who, last.parse().unwrap(), 0).unwrap();
                let picture = all[usize::from(found.ad)].picture(self.directories);
                let has_ads = self.contents.ad_paths(place).next().is_some();
                let plain = has_ads && self.errs(Wrong::AdNotReplaced);
                let file = if plain { self.contents.file(place) } else { self.contents.with_ads(place, picture) };
                (Some(Chosen::cookie(Some(found))), page(path, &file))
            }
            _ => (None, self.contents.file(place)),
        }
    }

    fn post(&self, asked: &Asked) -> (Option<String>, Vec<u8>) {
        let fields: BTreeMap<&str, &str> = asked.body.split('&').filter_map(|field| field.split_once('=')).collect();
        let number = |name: &str| fields[name].parse::<u64>().unwrap();
        let place = Place { directory: number("dir") as u32, class: number("class") as u8, file: number("num") as u8 };
        let cookie: u64 = asked.cookie.strip_prefix("my_cookie=").unwrap().parse().unwrap();
        let name = place.path();
        assert_eq!(name.len(), PATH_BYTES);
        let posted = Posted {
            directory: place.directory,
            class: place.class,
            file: place.file,
            client: number("client"),
            name: &name,
            cookie,
        };
        let mut log = self.log.lock().unwrap();
        let times = if self.errs(Wrong::PostLost) { 0 } else { 1 + u32::from(self.errs(Wrong::PostTwice)) };
        for _ in 0..times {
            let record = post_log::record(log.len() as u64 + 1, 1_700_000_000, 1, &posted);
            log.push(record);
        }
        (Some(format!("my_cookie={cookie}")), page("", &self.contents.file(place)))
    }
}

/// Reads a request; none at the end of the connection.
fn ask(reader: &mut impl BufRead) -> std::io::Result<Option<Asked>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let words: Vec<&str> = first.split_ascii_whitespace().collect();
    let (is_post, target, old) = (words[0] == "POST", words[1].to_owned(), words[2] == "HTTP/1.0");
    let (mut keeps, mut cookie, mut length) = (!old, String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            None => break,
            Some(("Connection", how)) => keeps = how == "keep-alive",
            Some(("Cookie", value)) => cookie = value.to_owned(),
            Some(("Content-Length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    Ok(Some(Asked { target, is_post, old, keeps, cookie, body }))
}
