// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts the requests of the disks that hold a server's files: what they carry, how long they queue, how long they are at
 * the device.
 *
 * The fact that constrains it: a request is one piece of memory that is used again at once, and the completion comes from an
 * interrupt of any CPU. So whatever is to be known at the end is noted at the issue, under the request's address, and an
 * entry that is found there already is one whose end was missed.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "block.h"
#include "../bpf/counters.bpf.h"
#include "../bpf/histogram.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define REQ_OP_MASK 0xff
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZEROES 9
#define ROWS_OF_SEGMENT (DISKS * REQUEST_CLASSES * OPERATIONS)

const volatile struct settings settings SEC(".rodata.settings");

volatile struct target target SEC(".data.target");

COUNTERS_OF_EACH_CPU(counters, SEGMENTS *ROWS_OF_SEGMENT, NUMBERS);
COUNTERS_OF_EACH_CPU(events, SEGMENTS *DISKS, EVENTS);
LOSSES_OF_EACH_CPU(LOSSES)

#include "../folders/folders.bpf.h"
#include "pages.bpf.h"

/* A request at the device. */
struct flight {
	u64 issued, queued; /* how long it has queued */
	u32 bytes, flags;
	u8 disk, class, operation, segment;
	bool has_queued; /* the kernel has noted when it began */
	u64 began; /* that moment, or 0: another request in the same memory has another */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct flight);
} flights SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct bucket_key);
	__type(value, u64);
} buckets SEC(".maps");

/* The most in a period between two samples; of the last two, since a sample is read after the next has begun. */
struct highest {
	u32 period, requests;
};

/*
 * How many requests a disk has, and how long it has had how many: the moments at which they ended less those at which they
 * were issued. With the present moment for each that is there, that is the time of all of them together. It does not matter
 * in which order two CPUs come here with moments that they have read before, or how long one was kept from coming.
 */
struct depth {
	struct bpf_spin_lock lock;
	u32 requests;
	u64 moments;
	struct highest highest[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DISKS);
	__type(key, u32);
	__type(value, struct depth);
} depths SEC(".maps");

static __always_inline u32 place_of_disk(struct gendisk *disk)
{
	u32 device = disk->major << 20 | disk->first_minor;

	for (u32 i = 0; i < DISKS; i++) {
		if (!settings.disks[i])
			return DISKS;
		if (settings.disks[i] == device)
			return i;
	}
	return DISKS;
}

static __always_inline void happens(u32 segment, u32 disk, u32 event)
{
	u32 row = segment * DISKS + disk;
	u64 *counted;

	if (segment >= SEGMENTS)
		return;
	counted = bpf_map_lookup_elem(&events, &row);
	if (counted && event < EVENTS)
		counted[event]++;
}

static __always_inline void deepen(u32 disk, s32 requests, u64 now)
{
	struct depth *depth = bpf_map_lookup_elem(&depths, &disk);
	u32 period = target.period;
	struct highest *highest;

	if (!depth)
		return;
	highest = &depth->highest[period & 1];
	bpf_spin_lock(&depth->lock);
	depth->moments -= (s64)requests * now;
	if (highest->period != period) {
		highest->period = period;
		highest->requests = depth->requests;
	}
	depth->requests += requests;
	if (depth->requests > highest->requests)
		highest->requests = depth->requests;
	bpf_spin_unlock(&depth->lock);
}

static __always_inline u32 operation_of(u32 flags)
{
	u32 operation = flags & REQ_OP_MASK;

	if (operation <= OP_DISCARD)
		return operation;
	if (operation == REQ_OP_SECURE_ERASE)
		return OP_DISCARD;
	return operation == REQ_OP_ZEROES ? OP_ZEROES : OP_OTHER;
}

/* --- a request is issued, and perhaps given back ------------------------------------------------------------------ */

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	u32 disk = place_of_disk(request->q->disk), segment = target.segment;
	u64 key = (u64)request, began;
	struct flight flight = {}, *before;

	if (disk >= DISKS || segment >= SEGMENTS)
		return 0;
	flight.flags = request->cmd_flags;
	flight.bytes = request->__data_len;
	flight.disk = disk;
	flight.segment = segment;
	flight.operation = operation_of(flight.flags);
	flight.class = class_of(request->bio, request->__sector, flight.flags, flight.operation, disk);
	began = request->start_time_ns;
	flight.has_queued = began != 0;
	flight.began = began;
	happens(segment, disk, ISSUED);
	before = bpf_map_lookup_elem(&flights, &key);
	/* Last, so that what is done here is in no request's time at the device. */
	flight.issued = bpf_ktime_get_ns();
	if (began && flight.issued > began)
		flight.queued = flight.issued - began;
	if (before)
		happens(before->segment, before->disk, UNSEEN_ENDS);
	else
		deepen(disk, 1, flight.issued);
	if (bpf_map_update_elem(&flights, &key, &flight, BPF_ANY)) {
		deepen(disk, -1, flight.issued);
		happens(segment, disk, NO_ROOM);
	}
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *request)
{
	u64 key = (u64)request;
	struct flight *flight;

	if (target.segment >= SEGMENTS || place_of_disk(request->q->disk) >= DISKS)
		return 0;
	flight = bpf_map_lookup_elem(&flights, &key);
	if (!flight)
		return 0;
	happens(flight->segment, flight->disk, REQUEUED);
	deepen(flight->disk, -1, bpf_ktime_get_ns());
	bpf_map_delete_elem(&flights, &key);
	return 0;
}

/* --- it completes ------------------------------------------------------------------------------------------------- */

static __noinline int distribute(u32 row, u32 distribution, u64 value)
{
	struct bucket_key key = {.row = row, .distribution = distribution, .bucket = bucket_of(value)};
	u64 *count = bpf_map_lookup_elem(&buckets, &key), none = 0;

	if (!count) {
		bpf_map_update_elem(&buckets, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&buckets, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		lose(LOST_BUCKETS);
	return 0;
}

/* The least and the most stand behind the sum. */
static __always_inline void add(u64 *sum, u64 value, bool first)
{
	sum[0] += value;
	if (first || value < sum[1])
		sum[1] = value;
	if (first || value > sum[2])
		sum[2] = value;
}

static __always_inline bool is_synchronous(u32 operation, u32 flags)
{
	return operation == OP_READ || operation == OP_FLUSH ||
	       is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC)) ||
	       is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_FUA));
}

static __always_inline void count(struct flight *flight, bool failed, u64 at_device)
{
	u32 row = flight->segment * ROWS_OF_SEGMENT +
		  (flight->disk * REQUEST_CLASSES + flight->class) * OPERATIONS + flight->operation;
	u64 *counted = bpf_map_lookup_elem(&counters, &row);
	u32 flags = flight->flags;
	bool first;

	if (!counted)
		return;
	first = !counted[COUNT]++;
	counted[ERRORS] += failed;
	add(&counted[BYTES], flight->bytes, first);
	add(&counted[DEVICE_NS], at_device, first);
	if (flight->has_queued)
		add(&counted[QUEUE_NS], flight->queued, !counted[QUEUED]++);
	counted[SYNCHRONOUS] += is_synchronous(flight->operation, flags);
	counted[META] += is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_META));
	counted[FUA] += is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_FUA));
	counted[AHEAD] += is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD));
	distribute(row, OF_BYTES, flight->bytes);
	distribute(row, OF_DEVICE, at_device);
	if (flight->has_queued)
		distribute(row, OF_QUEUE, flight->queued);
}

/*
 * One that was never seen at the device. A write of nothing that asks for a flush is answered by that of a request of its own,
 * and a write of something that also asked for one completes a second time, then of nothing.
 */
static __always_inline void count_unseen(struct request *request, u32 disk, u32 bytes)
{
	struct bio *bio = request->bio;

	if (bytes || (request->cmd_flags & REQ_OP_MASK) != OP_WRITE)
		happens(target.segment, disk, BEFORE);
	else if (bio && !bio->bi_io_vec)
		happens(target.segment, disk, FLUSH_ASKS);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, u8 error, unsigned int bytes)
{
	u32 disk = place_of_disk(request->q->disk), segment = target.segment;
	u64 key = (u64)request, now;
	struct flight *flight;

	if (disk >= DISKS || segment >= SEGMENTS)
		return 0;
	now = bpf_ktime_get_ns();
	flight = bpf_map_lookup_elem(&flights, &key);
	if (!flight) {
		count_unseen(request, disk, bytes);
		return 0;
	}
	/* A part of it; the rest goes on. */
	if (bytes < request->__data_len)
		return 0;
	deepen(disk, -1, now);
	if (flight->began != request->start_time_ns) {
		happens(flight->segment, disk, UNSEEN_ENDS);
		happens(segment, disk, BEFORE);
	} else if (flight->segment != segment)
		happens(segment, disk, BEFORE);
	else
		count(flight, error, now > flight->issued ? now - flight->issued : 0);
	bpf_map_delete_elem(&flights, &key);
	return 0;
}

/* --- what never becomes a request, or is cut into several --------------------------------------------------------- */

static __always_inline int happens_to(struct bio *bio, u32 event)
{
	u32 disk = place_of_disk(bio->bi_bdev->bd_disk);

	if (disk < DISKS)
		happens(target.segment, disk, event);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_back_merge, struct bio *bio)
{
	return happens_to(bio, BIOS_MERGED);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_front_merge, struct bio *bio)
{
	return happens_to(bio, BIOS_MERGED);
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merge, struct request *request)
{
	u32 disk = place_of_disk(request->q->disk);

	if (disk < DISKS)
		happens(target.segment, disk, REQUESTS_MERGED);
	return 0;
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *bio)
{
	return happens_to(bio, SPLITS);
}
