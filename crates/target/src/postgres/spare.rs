//! Buffers that the connections of a thread use in turn.
//!
//! The fact that constrains it: when a process is switched to, the caches next to the CPU and its table of page addresses hold
//! what others left there. A connection needs its buffers only while it is driven; then it had better get those that the
//! connection before it gave back, the warmest memory there is, than wake up its own.

use bytes::BytesMut;
use std::cell::RefCell;

const QUEUED_BYTES: usize = 4096;

thread_local! {
    static RECEIVED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static QUEUED: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// A buffer for received bytes, at least `bytes` long.
pub(super) fn take_received(bytes: usize) -> Vec<u8> {
    let spare = RECEIVED.with_borrow_mut(Vec::pop);
    spare.filter(|buffer| buffer.len() >= bytes).unwrap_or_else(|| vec![0; bytes])
}

/// Gives one back; what is in it is of no more use.
pub(super) fn give_received(buffer: Vec<u8>) {
    RECEIVED.with_borrow_mut(|spare| spare.push(buffer));
}

/// An empty buffer for bytes to be sent.
pub(super) fn take_queued() -> BytesMut {
    QUEUED.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(QUEUED_BYTES))
}

/// Gives one back; what is in it is of no more use.
pub(super) fn give_queued(mut buffer: BytesMut) {
    if buffer.capacity() > 0 {
        buffer.clear();
        QUEUED.with_borrow_mut(|spare| spare.push(buffer));
    }
}
