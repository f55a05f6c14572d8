//! The check of an answer while it arrives: status, cookie, and every byte of the file in it.
//!
//! The fact that constrains it: bodies are compared in the measured path. A body is seen once, in whatever pieces it comes; none of it is
//! kept but what has come of the few lines before the file in a page, and what is right costs no memory.

use crate::ads::Chosen;
use crate::file_set::{Contents, LINE_BYTES, PATH_BYTES, PLACEHOLDER, Part, Place, first_line};
use crate::mix::{Kind, Mix, Request};
use crate::post_log;
use crate::text::Text;
use serde::Deserialize;
use std::fmt::Write;

/// The title of every page that a program makes.
pub const TITLE: &str = "<title>Plimsoll web: dynamic GET and POST</title>";
/// What stands before the file in such a page.
pub const PRE: &str = "<pre>\n";
/// And what stands after it.
pub const PAGE_TAIL: &str = "</pre>\n</body></html>\n";
/// What stands before the path in the line of a page that repeats what was asked.
const QUERY: &str = "QUERY_STRING = ";
const COOKIE_BYTES_MAX: usize = 96;
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

/// The cookie that comes with an answer.
#[derive(Clone, Copy, Debug)]
enum Cookie {
    /// Of whatever kind.
    Any,
    /// What the user is shown.
    Found(Option<Chosen>),
    /// The number of a POST.
    Number(u64),
}

/// The check of one answer.
#[derive(Debug)]
pub struct Answer {
    place: Place,
    line: [u8; LINE_BYTES],
    verify: Verify,
    is_page: bool,
    /// The page repeats what was asked.
    repeats: bool,
    cookie: Cookie,
    /// What stands in the tags, where a program has replaced them.
    ad: Option<[u8; PATH_BYTES]>,
    at: At,
    /// What has come of the head of a page, until that is whole.
    head: Vec<u8>,
    fault: Option<Fault>,
}

impl Answer {
    /// What `mix` says that `request` is answered by.
    pub fn new(mix: &Mix, request: &Request, verify: Verify) -> Self {
        let is_page = request.kind != Kind::Static;
        let (mut cookie, mut ad) = (Cookie::Any, None);
        match request.kind {
            Kind::CustomAd => {
                let (chosen, picture) = mix.advertisement(request).unzip();
                ad = picture.map(Place::path_bytes);
                cookie = Cookie::Found(chosen);
            }
            Kind::Post => cookie = Cookie::Number(post_log::number(request.index)),
            Kind::Static | Kind::Dynamic | Kind::Cgi => {}
        }
        Self {
            place: request.place,
            line: first_line(request.place),
            verify,
            is_page,
            repeats: is_page && request.kind != Kind::Post,
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
        let mut expected = Text::<COOKIE_BYTES_MAX>::default();
        // There is room for the longest.
        let _ = match self.cookie {
            Cookie::Any => return,
            Cookie::Found(chosen) => Chosen::write_cookie(chosen, &mut expected),
            Cookie::Number(number) => write!(expected, "my_cookie={number}"),
        };
        let found = cookies.next().unwrap_or_default();
        if found != expected.bytes() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
            self.fault = Some(Fault::Cookie { expected: text(expected.bytes()), found: text(found) });
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
        let some = &bytes[..bytes.len().min(HEAD_BYTES_MAX - before)];
        // Nearly always it comes in one piece, of which nothing has to be kept.
        let kept = (before > 0).then(|| {
            self.head.extend_from_slice(some);
            std::mem::take(&mut self.head)
        });
        let head = kept.as_deref().unwrap_or(some);
        let Some(at) = place_of(head, PRE.as_bytes()) else {
            if head.len() == HEAD_BYTES_MAX {
                return Err(Fault::Page("it has no file"));
            }
            self.head = kept.unwrap_or_else(|| some.to_vec());
            return Ok(some.len());
        };
        if place_of(&head[..at], TITLE.as_bytes()).is_none() {
            return Err(Fault::Page("it has another title"));
        }
        if self.repeats && !self.is_repeated(&head[..at]) {
            return Err(Fault::Page("it is the answer to something else"));
        }
        self.at = At::File(0);
        Ok(at + PRE.len() - before)
    }

    /// Whether the head of a page has the line with what was asked.
    fn is_repeated(&self, head: &[u8]) -> bool {
        let path = self.place.path_bytes();
        let after = place_of(head, QUERY.as_bytes()).map(|at| &head[at + QUERY.len()..]);
        after.and_then(|after| after.strip_prefix(&path)).is_some_and(|after| after.starts_with(b"\n"))
    }

    fn file(&mut self, contents: &Contents, offset: usize, bytes: &[u8]) -> Result<usize, Fault> {
        let text = contents.text(self.place);
        let in_line = LINE_BYTES.saturating_sub(offset);
        let part = if in_line > 0 { Part::Text(in_line) } else { self.part(contents, offset) };
        let (expected, skips) = match part {
            Part::Text(_) if in_line > 0 => (&self.line[offset..], false),
            Part::Text(length) => (&text[offset..offset + length], self.verify == Verify::Marks),
            Part::AdPath(inside) => (&self.ad.as_ref().map_or(PLACEHOLDER.as_bytes(), |ad| &ad[..])[inside..], false),
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

/// Where a text is in another.
fn place_of(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = part.first()?;
    let mut at = 0;
    loop {
        at += text.get(at..)?.iter().position(|byte| byte == first)?;
        if text[at..].starts_with(part) {
            return Some(at);
        }
        at += 1;
    }
}
