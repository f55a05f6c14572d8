//! Reads a message: a call becomes one that is held, a reply is noted at its call.

use super::{Calls, Connection, Early, Shared};
use crate::call::{Call, NOT_NAMED, Reply};
use crate::matching::{Held, Kind, Number};
use crate::message::{Message, Read, Xdr};
use crate::names::Key;
use crate::nfs3;
use crate::nfs4::{self, Step};
use crate::packet::Ends;
use crate::rpc::{self, CallHead, Head, Secured};
use std::net::IpAddr;

/// Connections that are told apart; a call of another has none.
const CONNECTIONS_MAX: usize = 1 << 20;
/// Replies that are kept for calls that may yet come, and what of each: its results, and no data.
const EARLY_MAX: usize = 64;
const EARLY_BYTES: usize = 1024;

impl Calls {
    /// Reads a message that `side` sent. Tells whether it could be: false of a reply whose call is not known.
    pub(super) fn message(
        &mut self,
        side: usize,
        ends: &Ends,
        is_udp: bool,
        message: &Message<'_>,
        shared: &mut Shared,
    ) -> bool {
        let mut xdr = Xdr::new(*message);
        match rpc::head(&mut xdr) {
            Ok(Some(Head::Call(xid))) => {
                if self.call((side, xid), ends, is_udp, message, xdr, shared).is_err() {
                    shared.totals.messages_unread += 1;
                }
                true
            }
            Ok(Some(Head::Reply(xid))) => self.reply((1 - side, xid), message, xdr, shared),
            _ => {
                shared.totals.messages_unread += 1;
                true
            }
        }
    }

    fn call(
        &mut self,
        number: Number,
        ends: &Ends,
        is_udp: bool,
        message: &Message<'_>,
        mut xdr: Xdr<'_>,
        shared: &mut Shared,
    ) -> Read<()> {
        let head = rpc::call(&mut xdr)?.filter(|head| rpc::is_known(head.program)).ok_or(crate::message::Missing)?;
        if self.matching.is_again(number, message) {
            return Ok(());
        }
        let connection = *self.number.get_or_insert_with(|| {
            // A server calls back on a connection that its client made; unless it called first, the client is the caller.
            let number = shared.connections.len();
            if number >= CONNECTIONS_MAX {
                return NOT_NAMED;
            }
            shared.connections.push(Connection { client: ends.from, server: ends.to, is_udp });
            number as u32
        });
        let server = shared.server(ends.to.ip());
        let mut call = Call {
            sent_ns: message.first_ns,
            sent_last_ns: message.last_ns,
            connection,
            xid: number.1,
            operation: NOT_NAMED,
            compound: NOT_NAMED,
            file: NOT_NAMED,
            bytes: u32::try_from(message.length).unwrap_or(u32::MAX),
            asked_bytes: 0,
            retransmissions: 0,
            further_replies: 0,
            is_partial: false,
            reply: None,
        };
        let kind = shared.asked(&head, server, &mut xdr, &mut call);
        let Shared { done, .. } = shared;
        let held = Held::new(call, kind, head.secured, server, message);
        self.matching.add(number, held, &mut |call| done.push(call));
        if let Some(place) = self.early.iter().position(|early| early.number == number)
            && let Some(early) = self.early.remove(place)
        {
            let Early { first_ns, last_ns, ref head, length, .. } = early;
            let message = Message { first_ns, last_ns, head, tail: &[], length };
            let mut xdr = Xdr::new(message);
            rpc::head(&mut xdr)?;
            self.reply(number, &message, xdr, shared);
        }
        Ok(())
    }

    fn reply(&mut self, number: Number, message: &Message<'_>, mut xdr: Xdr<'_>, shared: &mut Shared) -> bool {
        let Some(held) = self.matching.of(number) else {
            self.keep(number, message, shared);
            return false;
        };
        if held.call.reply.is_some() {
            held.call.further_replies += 1;
            return true;
        }
        let mut reply = Reply {
            first_ns: message.first_ns,
            last_ns: message.last_ns,
            bytes: u32::try_from(message.length).unwrap_or(u32::MAX),
            rpc_status: 0,
            status: 0,
            answered_bytes: 0,
        };
        match rpc::verdict(&mut xdr, held.secured) {
            Ok(0) if held.secured != Secured::Encrypted => {
                if shared.answered(held, &mut xdr, &mut reply).is_err() {
                    held.call.is_partial = true;
                }
            }
            Ok(verdict) => reply.rpc_status = verdict,
            Err(_) => held.call.is_partial = true,
        }
        let Shared { done, .. } = shared;
        self.matching.answer(number, reply, &mut |call| done.push(call));
        true
    }
}

impl Calls {
    /// Keeps a reply for a call that may yet come.
    fn keep(&mut self, number: Number, message: &Message<'_>, shared: &mut Shared) {
        let Message { first_ns, last_ns, head, length, .. } = *message;
        let head = head[..head.len().min(EARLY_BYTES)].to_vec();
        self.early.push_back(Early { number, first_ns, last_ns, head, length });
        if self.early.len() > EARLY_MAX {
            self.early.pop_front();
            shared.totals.replies_without_call += 1;
        }
    }

    /// Nothing more will come.
    pub(super) fn finish(&mut self, shared: &mut Shared) {
        shared.totals.replies_without_call += self.early.len() as u64;
        self.early.clear();
        self.matching.finish(&mut |call| shared.done.push(call));
    }
}

impl Shared {
    pub(super) fn server(&mut self, address: IpAddr) -> u32 {
        let next = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        *self.servers.entry(address).or_insert(next)
    }

    /// Reads a call's arguments, and gives what its reply is read with.
    fn asked(&mut self, head: &CallHead, server: u32, xdr: &mut Xdr<'_>, call: &mut Call) -> Kind {
        let CallHead { program, version, procedure, secured } = *head;
        let plain = Key::Procedure(program, version, procedure);
        if secured == Secured::Encrypted {
            call.is_partial = true;
            call.operation = self.names.operation(plain);
            return Kind::Other;
        }
        match (program, version, procedure) {
            (rpc::NFS, 4, 1) => self.compound(server, xdr, call),
            (program, _, 1) if rpc::is_callback(program) => {
                let asked = nfs4::callback_asked(xdr);
                call.operation = self.names.operation(Key::Callback(asked.main));
                call.compound = self.names.compound(&asked.operations, nfs4::callback_name);
                Kind::Callback
            }
            (rpc::NFS, 3, _) => {
                call.operation = self.names.operation(plain);
                let asked = nfs3::asked(procedure, xdr);
                call.is_partial = asked.is_err();
                let asked = asked.unwrap_or_default();
                let folder = asked.handle.and_then(|handle| self.files.number(server, handle));
                call.file = folder.unwrap_or(NOT_NAMED);
                call.asked_bytes = asked.bytes;
                Kind::Nfs3 { procedure, folder, name: asked.name.map(text) }
            }
            (rpc::MOUNT, _, nfs3::MNT) => {
                call.operation = self.names.operation(plain);
                nfs3::mount_asked(xdr).map_or(Kind::Other, |path| Kind::Mount { path: text(path) })
            }
            _ => {
                call.operation = self.names.operation(plain);
                Kind::Other
            }
        }
    }

    fn compound(&mut self, server: u32, xdr: &mut Xdr<'_>, call: &mut Call) -> Kind {
        let asked = nfs4::asked(xdr);
        call.is_partial = asked.is_partial;
        call.operation = self.names.operation(Key::Compound(asked.minor, asked.main));
        call.compound = self.names.compound(&asked.operations, nfs4::name);
        call.asked_bytes = asked.bytes;
        let file = asked.handle.as_deref().and_then(|handle| self.files.number(server, handle));
        call.file = file.unwrap_or(NOT_NAMED);
        let steps = if asked.tells_handle { asked.steps } else { Vec::new() };
        Kind::Nfs4 { main: asked.main, steps, tells_handle: asked.tells_handle }
    }

    /// Reads the results of a call.
    fn answered(&mut self, held: &mut Held, xdr: &mut Xdr<'_>, reply: &mut Reply) -> Read<()> {
        let server = held.server;
        match &held.kind {
            Kind::Nfs3 { procedure, folder, name } => {
                let answered = nfs3::answered(*procedure, xdr)?;
                (reply.status, reply.answered_bytes) = (answered.status, answered.bytes);
                if let (Some(handle), Some(name)) = (answered.handle, name) {
                    self.learn(server, handle, *folder, name, &mut held.call);
                }
            }
            Kind::Nfs4 { main, steps, tells_handle } => {
                let answered = nfs4::answered(xdr, *main, *tells_handle)?;
                (reply.status, reply.answered_bytes) = (answered.status, answered.bytes);
                let steps = steps.clone();
                self.follow(server, &steps, &answered.handles, &mut held.call);
            }
            Kind::Callback => reply.status = nfs4::callback_answered(xdr)?,
            Kind::Mount { path } => {
                let answered = nfs3::mount_answered(xdr)?;
                reply.status = answered.status;
                if let Some(handle) = answered.handle {
                    // What is mounted is where paths begin, whatever it is called at its server.
                    let path = if path.is_empty() { "/" } else { path };
                    self.learn(server, handle, None, path, &mut held.call);
                }
            }
            Kind::Other => {}
        }
        Ok(())
    }

    /// Learns a file's name; the call was about that file.
    fn learn(&mut self, server: u32, handle: &[u8], folder: Option<u32>, name: &str, call: &mut Call) {
        if let Some(file) = self.files.number(server, handle) {
            if !matches!(name, "." | "..") && folder != Some(file) {
                self.files.name(file, folder, name);
            }
            call.file = file;
        }
    }

    /// Follows the current handle through a compound, and learns the names of the handles that were told.
    fn follow(&mut self, server: u32, steps: &[(u32, Step)], handles: &[(u32, Vec<u8>)], call: &mut Call) {
        let mut steps = steps.iter().peekable();
        let (mut current, mut saved): (Option<u32>, Option<u32>) = (None, None);
        // What the current file is called, and in which folder.
        let mut named: Option<(Option<u32>, &str)> = None;
        for (place, handle) in handles {
            while let Some((_, step)) = steps.next_if(|(at, _)| at < place) {
                match step {
                    Step::Put(handle) => (current, named) = (self.files.number(server, handle), None),
                    Step::Root => (current, named) = (None, Some((None, "/"))),
                    Step::Save => saved = current,
                    Step::Restore => (current, named) = (saved, None),
                    // The folder of a name that is not told itself is not known.
                    Step::Name(name) => (current, named) = (None, Some((current, name.as_str()))),
                    Step::Elsewhere => (current, named) = (None, None),
                }
            }
            match named.take() {
                Some((folder, name)) => {
                    self.learn(server, handle, folder, name, call);
                    current = self.files.number(server, handle);
                }
                None => current = self.files.number(server, handle),
            }
        }
    }
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}
