//! Joins calls and replies of one conversation by RPC's number.
//!
//! The fact that constrains it: a call may be sent again before and after its reply, on another connection between the same
//! ends, and its number used for another call once it is answered. So a call is held for a while when it is answered, and
//! the same bytes under the same number are the same call.

use crate::call::{Call, Reply};
use crate::message::Message;
use crate::nfs4::Step;
use crate::rpc::Secured;
use std::collections::{HashMap, VecDeque};

/// Answered calls held for what may come again.
const ANSWERED_MAX: usize = 512;
/// Calls without a reply held; the oldest of more is told as unanswered.
const WAITING_MAX: usize = 65_536;

/// What a reply cannot be read without.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Nfs3 {
        procedure: u32,
        folder: Option<u32>,
        name: Option<Box<str>>,
    },
    Nfs4 {
        main: u32,
        steps: Vec<(u32, Step)>,
        tells_handle: bool,
    },
    Callback,
    Mount {
        path: Box<str>,
    },
    /// Its results are not read.
    Other,
}

/// A call, and what its reply is read with.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) call: Call,
    pub(crate) kind: Kind,
    pub(crate) secured: Secured,
    pub(crate) server: u32,
    print: u64,
    serial: u64,
}

impl Held {
    pub(crate) fn new(call: Call, kind: Kind, secured: Secured, server: u32, message: &Message<'_>) -> Self {
        Self { call, kind, secured, server, print: print_of(message), serial: 0 }
    }
}

/// Tells one message from another, but for its number: FNV of its beginning and its length.
pub(crate) fn print_of(message: &Message<'_>) -> u64 {
    let begin = &message.head[4.min(message.head.len())..message.head.len().min(260)];
    let hash = begin.chunks(8).fold(0xcbf2_9ce4_8422_2325_u64, |hash, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    });
    hash ^ message.length as u64
}

/// Which side sent it, and its number.
pub(crate) type Number = (usize, u32);

/// The calls of a conversation that may still be answered or come again.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    held: HashMap<Number, Held>,
    waiting: VecDeque<(Number, u64)>,
    answered: VecDeque<(Number, u64)>,
    serial: u64,
}

impl Matching {
    /// Whether these bytes are a call that is held, sent again; counts it.
    pub(crate) fn is_again(&mut self, number: Number, message: &Message<'_>) -> bool {
        match self.held.get_mut(&number) {
            Some(held) if held.print == print_of(message) => {
                held.call.retransmissions += 1;
                true
            }
            _ => false,
        }
    }

    /// Holds a new call. `done` gets those that are held no longer.
    pub(crate) fn add(&mut self, number: Number, mut held: Held, done: &mut impl FnMut(Call)) {
        self.serial += 1;
        held.serial = self.serial;
        if let Some(before) = self.held.insert(number, held) {
            done(before.call);
        }
        self.waiting.push_back((number, self.serial));
        while let Some(&(oldest, serial)) = self.waiting.front() {
            let waits = self.held.get(&oldest).is_some_and(|held| held.serial == serial && held.call.reply.is_none());
            if waits && self.waiting.len() <= WAITING_MAX {
                break;
            }
            self.waiting.pop_front();
            if waits {
                done_with(self.held.remove(&oldest), done);
            }
        }
    }

    /// The call of that number.
    pub(crate) fn of(&mut self, number: Number) -> Option<&mut Held> {
        self.held.get_mut(&number)
    }

    /// Notes the reply to a call that has none.
    pub(crate) fn answer(&mut self, number: Number, reply: Reply, done: &mut impl FnMut(Call)) {
        let Some(held) = self.held.get_mut(&number) else { return };
        held.call.reply = Some(reply);
        held.kind = Kind::Other;
        self.answered.push_back((number, held.serial));
        while self.answered.len() > ANSWERED_MAX {
            let Some((oldest, serial)) = self.answered.pop_front() else { return };
            if self.held.get(&oldest).is_some_and(|held| held.serial == serial) {
                done_with(self.held.remove(&oldest), done);
            }
        }
    }

    /// Gives up all that is held, in the order in which it was sent.
    pub(crate) fn finish(&mut self, done: &mut impl FnMut(Call)) {
        let mut left: Vec<Held> = self.held.drain().map(|(_, held)| held).collect();
        left.sort_by_key(|held| held.serial);
        left.into_iter().for_each(|held| done(held.call));
        self.waiting.clear();
        self.answered.clear();
    }
}

fn done_with(held: Option<Held>, done: &mut impl FnMut(Call)) {
    if let Some(held) = held {
        done(held.call);
    }
}
