//! The check of an answer while it arrives: status, cookie, and every byte of the file in it.
//!
//! The fact that constrains it: bodies are compared in the measured path. A body is seen once, in whatever pieces it comes, and none
//! of it is kept but the few lines before the file in a page.

use crate::ads::Chosen;
use crate::file_set::{Contents, LINE_BYTES, PATH_BYTES, PLACEHOLDER, Part, Place, first_line};
use crate::mix::{Kind, Mix, Request};
use crate::post_log;
use serde::Deserialize;

/// The title of every page that a program makes.
pub const TITLE: &str = "<title>Plimsoll web: dynamic GET and POST</title>";
/// What stands before the file in such a page.
pub const PRE: &str = "<pre>\n";
/// And what stands after it.
pub const PAGE_TAIL: &str = "</pre>\n</body></html>\n";
/// What stands before the file in a page is shorter.
const HEAD_BYTES_MAX: usize = 4096;
const OK: u16 = 200;

/// How much of a body is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Every byte.
    #[default]
    Whole,
    /// Its length, its first line and the advertisements in it.
    Marks,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is no success.
    #[error("status {0}")]
    Status(u16),
    /// The body is shorter or longer than the file, or than the page with it.
    #[error("the body ends after {found} bytes of the file, which has {expected}")]
    Length {
        /// Bytes of the file.
        expected: usize,
        /// Bytes that arrived of it.
        found: usize,
    },
    /// Bytes follow after the file, or after the page.
    #[error("the body goes on after its end")]
    TooLong,
    /// The first line is not that of the file asked for.
    #[error("the first line is not that of {0}")]
    WrongFile(String),
    /// A byte differs.
    #[error("byte {0} of the file differs")]
    Content(usize),
    /// The cookie is another one, or there is none.
    #[error("the cookie is \"{found}\" and not \"{expected}\"")]
    Cookie {
        /// What it is to be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A tag is as it lies in the file.
    #[error("the advertisement at byte {0} was not replaced")]
    AdNotReplaced(usize),
    /// A tag names another picture.
    #[error("the advertisement at byte {0} is not the one that suits the user")]
    WrongAd(usize),
    /// What stands around the file in a page.
    #[error("the page: {0}")]
    Page(&'static str),
}

/// Names of the faults, as totals count them.
pub const FAULTS: [&str; 8] = [
    "wrong_status",
    "wrong_length",
    "wrong_file",
    "wrong_content",
    "wrong_cookie",
    "ads_not_replaced",
    "wrong_ads",
    "wrong_pages",
];

impl Fault {
    /// Its place in [`FAULTS`].
    pub fn number(&self) -> usize {
        match self {
            Self::Status(_) => 0,
            Self::Length { .. } | Self::TooLong => 1,
            Self::WrongFile(_) => 2,
            Self::Content(_) => 3,
            Self::Cookie { .. } => 4,
            Self::AdNotReplaced(_) => 5,
            Self::WrongAd(_) => 6,
            Self::Page(_) => 7,
        }
    }
}

/// Where in a body the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    PageHead,
    File(usize),
    PageTail(usize),
}

/// The check of one answer.
#[derive(Debug)]
pub struct Answer {
    place: Place,
    line: [u8; LINE_BYTES],
    verify: Verify,
    is_page: bool,
    /// The line of a page that repeats what was asked.
    query: Option<String>,
    cookie: Option<String>,
    /// What stands in the tags, where a program has replaced them.
    ad: Option<String>,
    at: At,
    head: Vec<u8>,
    fault: Option<Fault>,
}

impl Answer {
    /// What `mix` says that `request` is answered by.
    pub fn new(mix: &Mix, request: &Request, verify: Verify) -> Self {
        let is_page = request.kind != Kind::Static;
        let (mut cookie, mut ad) = (None, None);
        match request.kind {
            Kind::CustomAd => {
                let found = mix.advertisement(request);
                ad = found.map(|(_, picture)| picture.path());
                cookie = Some(Chosen::cookie(found.map(|(chosen, _)| chosen)));
            }
            Kind::Post => cookie = Some(format!("my_cookie={}", post_log::number(request.index))),
            Kind::Static | Kind::Dynamic | Kind::Cgi => {}
        }
        let repeats = is_page && request.kind != Kind::Post;
        Self {
            place: request.place,
            line: first_line(request.place),
            verify,
            is_page,
            query: repeats.then(|| format!("QUERY_STRING = {}\n", request.place.path())),
            cookie,
            ad,
            at: if is_page { At::PageHead } else { At::File(0) },
            head: Vec::new(),
            fault: None,
        }
    }

    /// Takes the status and the cookies that are set, without what follows their values.
    pub fn head<'a>(&mut self, status: u16, mut cookies: impl Iterator<Item = &'a [u8]>) {
        if status != OK {
            self.fault = Some(Fault::Status(status));
            return;
        }
        let Some(expected) = self.cookie.take() else { return };
        let found = cookies.next().unwrap_or_default();
        if found != expected.as_bytes() {
            let found = String::from_utf8_lossy(&found[..found.len().min(100)]).into_owned();
            self.fault = Some(Fault::Cookie { expected, found });
        }
    }

    /// Takes the next bytes of the body.
    pub fn body(&mut self, contents: &Contents, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.fault.is_none() {
            let taken = match self.at {
                At::PageHead => self.page_head(rest),
                At::File(offset) if offset < self.place.size() => self.file(contents, offset, rest),
                At::File(_) if self.is_page => {
                    self.at = At::PageTail(0);
                    Ok(0)
                }
                At::File(_) => Err(Fault::TooLong),
                At::PageTail(offset) => self.page_tail(offset, rest),
            };
            match taken {
                Ok(taken) => rest = &rest[taken..],
                Err(fault) => self.fault = Some(fault),
            }
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// What is wrong with it, the first of all.
    pub fn end(self) -> Result<(), Fault> {
        let (size, tail) = (self.place.size(), PAGE_TAIL.len());
        match (self.fault, self.at) {
            (Some(fault), _) => Err(fault),
            (None, At::PageHead) => Err(Fault::Page("it has no file")),
            (None, At::File(found)) if found < size => Err(Fault::Length { expected: size, found }),
            (None, At::File(_)) if self.is_page => Err(Fault::Page("it ends with the file")),
            (None, At::PageTail(found)) if found < tail => Err(Fault::Page("it has no end")),
            (None, At::File(_) | At::PageTail(_)) => Ok(()),
        }
    }

    fn page_head(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let before = self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES_MAX - before)]);
        let Some(at) = self.head.windows(PRE.len()).position(|window| window == PRE.as_bytes()) else {
            let full = self.head.len() == HEAD_BYTES_MAX;
            return if full { Err(Fault::Page("it has no file")) } else { Ok(self.head.len() - before) };
        };
        let has = |text: &str| self.head[..at].windows(text.len()).any(|window| window == text.as_bytes());
        if !has(TITLE) {
            return Err(Fault::Page("it has another title"));
        }
        if self.query.as_deref().is_some_and(|query| !has(query)) {
            return Err(Fault::Page("it is the answer to something else"));
        }
        self.at = At::File(0);
        Ok(at + PRE.len() - before)
    }

    fn file(&mut self, contents: &Contents, offset: usize, bytes: &[u8]) -> Result<usize, Fault> {
        let text = contents.text(self.place);
        let in_line = LINE_BYTES.saturating_sub(offset);
        let part = if in_line > 0 { Part::Text(in_line) } else { self.part(contents, offset) };
        let (expected, skips) = match part {
            Part::Text(_) if in_line > 0 => (&self.line[offset..], false),
            Part::Text(length) => (&text[offset..offset + length], self.verify == Verify::Marks),
            Part::AdPath(inside) => (&self.ad.as_deref().unwrap_or(PLACEHOLDER).as_bytes()[inside..], false),
        };
        let length = expected.len().min(bytes.len());
        let found = &bytes[..length];
        if !skips && found != &expected[..length] {
            return Err(self.difference(offset, part, found, &expected[..length]));
        }
        self.at = At::File(offset + length);
        Ok(length)
    }

    /// What the file has there; where no advertisement is to be put, all of it is text.
    fn part(&self, contents: &Contents, offset: usize) -> Part {
        match self.ad {
            Some(_) => contents.part(self.place, offset),
            None => Part::Text(self.place.size() - offset),
        }
    }

    fn difference(&self, offset: usize, part: Part, found: &[u8], expected: &[u8]) -> Fault {
        if offset < LINE_BYTES {
            return Fault::WrongFile(self.place.path());
        }
        let first = offset + found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
        match part {
            Part::AdPath(inside)
                if *found == PLACEHOLDER.as_bytes()[inside..(inside + found.len()).min(PATH_BYTES)] =>
            {
                Fault::AdNotReplaced(offset - inside)
            }
            Part::AdPath(inside) => Fault::WrongAd(offset - inside),
            Part::Text(_) => Fault::Content(first),
        }
    }

    fn page_tail(&mut self, offset: usize, bytes: &[u8]) -> Result<usize, Fault> {
        let expected = &PAGE_TAIL.as_bytes()[offset..];
        if expected.is_empty() {
            return Err(Fault::TooLong);
        }
        let length = expected.len().min(bytes.len());
        if bytes[..length] != expected[..length] {
            return Err(Fault::Page("after the file comes something else"));
        }
        self.at = At::PageTail(offset + length);
        Ok(length)
    }
}
