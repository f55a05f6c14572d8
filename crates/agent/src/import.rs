//! `import`: a packet capture that somebody took becomes tables of a record.
//!
//! The fact that constrains it: the capture is read once and is larger than memory, so rows are written as calls are over.
//! What a file is called is known only at the end: rows have its number, and the document has its name.

use crate::failure::Failure;
use crate::output;
use crate::request::Import;
use crate::stop;
use plimsoll_nfs::{Call, CaptureError, Decoder, Ended, NOT_NAMED, Packets};
use plimsoll_record::{ABSENT_SAMPLE, NfsCallRow, NfsCallWriter};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Bits of `flags`.
const PARTIAL: u8 = 1;
const ANSWERED: u8 = 2;

const PROGRESS: Duration = Duration::from_secs(1);

pub(crate) fn import(request: &Import) -> Result<(), Failure> {
    stop::exit_on_signal("the record is incomplete")?;
    let named = |error: &dyn std::fmt::Display| Failure::Request(format!("file: {}: {error}", request.file.display()));
    let record = |error: io::Error| Failure::Record(format!("out: {}: {error}", request.out.display()));
    let file = File::open(&request.file).map_err(|error| named(&error))?;
    let length = file.metadata().map_err(|error| named(&error))?.len();
    let packets = Packets::open(file).map_err(|error| named(&error))?;
    let mut rows = NfsCallWriter::create(&request.out).map_err(record)?;
    let (mut decoder, mut told) = (Decoder::default(), Instant::now());
    let mut refused = None;
    let ended = packets.for_each(|packet| {
        decoder.packet(&packet);
        write(&mut decoder, &mut rows).inspect_err(|error| refused = Some(error.kind()))?;
        if decoder.totals().packets % 4096 == 0 && told.elapsed() >= PROGRESS {
            told = Instant::now();
            output::event("progress", json!({"bytes": decoder.totals().packet_bytes, "of_bytes": length}));
        }
        Ok::<(), CaptureError>(())
    });
    let ended = match ended {
        Ok(ended) => ended,
        Err(CaptureError::Io(error)) if refused.is_some() => return Err(record(error)),
        Err(error) => return Err(named(&error)),
    };
    decoder.finish();
    write(&mut decoder, &mut rows).map_err(record)?;
    let written = rows.close().map_err(record)?;
    let document = document(&decoder, &ended, length);
    let text = format!("{document:#}\n");
    std::fs::write(request.out.join("nfs.json"), text).map_err(record)?;
    output::event("imported", json!({"calls": written, "totals": document["totals"], "ended": document["ended"]}));
    Ok(())
}

/// Writes the calls that are over.
fn write(decoder: &mut Decoder, rows: &mut NfsCallWriter) -> io::Result<()> {
    let mut done = Vec::new();
    decoder.hand_out(&mut |call| {
        done.push(call.clone());
        Ok(())
    })?;
    done.iter().try_for_each(|call| rows.append(&row(call)))
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

fn document(decoder: &Decoder, ended: &Ended, length: u64) -> Value {
    let totals = decoder.totals();
    let (how, at_byte, reason) = match ended {
        Ended::Whole => ("whole", None, None),
        Ended::Cut => ("cut", None, None),
        Ended::Damaged { at_byte, reason } => ("damaged", Some(at_byte), Some(reason)),
    };
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
        "ended": {"how": how, "at_byte": at_byte, "reason": reason},
        "file_bytes": length,
        "operations": operations,
        "compounds": decoder.compounds(),
        "connections": connections,
        "files": decoder.files(),
        "named_files": names.collect::<Vec<Value>>(),
        "totals": {
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
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A capture of one datagram: a call of GETATTR without its reply.
    fn capture() -> Vec<u8> {
        let call: Vec<u8> =
            [7, 0, 2, 100_003, 3, 1, 0, 0, 0, 0, 4, 0xabcd].into_iter().flat_map(u32::to_be_bytes).collect();
        let mut ip = vec![0x45, 0, 0, 28 + call.len() as u8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend([3, 9, 8, 1, 0, 8 + call.len() as u8, 0, 0]);
        ip.extend(call);
        let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101, 5, 6, ip.len() as u32, ip.len() as u32];
        words.into_iter().flat_map(u32::to_le_bytes).chain(ip).collect()
    }

    #[test]
    fn a_capture_becomes_rows_and_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one.pcap");
        std::fs::write(&file, capture()).unwrap();
        import(&Import { file, out: folder.path().to_owned() }).unwrap();
        let table = plimsoll_record::Table::read(&folder.path().join("nfs_calls.npy")).unwrap();
        assert_eq!(table.column("sent_ns").unwrap(), [5_000_006_000]);
        assert_eq!(table.column("reply_ns").unwrap(), [i128::from(ABSENT_SAMPLE)]);
        assert_eq!(table.column("flags").unwrap(), [0]);
        let told: Value = serde_json::from_slice(&std::fs::read(folder.path().join("nfs.json")).unwrap()).unwrap();
        assert_eq!(told["operations"], json!([{"protocol": "nfs3", "name": "GETATTR"}]));
        assert_eq!(
            told["connections"],
            json!([{"client": "10.0.0.1:777", "server": "10.0.0.2:2049", "transport": "udp"}])
        );
        assert_eq!((&told["totals"]["unanswered"], &told["files"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn what_is_no_capture_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        let refused = |file: &std::path::Path| {
            import(&Import { file: file.to_owned(), out: folder.path().to_owned() }).unwrap_err()
        };
        std::fs::write(&file, b"GET / HTTP/1.1\r\nHost: example\r\n").unwrap();
        for wrong in [&file, &folder.path().join("none")] {
            let failure = refused(wrong);
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.to_string().starts_with(&format!("file: {}: ", wrong.display())), "{failure}");
        }
    }
}
