//! What the program hands over: the layout of `struct call`.

use plimsoll_record::{ABSENT_SAMPLE, NfsTaskOperation, NfsTaskRow};
use std::collections::HashMap;

const NAME_AT: usize = 72;
const NAME_BYTES: usize = 24;
/// The procedure that every program has, which does nothing.
const NULL: u32 = 0;

/// A call, and the operation that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Without the number of its operation.
    pub(super) row: NfsTaskRow,
    pub(super) operation: Operation,
}

/// What tells operations apart: those of version 4 share a procedure, and have numbers of the client's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Operation {
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) procedure: u32,
    number: u32,
    name: [u8; NAME_BYTES],
}

impl Operation {
    pub(super) fn name(&self) -> String {
        let length = self.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        match &self.name[..length] {
            [] if self.procedure == NULL => "NULL".to_owned(),
            [] => self.number.to_string(),
            name => String::from_utf8_lossy(name).into_owned(),
        }
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

impl Record {
    /// None if the bytes are no record.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..NAME_AT + NAME_BYTES)?;
        let long = |at| i64::from_ne_bytes(number(bytes, at));
        let half = |at| u32::from_ne_bytes(number(bytes, at));
        let status = i32::from_ne_bytes(number(bytes, 68));
        let row = NfsTaskRow {
            ended_ns: long(0),
            backlog_ns: long(8),
            // A client that has found no reply has measured nothing.
            rtt_ns: Some(long(16)).filter(|ns| *ns != 0).unwrap_or(ABSENT_SAMPLE),
            execute_ns: long(24),
            operation: 0,
            xid: half(48),
            pid: half(52),
            sent_bytes: half(56),
            received_bytes: half(60),
            transmissions: half(64),
            error: u32::try_from(status.checked_neg().unwrap_or(i32::MAX)).unwrap_or(0),
        };
        let operation = Operation {
            program: half(32),
            version: half(36),
            procedure: half(40),
            number: half(44),
            name: number(bytes, NAME_AT),
        };
        Some(Self { row, operation })
    }
}

/// Operations that were met, in that order.
#[derive(Debug, Default)]
pub(super) struct Operations {
    places: HashMap<Operation, u32>,
    pub(super) met: Vec<NfsTaskOperation>,
}

impl Operations {
    /// The place of one.
    pub(super) fn place(&mut self, operation: Operation) -> u32 {
        let Self { places, met } = self;
        *places.entry(operation).or_insert_with(|| {
            let Operation { program, version, procedure, .. } = operation;
            met.push(NfsTaskOperation { program, version, procedure, name: operation.name() });
            (met.len() - 1) as u32
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `times`: in the queue, to the reply, in all.
    pub(in super::super) fn bytes_of(ended: i64, times: [i64; 3], pid: u32, name: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [ended].iter().chain(&times).flat_map(|ns| ns.to_ne_bytes()).collect();
        bytes.extend([100_003_u32, 4, 1, 7, 0xabcd, pid, 200, 8300, 1, 0].iter().flat_map(|half| half.to_ne_bytes()));
        bytes.extend(name);
        bytes.resize(NAME_AT + NAME_BYTES, 0);
        bytes
    }

    fn bytes(rtt: i64, status: i32, name: &[u8]) -> Vec<u8> {
        let mut bytes = bytes_of(1000, [20, rtt, 400], 55, name);
        bytes[68..72].copy_from_slice(&status.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_record_is_read_by_its_layout() {
        let record = Record::decode(&bytes(300, -5, b"READ")).unwrap();
        let row = record.row;
        assert_eq!((row.ended_ns, row.backlog_ns, row.rtt_ns, row.execute_ns), (1000, 20, 300, 400));
        assert_eq!((row.xid, row.pid, row.sent_bytes, row.received_bytes), (0xabcd, 55, 200, 8300));
        assert_eq!((row.transmissions, row.error), (1, 5));
        let operation = record.operation;
        assert_eq!((operation.program, operation.version, operation.procedure), (100_003, 4, 1));
        assert_eq!(Record::decode(&bytes(300, 0, b"READ")[1..]), None);
    }

    #[test]
    fn a_call_without_a_reply_has_no_time_of_one() {
        assert_eq!(Record::decode(&bytes(0, -110, b"READ")).unwrap().row.rtt_ns, ABSENT_SAMPLE);
        assert_eq!(Record::decode(&bytes(300, 7, b"READ")).unwrap().row.error, 0, "what is not negative is no error");
        assert_eq!(Record::decode(&bytes(300, i32::MIN, b"READ")).unwrap().row.error, i32::MAX as u32);
    }

    #[test]
    fn operations_have_places_in_the_order_in_which_they_are_met() {
        let mut operations = Operations::default();
        let mut place = |name: &[u8]| operations.place(Record::decode(&bytes(300, 0, name)).unwrap().operation);
        let long = [b'A'; NAME_BYTES];
        assert_eq!((place(b"READ"), place(b""), place(b"READ"), place(&long)), (0, 1, 0, 2));
        let names: Vec<&str> = operations.met.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["READ", "7", &"A".repeat(NAME_BYTES)]);
    }
}
