//! What is known of one call.

/// `operation`, `compound`, `file` and the like where there is none, or no room for another name.
pub const NOT_NAMED: u32 = u32::MAX;
/// `rpc_status` of a call that the server denied (credentials, version of RPC).
pub const RPC_DENIED: u8 = 16;

/// The first reply to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When the packet with its first byte was seen.
    pub first_ns: i64,
    /// When its last byte was seen, with all before it.
    pub last_ns: i64,
    /// Its length.
    pub bytes: u32,
    /// RPC's own verdict: 0 performed, else `accept_stat`, or [`RPC_DENIED`].
    pub rpc_status: u8,
    /// The operation's, 0 if it has none.
    pub status: u32,
    /// Of what is read or written: what the server says it was.
    pub answered_bytes: u32,
}

/// A call and what came of it. Times are nanoseconds since 1970 by the clock of whoever captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When the packet with its first byte was first seen.
    pub sent_ns: i64,
    /// When its last byte was seen, with all before it.
    pub sent_last_ns: i64,
    /// Place in the decoder's connections.
    pub connection: u32,
    /// RPC's own number of it.
    pub xid: u32,
    /// Place in the decoder's operations: the main one of a compound.
    pub operation: u32,
    /// Place in the decoder's lists of the operations of a compound; [`NOT_NAMED`] if it is none.
    pub compound: u32,
    /// Place in the decoder's files of what it is about; [`NOT_NAMED`] if it says none.
    pub file: u32,
    /// Length of the call.
    pub bytes: u32,
    /// Of what is read or written: bytes asked for.
    pub asked_bytes: u32,
    /// How often it was sent again.
    pub retransmissions: u32,
    /// Replies after the first.
    pub further_replies: u32,
    /// Not all of it could be read: it was cut, encrypted, or has an operation that is not known here.
    pub is_partial: bool,
    /// The first reply, if one was seen.
    pub reply: Option<Reply>,
}

impl Call {
    /// From the first byte of the call to the last of its first reply.
    pub fn reply_ns(&self) -> Option<i64> {
        self.reply.map(|reply| reply.last_ns.saturating_sub(self.sent_ns))
    }
}
