//! Calls and their replies, byte by byte.

use super::xdr::{self, Writer};
use super::{World, chance};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Nfs3,
    Nfs3Udp,
    /// With its minor version.
    Nfs4(u32),
}

/// What is known of a call.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) xid: u32,
    pub(crate) operation: &'static str,
    pub(crate) asked_bytes: u32,
    pub(crate) answered_bytes: u32,
    pub(crate) status: u32,
    /// The file it is about: a number that a handle is made of.
    pub(crate) file: u32,
    pub(crate) call: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    /// When each is handed to TCP; of the reply after the call has arrived.
    pub(crate) planned_ns: i64,
    pub(crate) takes_ns: i64,
    /// How often it is sent again, and whether that was answered, too.
    pub(crate) again: u32,
    /// Places in the streams of call and reply.
    pub(crate) call_at: (usize, usize),
    pub(crate) reply_at: (usize, usize),
    /// What the capture has: first and last byte of call and reply. None if a byte is missing.
    pub(crate) sent: Option<(i64, i64)>,
    pub(crate) replied: Option<(i64, i64)>,
}

const START_NS: i64 = 1_700_000_000_000_000_000;

/// The kinds of calls: their name, and how often they are drawn.
const KINDS: [(&str, u32); 8] = [
    ("READ", 40),
    ("WRITE", 20),
    ("GETATTR", 20),
    ("LOOKUP", 5),
    ("ACCESS", 5),
    ("COMMIT", 5),
    ("SETATTR", 3),
    ("CREATE", 2),
];

fn drawn(random: &mut Xoshiro256PlusPlus) -> &'static str {
    let mut place = random.random_range(0..KINDS.iter().map(|kind| kind.1).sum());
    for (name, weight) in KINDS {
        if place < weight {
            return name;
        }
        place -= weight;
    }
    unreachable!("the weights are summed above")
}

pub(crate) fn make(world: &World, random: &mut Xoshiro256PlusPlus) -> Vec<Known> {
    let mut at_ns = START_NS;
    let first_xid: u32 = random.random();
    (0..world.calls)
        .map(|place| {
            at_ns += random.random_range(1_000..200_000);
            let operation = drawn(random);
            let bytes = if chance(random, 4) { random.random_range(1..=world.transfer) } else { world.transfer };
            let short = if chance(random, 10) { bytes / 2 } else { bytes };
            let (asked, answered) = match operation {
                "READ" | "WRITE" => (bytes as u32, short as u32),
                _ => (0, 0),
            };
            let status = if chance(random, 20) { 70 } else { 0 };
            let mut known = Known {
                xid: first_xid.wrapping_add(place as u32),
                operation,
                asked_bytes: asked,
                answered_bytes: if status == 0 { answered } else { 0 },
                status,
                file: random.random_range(0..16),
                call: Vec::new(),
                reply: Vec::new(),
                planned_ns: at_ns,
                takes_ns: random.random_range(30_000..3_000_000),
                again: u32::from(chance(random, world.again_one_in)),
                call_at: (0, 0),
                reply_at: (0, 0),
                sent: None,
                replied: None,
            };
            let data: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| random.random::<u64>().to_le_bytes()).collect();
            (known.call, known.reply) = match world.protocol {
                Protocol::Nfs3 | Protocol::Nfs3Udp => nfs3(&known, &data),
                Protocol::Nfs4(minor) => nfs4(&known, minor, &data),
            };
            known
        })
        .collect()
}

pub(crate) fn handle(file: u32) -> Vec<u8> {
    let mut handle = vec![1, 0, 7, 0];
    handle.extend_from_slice(&file.to_be_bytes());
    handle.resize(28, 0xaa);
    handle
}

pub(crate) const FOLDER: u32 = 100;

/// What a file is called in [`FOLDER`].
pub(crate) fn name(file: u32) -> String {
    format!("{}", 16384 + file)
}

fn nfs3(known: &Known, data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let number = ["GETATTR", "SETATTR", "LOOKUP", "ACCESS", "", "READ", "WRITE", "CREATE"]
        .iter()
        .position(|&name| name == known.operation)
        .map_or(21, |place| place as u32 + 1);
    let mut call = xdr::call(known.xid, 100_003, 3, number);
    let in_folder = matches!(known.operation, "LOOKUP" | "CREATE");
    call.opaque(&handle(if in_folder { FOLDER } else { known.file }));
    let mut reply = xdr::reply(known.xid);
    reply.u32(known.status);
    let is_ok = known.status == 0;
    let wcc = |reply: &mut Writer| {
        reply.u32(1).raw(&[3; 24]).u32(1).fattr3();
    };
    match known.operation {
        "READ" => {
            call.u64(8192).u32(known.asked_bytes);
            reply.u32(1).fattr3();
            if is_ok {
                let answered = known.answered_bytes as usize;
                reply.words(&[known.answered_bytes, 0]).opaque(&data[..answered]);
            }
        }
        "WRITE" => {
            call.u64(8192).words(&[known.asked_bytes, 2]).opaque(&data[..known.asked_bytes as usize]);
            wcc(&mut reply);
            if is_ok {
                reply.words(&[known.answered_bytes, 2]).u64(5);
            }
        }
        "LOOKUP" => {
            call.opaque(name(known.file).as_bytes());
            if is_ok {
                reply.opaque(&handle(known.file)).u32(1).fattr3();
            }
            reply.u32(1).fattr3();
        }
        "CREATE" => {
            call.opaque(name(known.file).as_bytes()).words(&[0, 1, 0o600, 0, 0, 0, 0, 0]);
            if is_ok {
                reply.u32(1).opaque(&handle(known.file)).u32(1).fattr3();
            }
            wcc(&mut reply);
        }
        "SETATTR" => {
            call.words(&[0, 0, 0, 1, 0, 4096, 0, 0, 0]);
            wcc(&mut reply);
        }
        "ACCESS" => {
            call.u32(0x1f);
            reply.u32(1).fattr3();
            if is_ok {
                reply.u32(0x1f);
            }
        }
        "COMMIT" => {
            call.u64(0).u32(0);
            wcc(&mut reply);
            if is_ok {
                reply.u64(5);
            }
        }
        _ => {
            if is_ok {
                reply.fattr3();
            }
        }
    }
    (call.0, reply.0)
}

/// An operation of a compound: number, arguments, results where it succeeds.
type Operation = (u32, Vec<u8>, Vec<u8>);

fn part(number: u32, arguments: impl FnOnce(&mut Writer), results: impl FnOnce(&mut Writer)) -> Operation {
    let (mut asked, mut answered) = (Writer::default(), Writer::default());
    arguments(&mut asked);
    results(&mut answered);
    (number, asked.0, answered.0)
}

fn nothing(_: &mut Writer) {}

const STATE: [u8; 16] = [4; 16];

fn main_operation(known: &Known, minor: u32, data: &[u8]) -> Vec<Operation> {
    let getattr = || {
        let results = |w: &mut Writer| {
            w.fattr4();
        };
        part(9, |w| drop(w.words(&[2, 0x18, 0x30_0000])), results)
    };
    let changed = |w: &mut Writer| {
        w.words(&[1, 0, 1, 0, 2]);
    };
    let getfh = || part(10, nothing, |w| drop(w.opaque(&handle(known.file))));
    match known.operation {
        "READ" => {
            let answered = known.answered_bytes as usize;
            let read = part(
                25,
                |w| drop(w.raw(&STATE).u64(0).u32(known.asked_bytes)),
                |w| drop(w.u32(0).opaque(&data[..answered])),
            );
            vec![read]
        }
        "WRITE" => {
            let asked = known.asked_bytes as usize;
            let write = |w: &mut Writer| drop(w.raw(&STATE).u64(0).u32(2).opaque(&data[..asked]));
            vec![part(38, write, |w| drop(w.words(&[known.answered_bytes, 2]).u64(5))), getattr()]
        }
        "LOOKUP" => {
            vec![part(15, |w| drop(w.opaque(name(known.file).as_bytes())), nothing), getfh(), getattr()]
        }
        "ACCESS" => vec![part(3, |w| drop(w.u32(0x1f)), |w| drop(w.words(&[0x1f, 0x1f]))), getattr()],
        "COMMIT" => vec![part(5, |w| drop(w.u64(0).u32(0)), |w| drop(w.u64(5)))],
        "SETATTR" => {
            vec![part(34, |w| drop(w.raw(&STATE).fattr4()), |w| drop(w.words(&[1, 2]))), getattr()]
        }
        "CREATE" => {
            let open = |w: &mut Writer| {
                w.words(&[9, 3, 0]).u64(1).opaque(b"open id:").words(&[1, if minor == 0 { 0 } else { 3 }]);
                if minor > 0 {
                    w.u64(33);
                }
                w.fattr4().u32(0).opaque(name(known.file).as_bytes());
            };
            let opened = |w: &mut Writer| {
                w.raw(&STATE);
                changed(w);
                w.words(&[4, 1, 2, 2]).raw(&STATE).words(&[0, 1, 0, 1 << 20, 0, 0, 0]).opaque(b"OWNER@");
            };
            vec![
                part(18, open, opened),
                getfh(),
                part(3, |w| drop(w.u32(0x1f)), |w| drop(w.words(&[0x1f, 0x1f]))),
                getattr(),
            ]
        }
        _ => vec![getattr()],
    }
}

fn nfs4(known: &Known, minor: u32, data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut operations = Vec::new();
    if minor > 0 {
        let results = |w: &mut Writer| drop(w.raw(&STATE).words(&[1, 0, 63, 63, 0]));
        operations.push(part(53, |w| drop(w.raw(&STATE).words(&[1, 0, 63, 0])), results));
    }
    let in_folder = matches!(known.operation, "LOOKUP" | "CREATE");
    let file = if in_folder { FOLDER } else { known.file };
    operations.push(part(22, |w| drop(w.opaque(&handle(file))), nothing));
    let before = operations.len();
    operations.extend(main_operation(known, minor, data));
    let mut call = xdr::call(known.xid, 100_003, 4, 1);
    call.opaque(b"").words(&[minor, operations.len() as u32]);
    let mut reply = xdr::reply(known.xid);
    let performed = if known.status == 0 { operations.len() } else { before + 1 };
    reply.u32(known.status).opaque(b"").u32(performed as u32);
    for (place, (number, arguments, results)) in operations.iter().enumerate() {
        call.u32(*number).raw(arguments);
        if place < performed {
            let failed = known.status != 0 && place == before;
            reply.words(&[*number, if failed { known.status } else { 0 }]);
            match (failed, *number) {
                (true, 34) => drop(reply.u32(0)),
                (true, _) => {}
                (false, _) => drop(reply.raw(results)),
            }
        }
    }
    (call.0, reply.0)
}
