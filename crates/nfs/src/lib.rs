//! Packet captures to calls of NFS: when each was sent, what it asked for, how long its first reply took.
//!
//! The fact that constrains it: a capture is what a machine happened to see. Bytes are missing (lost, or cut off by the
//! capture's own limit), come late, come twice, and may be anything at all; nothing here panics on them, holds more of them
//! than a stated bound, or fills in what was not seen. What was lost is counted.
//!
//! From outside in: [`capture`](Packets) gives packets, `packet` what is in one, `stream` and `fragments` put them in order,
//! `records` cuts them into messages of RPC, `rpc`, `nfs3` and `nfs4` read those, `matching` joins call and reply.

mod call;
mod capture;
mod decoder;
mod files;
mod fragments;
mod link;
mod matching;
mod message;
mod names;
mod nfs3;
mod nfs4;
mod packet;
mod records;
mod rpc;
mod stream;
mod totals;

pub use call::{Call, NOT_NAMED, RPC_DENIED, Reply};
pub use capture::{CaptureError, Ended, Packet, Packets};
pub use decoder::{Connection, Decoder, decode};
pub use files::{FileClass, NamedFile};
pub use link::LinkType;
pub use names::Operation;
pub use totals::Totals;
