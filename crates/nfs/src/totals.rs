//! What a capture held, and what of it was lost.

use crate::stream::StreamCounts;

/// Counts over a whole capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets in the file.
    pub packets: u64,
    /// Bytes of packets in the file.
    pub packet_bytes: u64,
    /// Packets of which the file holds less than went over the wire.
    pub packets_cut: u64,
    /// Packets that are not IP with TCP or UDP, or whose headers are cut or wrong.
    pub packets_unread: u64,
    /// TCP segments that brought nothing new: sent again, or captured twice.
    pub segments_again: u64,
    /// TCP segments that came before one that belongs before them.
    pub segments_early: u64,
    /// Gaps of a TCP stream that nothing filled.
    pub gaps: u64,
    /// Bytes of those gaps.
    pub lost_bytes: u64,
    /// Times that the next record of RPC had to be searched for after a gap or after nonsense.
    pub resynchronised: u64,
    /// Records of RPC that were given up with a gap.
    pub records_lost: u64,
    /// Datagrams of which a fragment was missing.
    pub datagrams_lost: u64,
    /// Calls, each once.
    pub calls: u64,
    /// Calls whose first reply was seen.
    pub answered: u64,
    /// Calls without a reply in the capture.
    pub unanswered: u64,
    /// Calls that were sent again, each time.
    pub retransmissions: u64,
    /// Replies whose call was not seen.
    pub replies_without_call: u64,
    /// Calls that could not be read to their end.
    pub partial: u64,
    /// Messages of RPC that make no sense.
    pub messages_unread: u64,
    /// Earliest time of a packet.
    pub first_ns: i64,
    /// Latest time of a packet.
    pub last_ns: i64,
}

impl Totals {
    pub(crate) fn add(&mut self, counts: &StreamCounts) {
        self.segments_again += counts.segments_again;
        self.segments_early += counts.segments_early;
        self.gaps += counts.gaps;
        self.lost_bytes += counts.lost_bytes;
        self.resynchronised += counts.resynchronised;
        self.records_lost += counts.records_lost;
    }

    /// Whether anything is missing of what went over the wire.
    pub fn has_lost(&self) -> bool {
        self.gaps + self.datagrams_lost + self.records_lost + self.replies_without_call > 0
    }
}
