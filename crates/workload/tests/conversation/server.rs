//! A scripted server, and one transaction performed with it.

use crate::steps::Steps;
use bytes::BytesMut;
use plimsoll_session::{Ending, Failure, Opener, Progress, Ready};
use plimsoll_target::postgres::{Address, Mode, Protocol, put_row};
use plimsoll_workload::ConversationOpener;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

pub(crate) fn row(key: i64) -> Vec<u8> {
    let mut body = BytesMut::new();
    put_row(&mut body, 1, |row| row.bigint(key));
    message(b'D', &body)
}

pub(crate) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

pub(crate) fn read_answer(key: i64) -> Vec<u8> {
    [message(b'2', b""), row(key), message(b'C', b"SELECT 1\0"), ready(b'T')].concat()
}

pub(crate) fn tag(text: &[u8]) -> Vec<u8> {
    message(b'C', &[text, b"\0"].concat())
}

pub(crate) fn error(severity: &str, sqlstate: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{sqlstate}\0Mno\0\0").as_bytes())
}

/// Reads whole messages until a Sync or a simple query came; `None` if the other side closed.
pub(crate) fn read_round_trip(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).ok()?;
        let mut body = vec![0; u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4];
        stream.read_exact(&mut body).unwrap();
        read.extend(header);
        read.extend(body);
        if matches!(header[0], b'S' | b'Q') {
            return Some(read);
        }
    }
}

/// A server that greets, then reads and answers a round trip for each of `answers` (with nothing, if that is empty), and
/// closes. What it has read comes out of the receiver.
fn server(folder: &std::path::Path, answers: Vec<Vec<u8>>) -> (JoinHandle<()>, Receiver<Vec<u8>>) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.1")).unwrap();
    let (tell, heard) = channel();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
        let greeting = [message(b'R', &[0; 4]), message(b'K', &[0, 0, 0, 42, 0, 0, 0, 1]), ready(b'I')].concat();
        stream.write_all(&greeting).unwrap();
        for answer in answers {
            let Some(read) = read_round_trip(&mut stream) else { return };
            let _ = tell.send(read);
            stream.write_all(&answer).unwrap();
        }
    });
    (thread, heard)
}

/// What becomes of one transaction of a [`Steps`], and what the server read of it.
pub(crate) struct Performed {
    pub(crate) ending: Ending,
    pub(crate) totals: Vec<(&'static str, i64)>,
    pub(crate) read: Vec<Vec<u8>>,
    pub(crate) rests: u32,
}

pub(crate) const PREPARED: Protocol = Protocol { mode: Mode::Prepared, describe: false };

fn address_in(folder: &std::path::Path) -> Address {
    Address {
        host: folder.display().to_string(),
        port: 1,
        user: "u".to_owned(),
        password: None,
        database: "d".to_owned(),
        settings: Vec::new(),
    }
}

/// Why a connection cannot be opened whose server gives this `answer` to what is to be prepared.
pub(crate) fn refused_opening(workload: Steps, answer: Vec<u8>) -> Failure {
    let folder = tempfile::tempdir().unwrap();
    let (server, _heard) = server(folder.path(), vec![answer]);
    let opener = ConversationOpener::new(&address_in(folder.path()), Arc::new(workload), PREPARED, 0).unwrap();
    let refused = opener.open(0).map(|_| ()).unwrap_err();
    server.join().unwrap();
    refused
}

pub(crate) fn perform(workload: Steps, protocol: Protocol, retries_max: u32, mut answers: Vec<Vec<u8>>) -> Performed {
    let prepares = protocol.mode == Mode::Prepared && !workload.at_first_use;
    if prepares {
        answers.insert(0, [message(b'1', b"").repeat(3), ready(b'I')].concat());
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, heard) = server(folder.path(), answers);
    let address = address_in(folder.path());
    let opener = ConversationOpener::new(&address, Arc::new(workload), protocol, retries_max).unwrap();
    let mut conversation = opener.open(0).unwrap();
    assert_eq!(conversation.server_process(), 42);
    conversation.begin(0);
    let (started, mut rests) = (Instant::now(), 0);
    let mut progress = conversation.advance(Ready::Nothing);
    while !matches!(progress, Progress::Ended(_)) {
        assert!(started.elapsed() < Duration::from_secs(10) && progress != Progress::Closed);
        std::thread::sleep(Duration::from_millis(1));
        let ready = if matches!(progress, Progress::Resting { .. }) {
            rests += 1;
            // Nothing has come, so the rest goes on.
            assert_eq!(conversation.advance(Ready::Readable), Progress::Waiting { to_write: false });
            Ready::Nothing
        } else {
            Ready::Closing
        };
        progress = conversation.advance(ready);
    }
    let Progress::Ended(ending) = progress else { unreachable!() };
    let totals = conversation.close().totals;
    server.join().unwrap();
    let read = heard.into_iter().skip(usize::from(prepares)).collect();
    Performed { ending, totals, read, rests }
}
