//! A client: it connects, asks, reads no faster than its line, and judges the answer.
//!
//! The fact that constrains it: a server may end a connection that is kept whenever nothing is asked on it. A request that meets
//! that end before any of its answer is asked again on a new connection, as browsers do; a POST only if none of it was sent.

use super::asking::{self, Manner};
use super::pace::Pace;
use super::site::Site;
use super::socket::{Halt, Received};
use super::stream::Stream;
use super::tally::Tally;
use crate::answer::{Answer, Fault};
use crate::file_set::Contents;
use crate::http::{HttpError, Response, Sink, Taken};
use crate::mix::{Kind, Request};
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, Ending, Failure, Progress, Ready, Session, SessionReport};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a read where there is no line speed.
const READ_BYTES: usize = 65_536;

thread_local! {
    /// What arrives is judged at once and not kept, so thousands of sessions need one buffer.
    static ARRIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// The connection that is open.
#[derive(Clone, Copy, Debug)]
struct Connected {
    old: bool,
    /// Requests that it may still carry, the one under way included.
    left: u32,
    /// The server has begun to close it.
    is_closing: bool,
    has_carried: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Begun,
    Sending,
    Receiving,
    /// The answer is there, and the line has yet to carry its last bytes.
    Settling,
}

/// A client of a web server.
pub(super) struct WebSession {
    site: Arc<Site>,
    stream: Stream,
    connected: Option<Connected>,
    step: Step,
    request: Option<Request>,
    answer: Option<Answer>,
    out: Vec<u8>,
    sent: usize,
    retries: u32,
    /// This transaction's socket has yet to be told to the engine.
    has_moved: bool,
    response: Response,
    pace: Option<Pace>,
    /// Bytes may be there that were not read.
    is_readable: bool,
    began_ns: i64,
    patience_ns: i64,
    tally: Tally,
}

struct Judge<'a>(&'a mut Answer, &'a Contents);

impl Sink for Judge<'_> {
    fn head<'a>(&mut self, status: u16, cookies: impl Iterator<Item = &'a [u8]>) {
        self.0.head(status, cookies);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.0.body(self.1, bytes);
    }
}

impl WebSession {
    pub(super) fn new(site: Arc<Site>) -> Result<Self, std::io::Error> {
        let parameters = site.web.parameters();
        Ok(Self {
            stream: Stream::new(&site.address)?,
            connected: None,
            step: Step::Idle,
            request: None,
            answer: None,
            out: Vec::new(),
            sent: 0,
            retries: 0,
            has_moved: false,
            response: Response::default(),
            pace: parameters.line_bits_per_s.map(Pace::new),
            is_readable: false,
            began_ns: 0,
            patience_ns: i64::from(parameters.deadline_ms) * 1_000_000,
            tally: Tally::default(),
            site,
        })
    }

    /// Something happened on the connection while nothing was asked on it.
    fn notice(&mut self) {
        if self.connected.is_some() && !self.stream.is_silent() {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        if self.connected.take().is_some() {
            self.stream.hang_up();
        }
    }

    /// Writes the request, on the connection that is there or as the first one of another.
    fn write_request(&mut self) {
        let Some(request) = self.request else { return };
        let usable = self.connected.filter(|connected| connected.left > 0 && !connected.is_closing);
        let (old, left) = match usable {
            Some(Connected { old, left, .. }) => (old, left),
            None => {
                let plan = self.site.web.mix().connection(request.index);
                self.connected = None;
                (plan.old, plan.requests)
            }
        };
        asking::write(&mut self.out, &self.site.address.origin, &request, Manner { old, last: left == 1 });
    }

    /// Sends what is left of the request, connecting first where there is no connection.
    fn send(&mut self) -> Progress {
        loop {
            if self.connected.is_none()
                && let Err(why) = self.connect()
            {
                return self.unreachable(&why);
            }
            match self.stream.send(&self.out[self.sent..]) {
                Ok(bytes) => {
                    self.sent += bytes;
                    if self.sent == self.out.len() {
                        self.step = Step::Receiving;
                        self.tally.requests += 1;
                        return self.wait(false);
                    }
                }
                Err(Halt::Broken(_)) if self.may_ask_again() => self.ask_again(),
                Err(Halt::Broken(why)) if self.is_new() && self.sent == 0 => return self.unreachable(&why),
                Err(Halt::Broken(why)) => return self.broken(&why),
                Err(halt) => {
                    self.step = Step::Sending;
                    return self.wait(halt == Halt::ToWrite);
                }
            }
        }
    }

    fn connect(&mut self) -> Result<(), String> {
        let Some(request) = self.request else { return Ok(()) };
        let parameters = self.site.web.parameters();
        let receive_bytes = self.pace.map(|_| parameters.receive_buffer_bytes);
        self.stream.connect(receive_bytes)?;
        let plan = self.site.web.mix().connection(request.index);
        self.connected = Some(Connected { old: plan.old, left: plan.requests, is_closing: false, has_carried: false });
        self.has_moved = true;
        self.is_readable = false;
        self.tally.connections += 1;
        Ok(())
    }

    fn wait(&mut self, to_write: bool) -> Progress {
        match std::mem::take(&mut self.has_moved) {
            true => Progress::Moved { to_write },
            false => Progress::Waiting { to_write },
        }
    }

    fn is_new(&self) -> bool {
        self.connected.is_none_or(|connected| !connected.has_carried)
    }

    /// Whether the server has ended a connection on which it had nothing to do.
    fn may_ask_again(&self) -> bool {
        let is_post = self.request.is_some_and(|request| request.kind == Kind::Post);
        let may = if is_post { self.sent == 0 } else { !self.response.has_begun() };
        may && !self.is_new() && self.retries == 0
    }

    fn ask_again(&mut self) {
        self.retries += 1;
        self.connected = None;
        self.sent = 0;
        self.response.begin();
        self.write_request();
    }

    fn receive(&mut self) -> Progress {
        ARRIVED.with_borrow_mut(|arrived| self.receive_into(arrived))
    }

    fn receive_into(&mut self, arrived: &mut [u8]) -> Progress {
        let length = if self.pace.is_some() { self.site.web.parameters().read_bytes as usize } else { READ_BYTES };
        loop {
            if let Some(resting) = self.rest() {
                return resting;
            }
            if !self.is_readable {
                return Progress::Waiting { to_write: false };
            }
            match self.stream.receive(&mut arrived[..length]) {
                Ok(Received { is_over: true, .. }) => return self.cut(None),
                Ok(Received { bytes, wire, is_drained, .. }) => {
                    self.tally.received_bytes += bytes as u64;
                    if let Some(pace) = &mut self.pace {
                        pace.read(wire, now_ns());
                    }
                    match self.judge(&arrived[..bytes]) {
                        Ok(Taken::More) => {}
                        Ok(Taken::Over(taken)) => return self.over(taken == bytes),
                        Err(error) => return self.broken(&error.to_string()),
                    }
                    // The end of the connection is told with its last bytes.
                    let is_closing = self.connected.is_some_and(|connected| connected.is_closing);
                    self.is_readable = !is_drained || is_closing;
                }
                Err(Halt::Broken(why)) => return self.cut(Some(&why)),
                Err(Halt::ToRead | Halt::ToWrite) => self.is_readable = false,
            }
        }
    }

    fn judge(&mut self, bytes: &[u8]) -> Result<Taken, HttpError> {
        let Some(answer) = &mut self.answer else { return Ok(Taken::Over(0)) };
        self.response.take(bytes, &mut Judge(answer, self.site.web.files().contents()))
    }

    /// Rests until the line has carried what was read.
    fn rest(&self) -> Option<Progress> {
        let pace = self.pace.as_ref()?;
        let ns = pace.due_ns().saturating_sub(if pace.due_ns() > 0 { now_ns() } else { 0 });
        (ns > 0).then_some(Progress::Resting { ns })
    }

    /// The connection has ended, or broken, within an answer.
    fn cut(&mut self, why: Option<&str>) -> Progress {
        match (self.response.cut(), why) {
            (Ok(()), None) => self.over(false),
            _ if self.may_ask_again() => {
                self.ask_again();
                self.send()
            }
            (_, Some(why)) => self.broken(why),
            (Err(cut), None) => self.broken(&cut.to_string()),
        }
    }

    /// The whole answer is there; the connection is left as the server said it is.
    fn over(&mut self, is_clean: bool) -> Progress {
        let keeps = is_clean && self.response.keeps();
        if let Some(connected) = &mut self.connected {
            connected.has_carried = true;
            connected.left -= 1;
            if !keeps {
                connected.left = 0;
            }
        }
        self.step = Step::Settling;
        self.settle()
    }

    fn settle(&mut self) -> Progress {
        if let Some(resting) = self.rest() {
            return resting;
        }
        if let Some((bytes, since_ns)) = self.pace.as_ref().and_then(Pace::carried) {
            self.tally.carried(bytes, now_ns() - since_ns);
        }
        let (request, answer) = (self.request.take(), self.answer.take());
        let (Some(request), Some(answer)) = (request, answer) else { return Progress::Waiting { to_write: false } };
        let judged = answer.end();
        self.tally.judged(request.index, judged.as_ref().err());
        let failure = judged.err().map(|fault| failure_of(&fault));
        if request.kind == Kind::Post && failure.is_none() {
            self.tally.posts += 1;
            self.site.ledger.acknowledge(request.index);
        }
        let outcome = if failure.is_none() { Outcome::Done } else { Outcome::Failed };
        Progress::Ended(self.ended(outcome, failure, true))
    }

    /// There is no connection to be had.
    fn unreachable(&mut self, why: &str) -> Progress {
        self.site.is_refused.store(true, Ordering::Relaxed);
        let message = format!("{} cannot be reached: {why}", self.site.address.origin.host);
        Progress::Ended(self.failed(Failure::BROKEN, message, false))
    }

    /// The connection broke, or what came on it is no answer.
    fn broken(&mut self, why: &str) -> Progress {
        Progress::Ended(self.failed(Failure::BROKEN, why.to_owned(), true))
    }

    fn failed(&mut self, code: &str, message: String, alive: bool) -> Ending {
        let is_post = self.request.take().is_some_and(|request| request.kind == Kind::Post);
        self.answer = None;
        self.hang_up();
        // A POST of which all was sent may stand in the server's log.
        let outcome = if is_post && self.sent == self.out.len() { Outcome::Lost } else { Outcome::Failed };
        self.ended(outcome, Some(Failure { code: code.to_owned(), message }), alive)
    }

    fn ended(&mut self, outcome: Outcome, failure: Option<Failure>, alive: bool) -> Ending {
        self.step = Step::Idle;
        self.has_moved = false;
        self.tally.ended(outcome == Outcome::Done, now_ns() - self.began_ns);
        let (retries, bytes) = (self.retries, self.response.body_bytes());
        Ending { outcome, statements: 1, retries, requests: 1 + retries, bytes, failure, alive }
    }
}

fn failure_of(fault: &Fault) -> Failure {
    let code = match fault {
        Fault::Status(status) => format!("HT{status:03}"),
        _ => Failure::WRONG_ANSWER.to_owned(),
    };
    Failure { code, message: fault.to_string() }
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

impl AsFd for WebSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Session for WebSession {
    fn server_process(&self) -> u32 {
        0
    }

    fn patience_ns(&self) -> i64 {
        self.patience_ns
    }

    fn begin(&mut self, index: u64) -> Begun {
        let web = &self.site.web;
        let request = web.mix().request(index);
        self.answer = Some(Answer::new(web.mix(), &request, web.parameters().verify));
        self.request = Some(request);
        self.tally.began(request.place.class);
        (self.step, self.sent, self.retries) = (Step::Begun, 0, 0);
        self.response.begin();
        if let Some(pace) = &mut self.pace {
            pace.begin();
        }
        self.began_ns = now_ns();
        self.write_request();
        Begun { kind: request.kind as u8, skipped: false }
    }

    fn advance(&mut self, ready: Ready) -> Progress {
        self.is_readable |= ready != Ready::Nothing;
        if ready == Ready::Closing
            && let Some(connected) = &mut self.connected
        {
            connected.is_closing = true;
        }
        match self.step {
            Step::Idle => {
                if ready != Ready::Nothing {
                    self.notice();
                }
                Progress::Waiting { to_write: false }
            }
            Step::Begun | Step::Sending => self.send(),
            Step::Receiving => self.receive(),
            Step::Settling => self.settle(),
        }
    }

    fn abandon(&mut self) -> Ending {
        let message = format!("no answer within {} ms", self.patience_ns / 1_000_000);
        let ending = self.failed(Failure::ABANDONED, message, true);
        Ending { outcome: Outcome::Lost, ..ending }
    }

    fn close(self: Box<Self>) -> SessionReport {
        let conforming = self.site.web.parameters().conforming_bits_per_s;
        self.tally.report(conforming)
    }
}
