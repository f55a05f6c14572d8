use super::*;

fn at(ns: i64) -> Seen {
    Seen { own_ns: ns, whole_ns: ns }
}

fn call(xid: u32, body: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = [xid, 0, 2, 100_003, 3, 1, 0, 0, 0, 0].into_iter().flat_map(u32::to_be_bytes).collect();
    bytes.extend((0..body).map(|i| (i % 251) as u8));
    bytes
}

fn marked(message: &[u8], fragment: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut pieces = message.chunks(fragment).peekable();
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { LAST_FRAGMENT } else { 0 };
        out.extend_from_slice(&(piece.len() as u32 | last).to_be_bytes());
        out.extend_from_slice(piece);
    }
    out
}

/// What is known of a message once it is gone: its number, its length, whether its end is right.
fn seen(message: Message<'_>) -> (u32, usize) {
    assert!(message.head.len() <= HEAD_BYTES || message.tail.is_empty());
    let xid = u32::from_be_bytes(message.head[..4].try_into().unwrap());
    let whole = call(xid, message.length - 40);
    assert_eq!(message.head, &whole[..message.head.len()]);
    assert_eq!(message.tail, &whole[whole.len() - message.tail.len()..]);
    assert!(message.head.len() == message.length || message.tail.len() >= TAIL_BYTES.min(message.length - HEAD_BYTES));
    (xid, message.length)
}

const BODIES: [usize; 9] = [0, 4, 100, 4052, 4056, 4060, 5000, 9000, 70_000];

#[test]
fn records_are_the_same_wherever_stream_and_fragments_are_cut() {
    for fragment in [7, 40, 512, 600, 4096, 1 << 20] {
        let stream: Vec<u8> =
            BODIES.iter().zip(1..).flat_map(|(&body, xid)| marked(&call(xid, body), fragment)).collect();
        for cut in [1, 3, 5, 44, 511, 1448, 65_536, 1 << 20] {
            let (mut records, mut found) = (Records::from_start(), Vec::new());
            for piece in stream.chunks(cut) {
                records.feed(at(0), piece, &mut |message| found.push(seen(message)));
                assert!(records.held_bytes() <= HEAD_BYTES + 2 * TAIL_BYTES + SIGN_BYTES);
            }
            let expected: Vec<_> = BODIES.iter().zip(1..).map(|(&body, xid)| (xid, body + 40)).collect();
            assert_eq!(found, expected, "fragments of {fragment}, cut by {cut}");
            assert_eq!(records.given(), Given::default());
        }
    }
}

#[test]
fn a_hole_costs_the_records_that_it_touches_and_no_other() {
    let stream: Vec<u8> = (1..=20).flat_map(|xid| marked(&call(xid, 100), 1 << 20)).collect();
    let each = stream.len() / 20;
    for from in (0..stream.len() - 300).step_by(13) {
        let to = from + 200;
        let (mut records, mut found) = (Records::from_start(), Vec::new());
        records.feed(at(0), &stream[..from], &mut |message| found.push(seen(message).0));
        records.skip(0, to - from, &mut |message| found.push(seen(message).0));
        for piece in stream[to..].chunks(17) {
            records.feed(at(0), piece, &mut |message| found.push(seen(message).0));
        }
        let untouched: Vec<u32> =
            (0..20).filter(|&i| (i + 1) * each <= from || i * each >= to).map(|i| i as u32 + 1).collect();
        assert_eq!(found, untouched, "a hole from {from} to {to}");
        assert_eq!(records.given().resynchronised, 1);
    }
}

#[test]
fn a_hole_in_the_data_leaves_the_message_its_head_and_its_end() {
    let stream = marked(&call(7, 50_000), 1 << 20);
    let (mut records, mut found) = (Records::from_start(), Vec::new());
    records.feed(at(1), &stream[..10_000], &mut |_| unreachable!());
    records.skip(2, 20_000, &mut |_| unreachable!());
    records.feed(at(3), &stream[30_000..], &mut |message| {
        assert_eq!((message.first_ns, message.last_ns), (1, 3));
        found.push(seen(message));
    });
    assert_eq!(found, [(7, 50_040)]);
    assert_eq!(records.given(), Given::default());
}

#[test]
fn a_stream_from_its_middle_begins_with_its_first_whole_record() {
    let stream: Vec<u8> = (1..=3).flat_map(|xid| marked(&call(xid, 1000), 1 << 20)).collect();
    for from in 1..1044 {
        for cut in [1, 100, 1 << 20] {
            let (mut records, mut found) = (Records::from_anywhere(), Vec::new());
            for piece in stream[from..].chunks(cut) {
                records.feed(at(0), piece, &mut |message| found.push(seen(message).0));
            }
            assert_eq!(found, [2, 3], "from {from} cut by {cut}");
        }
    }
}

#[test]
fn what_is_not_rpc_gives_nothing_and_holds_nothing() {
    let mut records = Records::from_start();
    let text = b"GET /index.html HTTP/1.1\r\nHost: example\r\n\r\n".repeat(100);
    records.feed(at(0), &text, &mut |_| unreachable!());
    assert!(records.is_searching());
    assert!(records.held_bytes() <= SIGN_BYTES);
}
