//! Operations on a ring of this kernel: what they do, that each comes back once, and that what never would can be cancelled.

#![allow(clippy::unwrap_used)]

use plimsoll_ring::Ring;
use plimsoll_session::{Buffer, Completed, Operation};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Waits for the next `count` that complete.
fn next<T>(ring: &mut Ring<T>, count: usize) -> Vec<(T, Completed)> {
    let mut completed = Vec::new();
    let began = Instant::now();
    while completed.len() < count {
        assert!(began.elapsed() < 10 * SECOND, "{} of {count}", completed.len());
        ring.submit_and_wait(SECOND).unwrap();
        completed.extend(std::iter::from_fn(|| ring.completed()));
    }
    completed
}

/// The only one that completes next.
fn one(ring: &mut Ring<u32>, operation: Operation) -> Completed {
    ring.push(7, operation);
    let mut completed = next(ring, 1);
    assert_eq!((completed.len(), completed[0].0, ring.under_way()), (1, 7, 0));
    completed.remove(0).1
}

/// A read that completes when something is written to the second.
fn silent() -> (Operation, Arc<OwnedFd>, OwnedFd) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let reader = Arc::new(reader);
    (Operation::Read { file: Arc::clone(&reader), offset: 0, buffer: Buffer::zeroed(8) }, reader, writer)
}

#[test]
fn what_is_written_is_read_back_from_where_it_was_written() {
    let file: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
    let mut ring = Ring::new(4).unwrap();
    let mut buffer = Buffer::zeroed(5_000);
    buffer.fill(42);
    let of = |file: &Arc<OwnedFd>| Arc::clone(file);
    let Completed { operation, result } = one(&mut ring, Operation::Write { file: of(&file), offset: 100, buffer });
    assert_eq!(result.unwrap(), 5_000);
    let Operation::Write { mut buffer, .. } = operation else { panic!("as it was handed out: {operation:?}") };
    assert_eq!(one(&mut ring, Operation::Fsync { file: of(&file) }).result.unwrap(), 0);
    assert_eq!(one(&mut ring, Operation::Fdatasync { file: of(&file) }).result.unwrap(), 0);
    buffer.fill(0);
    let Completed { operation, result } = one(&mut ring, Operation::Read { file: of(&file), offset: 99, buffer });
    let Operation::Read { buffer, .. } = operation else { panic!("as it was handed out: {operation:?}") };
    assert_eq!((result.unwrap(), buffer[0]), (5_000, 0));
    assert!(buffer[1..].iter().all(|&byte| byte == 42));
    let past = one(&mut ring, Operation::Read { file: of(&file), offset: 5_000, buffer });
    assert_eq!(past.result.unwrap(), 100, "up to the end of the file");
}

#[test]
fn an_operation_that_is_refused_completes_with_its_error() {
    let mut ring = Ring::new(1).unwrap();
    let (Operation::Read { offset, buffer, .. }, _reader, writer) = silent() else { panic!("a read") };
    let refused = one(&mut ring, Operation::Read { file: Arc::new(writer), offset, buffer });
    assert_eq!(refused.result.unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
}

#[test]
fn times_complete_in_their_order_while_others_wait() {
    let mut ring = Ring::new(4).unwrap();
    let (read, _reader, writer) = silent();
    ring.push(100, read);
    let began = Instant::now();
    [40, 10, 20].into_iter().for_each(|ms| ring.push(ms, Operation::Timeout { ns: i64::from(ms) * 1_000_000 }));
    let order: Vec<u32> = next(&mut ring, 3).into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(order, [10, 20, 40]);
    assert!(began.elapsed() >= Duration::from_millis(40));
    assert_eq!(ring.under_way(), 1);
    rustix::io::write(&writer, b"12345").unwrap();
    let (token, completed) = next(&mut ring, 1).remove(0);
    assert_eq!((token, completed.result.unwrap()), (100, 5));
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let mut ring = Ring::new(1).unwrap();
    let (read, _reader, _writer) = silent();
    ring.push(0, read);
    let began = Instant::now();
    ring.submit_and_wait(Duration::from_millis(20)).unwrap();
    assert!((Duration::from_millis(20)..SECOND).contains(&began.elapsed()));
    assert!(ring.completed().is_none());
}

#[test]
fn more_than_the_queue_has_room_for_is_under_way() {
    let mut ring = Ring::new(1).unwrap();
    (0..1_000).for_each(|token| ring.push(token, Operation::Timeout { ns: 20_000_000 }));
    assert_eq!(ring.under_way(), 1_000);
    let mut tokens: Vec<u32> = next(&mut ring, 1_000).into_iter().map(|(token, _)| token).collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..1_000), "each once");
}

#[test]
fn what_is_cancelled_completes_and_nothing_else_is() {
    let mut ring = Ring::new(4).unwrap();
    let silents: Vec<_> = (0..3).map(|_| silent()).collect();
    let mut writers = Vec::new();
    for (token, (read, _, writer)) in (0..).zip(silents) {
        ring.push(token, read);
        writers.push(writer);
    }
    ring.cancel(|&token| token == 1);
    let (token, completed) = next(&mut ring, 1).remove(0);
    assert_eq!((token, Errno::from_io_error(&completed.result.unwrap_err())), (1, Some(Errno::CANCELED)));
    rustix::io::write(&writers[2], b"1").unwrap();
    ring.cancel(|&token| token == 2);
    let (token, _) = next(&mut ring, 1).remove(0);
    assert_eq!((token, ring.under_way()), (2, 1));
}

#[test]
fn a_request_to_cancel_meets_nobody_who_came_later() {
    let mut ring = Ring::new(4).unwrap();
    ring.push(1, Operation::Nop);
    ring.submit_and_wait(SECOND).unwrap();
    // It has completed, which nobody has looked at yet.
    ring.cancel(|&token| token == 1);
    assert_eq!(ring.completed().unwrap().0, 1);
    let (read, _reader, writer) = silent();
    ring.push(2, read);
    ring.submit_and_wait(Duration::from_millis(20)).unwrap();
    assert!(ring.completed().is_none(), "it has the place of the first, and goes on");
    rustix::io::write(&writer, b"12").unwrap();
    assert_eq!(next(&mut ring, 1).remove(0).1.result.unwrap(), 2);
}

#[test]
fn a_ring_that_is_dropped_cancels_and_lets_go() {
    let mut ring = Ring::new(4).unwrap();
    let (read, reader, _writer) = silent();
    ring.push(0, read);
    ring.push(1, Operation::Timeout { ns: 60_000_000_000 });
    ring.submit_and_wait(Duration::ZERO).unwrap();
    assert_eq!((ring.under_way(), Arc::strong_count(&reader)), (2, 2));
    let began = Instant::now();
    drop(ring);
    assert!(began.elapsed() < SECOND);
    assert_eq!(Arc::strong_count(&reader), 1, "nothing was leaked");
}

#[test]
fn registered_files_and_buffers_are_known_again_and_others_go_on_beside_them() {
    let file: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
    let other: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
    let mut ring = Ring::new(4).unwrap();
    let (mut fixed, mut second, mut free) = (Buffer::zeroed(8_192), Buffer::zeroed(4_096), Buffer::zeroed(8_192));
    let twice = vec![Arc::clone(&file), Arc::clone(&file)];
    ring.register(twice, vec![&mut second, &mut fixed]).unwrap();
    assert_eq!(Arc::strong_count(&file), 2, "the ring has it, once");
    fixed.fill(3);
    free.fill(4);
    for (on, offset, buffer) in [(&file, 0, fixed), (&file, 8_192, free), (&other, 0, second)] {
        let length = buffer.len() as u32;
        let written = one(&mut ring, Operation::Write { file: Arc::clone(on), offset, buffer });
        assert_eq!(written.result.unwrap(), length);
        assert_eq!(one(&mut ring, Operation::Fdatasync { file: Arc::clone(on) }).result.unwrap(), 0);
        let Operation::Write { mut buffer, .. } = written.operation else { panic!("as it was handed out") };
        let expected = buffer[0];
        buffer.fill(9);
        let read = one(&mut ring, Operation::Read { file: Arc::clone(on), offset, buffer });
        let Operation::Read { buffer, .. } = read.operation else { panic!("as it was handed out") };
        assert!(read.result.unwrap() == length && buffer.iter().all(|&byte| byte == expected));
    }
    let refused = ring.register(vec![Arc::clone(&other)], Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("files cannot be registered"), "once for a ring: {refused}");
    drop(ring);
    assert_eq!(Arc::strong_count(&file), 1);
}

#[test]
fn made_and_told_of_files_by_one_thread_it_serves_another() {
    let file: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
    let mut ring = Ring::new(4).unwrap();
    ring.register(vec![Arc::clone(&file)], vec![]).unwrap();
    let written = std::thread::spawn(move || {
        one(&mut ring, Operation::Write { file, offset: 0, buffer: Buffer::zeroed(10) }).result.unwrap()
    });
    assert_eq!(written.join().unwrap(), 10);
}

#[test]
fn what_completes_is_found_by_who_never_waits() {
    let mut ring = Ring::new(4).unwrap();
    let (read, _reader, writer) = silent();
    ring.push(7, read);
    ring.submit_and_wait(Duration::ZERO).unwrap();
    assert!(ring.completed().is_none());
    rustix::io::write(&writer, b"12345678").unwrap();
    let began = Instant::now();
    while ring.completed().is_none() {
        assert!(began.elapsed() < 10 * SECOND, "never found");
        ring.submit_and_wait(Duration::ZERO).unwrap();
    }
}
