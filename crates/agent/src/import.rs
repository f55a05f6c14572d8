//! `import`: a packet capture that somebody took becomes tables of a record.
//!
//! The fact that constrains it: the capture is read once and is larger than memory. What becomes of its packets is what becomes
//! of a trial's own.

use crate::failure::Failure;
use crate::output;
use crate::request::Import;
use crate::stop;
use plimsoll_nfs::{CaptureError, Decoder, Ended, Packets};
use plimsoll_probe::nfs_calls::{CallsRecorder, RecordedCalls};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

const PROGRESS: Duration = Duration::from_secs(1);

pub(crate) fn import(request: &Import) -> Result<(), Failure> {
    stop::exit_on_signal("the record is incomplete")?;
    let named = |error: &dyn std::fmt::Display| Failure::Request(format!("file: {}: {error}", request.file.display()));
    let record = |error: io::Error| Failure::Record(format!("out: {}: {error}", request.out.display()));
    let file = File::open(&request.file).map_err(|error| named(&error))?;
    let length = file.metadata().map_err(|error| named(&error))?.len();
    let packets = Packets::open(file).map_err(|error| named(&error))?;
    let mut calls = CallsRecorder::create(&request.out, Decoder::default(), u64::MAX).map_err(record)?;
    let (mut refused, mut told) = (None, Instant::now());
    let read = packets.for_each(|packet| {
        calls.packet(&packet).inspect_err(|error| refused = Some(error.kind()))?;
        if calls.totals().packets % 4096 == 0 && told.elapsed() >= PROGRESS {
            told = Instant::now();
            output::event("progress", json!({"bytes": calls.totals().packet_bytes, "of_bytes": length}));
        }
        Ok::<(), CaptureError>(())
    });
    let ended = match read {
        Ok(how) => ended(&how),
        Err(CaptureError::Io(error)) if refused.is_some() => return Err(record(error)),
        Err(error) => return Err(named(&error)),
    };
    let RecordedCalls { written, mut document, .. } = calls.finish().map_err(record)?;
    document["ended"] = ended;
    document["file_bytes"] = json!(length);
    let text = format!("{document:#}\n");
    std::fs::write(request.out.join("nfs.json"), text).map_err(record)?;
    output::event("imported", json!({"calls": written, "totals": document["totals"], "ended": document["ended"]}));
    Ok(())
}

fn ended(ended: &Ended) -> Value {
    match ended {
        Ended::Whole => json!({"how": "whole", "at_byte": null, "reason": null}),
        Ended::Cut => json!({"how": "cut", "at_byte": null, "reason": null}),
        Ended::Damaged { at_byte, reason } => json!({"how": "damaged", "at_byte": at_byte, "reason": reason}),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use plimsoll_record::ABSENT_SAMPLE;

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
