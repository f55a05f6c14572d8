//! Packets in; `nfs_calls.npy` and what its numbers mean out: the same of a capture's file and of an interface.
//!
//! The fact that constrains it: packets are more than memory holds, so rows are written as calls are over. What a file is
//! called is known only at the end: rows have its number, and the document has its name.

use plimsoll_nfs::{Call, Decoder, NOT_NAMED, Packet, Totals};
use plimsoll_record::{ABSENT_SAMPLE, NfsCallRow, RowWriter};
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Bits of `flags`.
const PARTIAL: u8 = 1;
const ANSWERED: u8 = 2;

/// Decodes and writes.
pub struct CallsRecorder {
    decoder: Decoder,
    rows: RowWriter<NfsCallRow>,
    rows_max: u64,
    written: u64,
    not_kept: u64,
}

/// What was recorded.
pub struct RecordedCalls {
    /// Rows of the table.
    pub written: u64,
    /// Calls beyond the most that were to be written.
    pub not_kept: u64,
    /// nfs.json, but for what only whoever had the packets can tell.
    pub document: Value,
    /// What was seen and lost.
    pub totals: Totals,
}

impl CallsRecorder {
    /// Creates the table in `folder`, for so many rows at most, with a decoder that may have been told something.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path, decoder: Decoder, rows_max: u64) -> io::Result<Self> {
        Ok(Self { decoder, rows: RowWriter::create(folder)?, rows_max, written: 0, not_kept: 0 })
    }

    /// Counts so far.
    pub fn totals(&self) -> &Totals {
        self.decoder.totals()
    }

    /// Reads a packet, and writes the calls that are over.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.decoder.packet(packet);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let Self { decoder, rows, rows_max, written, not_kept } = self;
        decoder.hand_out(&mut |call| {
            if *written >= *rows_max {
                *not_kept += 1;
                return Ok(());
            }
            *written += 1;
            rows.append(&row(call))
        })
    }

    /// Nothing more comes: writes the rest and the table's length.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn finish(mut self) -> io::Result<RecordedCalls> {
        self.decoder.finish();
        self.write()?;
        let document = document(&self.decoder);
        self.rows.close()?;
        let Self { written, not_kept, .. } = self;
        Ok(RecordedCalls { written, not_kept, document, totals: *self.decoder.totals() })
    }
}

fn row(call: &Call) -> NfsCallRow {
    let reply = call.reply;
    NfsCallRow {
        sent_ns: call.sent_ns,
        sent_last_ns: call.sent_last_ns,
        reply_first_ns: reply.map_or(ABSENT_SAMPLE, |reply| reply.first_ns),
        reply_ns: reply.map_or(ABSENT_SAMPLE, |reply| reply.last_ns),
        connection: call.connection,
        xid: call.xid,
        operation: call.operation,
        compound: call.compound,
        file: call.file,
        call_bytes: call.bytes,
        reply_bytes: reply.map_or(0, |reply| reply.bytes),
        asked_bytes: call.asked_bytes,
        answered_bytes: reply.map_or(0, |reply| reply.answered_bytes),
        retransmissions: call.retransmissions,
        further_replies: call.further_replies,
        status: reply.map_or(0, |reply| reply.status),
        rpc_status: reply.map_or(0, |reply| reply.rpc_status),
        flags: u8::from(call.is_partial) * PARTIAL + u8::from(reply.is_some()) * ANSWERED,
    }
}

fn document(decoder: &Decoder) -> Value {
    let operations: Vec<Value> =
        decoder.operations().iter().map(|one| json!({"protocol": one.protocol, "name": one.name})).collect();
    let connections: Vec<Value> = decoder
        .connections()
        .iter()
        .map(|one| {
            json!({"client": one.client, "server": one.server, "transport": if one.is_udp { "udp" } else { "tcp" }})
        })
        .collect();
    let names = (0..u32::try_from(decoder.files()).unwrap_or(NOT_NAMED)).filter_map(|file| {
        let named = decoder.named(file)?;
        Some(json!({"file": file, "path": named.path, "class": named.class.name()}))
    });
    json!({
        "operations": operations,
        "compounds": decoder.compounds(),
        "connections": connections,
        "files": decoder.files(),
        "named_files": names.collect::<Vec<Value>>(),
        "totals": totals(decoder.totals()),
    })
}

fn totals(totals: &Totals) -> Value {
    json!({
        "packets": totals.packets,
        "packet_bytes": totals.packet_bytes,
        "packets_cut": totals.packets_cut,
        "packets_unread": totals.packets_unread,
        "segments_again": totals.segments_again,
        "segments_early": totals.segments_early,
        "gaps": totals.gaps,
        "lost_bytes": totals.lost_bytes,
        "resynchronised": totals.resynchronised,
        "records_lost": totals.records_lost,
        "datagrams_lost": totals.datagrams_lost,
        "calls": totals.calls,
        "answered": totals.answered,
        "unanswered": totals.unanswered,
        "retransmissions": totals.retransmissions,
        "replies_without_call": totals.replies_without_call,
        "partial": totals.partial,
        "messages_unread": totals.messages_unread,
        "first_ns": totals.first_ns,
        "last_ns": totals.last_ns,
    })
}
