//! Messages to packets, and what happens to those between the machines and the file.

use super::calls::{Known, Protocol};
use super::{World, chance};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// A packet: of a stream a piece of it, else a whole message.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) ns: i64,
    /// 0: from the client.
    pub(crate) side: usize,
    /// Where in the stream it begins; of a datagram the number of its call.
    pub(crate) at: usize,
    pub(crate) data: Vec<u8>,
    pub(crate) acknowledged: usize,
    pub(crate) is_syn: bool,
    pub(crate) is_lost: bool,
    pub(crate) is_udp: bool,
}

/// What happens to packets; one in so many, 0 none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Damage {
    pub(crate) repeated_one_in: u32,
    pub(crate) moved_one_in: u32,
    /// How far packets are moved.
    pub(crate) moved_by: usize,
    pub(crate) lost_one_in: u32,
}

fn marked(message: &[u8], fragment: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut pieces = message.chunks(fragment).peekable();
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { 1 << 31 } else { 0 };
        out.extend_from_slice(&(piece.len() as u32 | last).to_be_bytes());
        out.extend_from_slice(piece);
    }
    out
}

/// What a decoder may want of a record's beginning in one piece.
const SIGN: usize = 48;

/// A length that does not cut the beginning of a fragment.
fn behind_markers(world: &World, ends: &[(usize, usize)], at: usize, length: usize) -> usize {
    let cut = at + length;
    let Some(&(from, to)) = ends.iter().find(|&&(from, to)| from < cut && cut < to) else { return length };
    let within = (cut - from) % world.fragment.saturating_add(4);
    if within < SIGN { (cut - within + SIGN).min(to) - at } else { length }
}

/// Cuts a stream of (when, bytes) into packets; gives for each message where it lies and when its last byte was sent.
fn cut(
    world: &World,
    random: &mut Xoshiro256PlusPlus,
    side: usize,
    messages: &[(i64, Vec<u8>)],
    packets: &mut Vec<Packet>,
) -> Vec<((usize, usize), i64)> {
    let stream: Vec<u8> = messages.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let mut ends = Vec::new();
    let mut end = 0;
    for (_, bytes) in messages {
        ends.push((end, end + bytes.len()));
        end += bytes.len();
    }
    let mut sent = Vec::with_capacity(messages.len());
    let (mut at, mut message, mut last_ns) = (0, 0, i64::MIN);
    while at < stream.len() {
        let shortest = if world.is_cut_anywhere { 1 } else { world.segment };
        let mut length = random.random_range(shortest..=world.segment).min(stream.len() - at);
        // What is handed over within a moment shares packets.
        let now = messages[message].0;
        let together = ends.iter().zip(messages).skip(message).take_while(|(_, (ns, _))| *ns < now + 20_000).last();
        length = length.min(together.map_or(usize::MAX, |((_, end), _)| end - at));
        if world.keeps_markers {
            length = behind_markers(world, &ends[message..], at, length);
        }
        while ends[message].1 <= at + length {
            let ready = messages[message].0.max(last_ns + 500);
            last_ns = last_ns.max(ready - 500);
            sent.push((ends[message], 0));
            message += 1;
            if message == messages.len() {
                break;
            }
        }
        let ready = messages[message.min(messages.len() - 1)].0;
        let begun = message < messages.len() && at + length > ends[message].0;
        last_ns = (last_ns + 500).max(if begun { ready } else { now });
        sent.iter_mut().filter(|(_, ns)| *ns == 0).for_each(|(_, ns)| *ns = last_ns);
        let data = stream[at..at + length].to_vec();
        packets.push(Packet {
            ns: last_ns,
            side,
            at,
            data,
            acknowledged: 0,
            is_syn: false,
            is_lost: false,
            is_udp: false,
        });
        at += length;
    }
    sent
}

pub(crate) fn send(world: &World, known: &mut [Known], random: &mut Xoshiro256PlusPlus) -> Vec<Packet> {
    let mut packets = Vec::new();
    if world.protocol == Protocol::Nfs3Udp {
        for (place, one) in known.iter_mut().enumerate() {
            let reply_ns = one.planned_ns + one.takes_ns;
            for (ns, side, data) in [(one.planned_ns, 0, &one.call), (reply_ns, 1, &one.reply)] {
                for again in 0..=one.again {
                    let ns = ns + i64::from(again) * 200_000;
                    let data = data.clone();
                    packets.push(Packet {
                        ns,
                        side,
                        at: place,
                        data,
                        acknowledged: 0,
                        is_syn: false,
                        is_lost: false,
                        is_udp: true,
                    });
                }
            }
        }
        packets.sort_by_key(|packet| packet.ns);
        return packets;
    }
    let first = known.first().map_or(0, |one| one.planned_ns) - 1000;
    for side in 0..2 {
        packets.push(Packet {
            ns: first + side as i64,
            side,
            at: 0,
            data: Vec::new(),
            acknowledged: 0,
            is_syn: true,
            is_lost: false,
            is_udp: false,
        });
    }
    // Calls, and those that are sent again; then replies, each after its call.
    let mut calls: Vec<(i64, usize, bool)> = Vec::new();
    for (place, one) in known.iter().enumerate() {
        calls.push((one.planned_ns, place, false));
        calls.extend((0..one.again).map(|_| (one.planned_ns + 400_000, place, true)));
    }
    calls.sort_unstable();
    let messages: Vec<_> =
        calls.iter().map(|&(ns, place, _)| (ns, marked(&known[place].call, world.fragment))).collect();
    let sent = cut(world, random, 0, &messages, &mut packets);
    let mut replies: Vec<(i64, usize, bool)> = Vec::new();
    for (&(_, place, is_again), &(at, ns)) in calls.iter().zip(&sent) {
        if !is_again {
            known[place].call_at = at;
        }
        replies.push((ns + known[place].takes_ns, place, is_again));
    }
    replies.sort_unstable();
    let messages: Vec<_> =
        replies.iter().map(|&(ns, place, _)| (ns, marked(&known[place].reply, world.fragment))).collect();
    let answered = cut(world, random, 1, &messages, &mut packets);
    for (&(_, place, is_again), &(at, _)) in replies.iter().zip(&answered) {
        if !is_again {
            known[place].reply_at = at;
        }
    }
    packets.sort_by_key(|packet| packet.ns);
    packets
}

pub(crate) fn damage(packets: &mut Vec<Packet>, damage: &Damage, random: &mut Xoshiro256PlusPlus) {
    let times: Vec<i64> = packets.iter().map(|packet| packet.ns).collect();
    // Handshakes stay, so that the decoder knows where streams begin.
    let mut place = 2;
    while place < packets.len() {
        if chance(random, damage.moved_one_in) {
            let to = (place + random.random_range(1..=damage.moved_by.max(1))).min(packets.len() - 1);
            packets[place..=to].rotate_left(1);
        }
        packets[place].is_lost = chance(random, damage.lost_one_in);
        place += 1;
    }
    for (packet, ns) in packets.iter_mut().zip(times) {
        packet.ns = ns;
    }
    if damage.repeated_one_in > 0 {
        let again: Vec<Packet> = packets[2..]
            .iter()
            .filter(|packet| !packet.is_lost && chance(random, damage.repeated_one_in))
            .map(|packet| Packet { ns: packet.ns + 700_000, ..packet.clone() })
            .collect();
        packets.extend(again);
        packets.sort_by_key(|packet| packet.ns);
    }
}

/// Up to where each side's stream has arrived by the time of each packet: what the capture lost has arrived all the same.
pub(crate) fn acknowledge(packets: &mut [Packet]) {
    let mut arrived = [Frontier::default(), Frontier::default()];
    for packet in packets.iter_mut().filter(|packet| !packet.is_udp) {
        packet.acknowledged = arrived[1 - packet.side].end;
        arrived[packet.side].add(packet.at, packet.data.len());
    }
}

#[derive(Default)]
struct Frontier {
    end: usize,
    beyond: BTreeMap<usize, usize>,
}

impl Frontier {
    fn add(&mut self, at: usize, length: usize) {
        let known = self.beyond.entry(at).or_default();
        *known = (*known).max(at + length);
        while let Some((&at, &end)) = self.beyond.first_key_value() {
            if at > self.end {
                return;
            }
            self.end = self.end.max(end);
            self.beyond.pop_first();
        }
    }
}

/// Fills in when the capture has each call and reply, byte by byte.
pub(crate) fn settle(packets: &[Packet], known: &mut [Known]) {
    if packets.iter().any(|packet| packet.is_udp) {
        for (place, one) in known.iter_mut().enumerate() {
            let first =
                |side| packets.iter().find(|packet| !packet.is_lost && packet.side == side && packet.at == place);
            one.sent = first(0).map(|packet| (packet.ns, packet.ns));
            one.replied = first(1).map(|packet| (packet.ns, packet.ns));
        }
        return;
    }
    for side in 0..2 {
        let length = packets.iter().filter(|p| p.side == side).map(|p| p.at + p.data.len()).max().unwrap_or(0);
        let mut seen = vec![i64::MAX; length];
        for packet in packets.iter().filter(|packet| packet.side == side && !packet.is_lost) {
            seen[packet.at..packet.at + packet.data.len()].iter_mut().for_each(|ns| *ns = (*ns).min(packet.ns));
        }
        // A byte has arrived when all before it have; those that the capture lost do not count.
        let mut arrived = Vec::with_capacity(length);
        let mut latest = i64::MIN;
        for &ns in &seen {
            latest = if ns == i64::MAX { latest } else { latest.max(ns) };
            arrived.push(latest);
        }
        for one in known.iter_mut() {
            let (at, end) = if side == 0 { one.call_at } else { one.reply_at };
            let times = (!seen[at..end].contains(&i64::MAX)).then(|| (seen[at], arrived[end - 1]));
            *(if side == 0 { &mut one.sent } else { &mut one.replied }) = times;
        }
    }
}
