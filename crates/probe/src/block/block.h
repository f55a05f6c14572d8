/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the probe's programs and its user side agree on; rows.rs and settings.rs have the layouts. */
#ifndef PLIMSOLL_BLOCK_H
#define PLIMSOLL_BLOCK_H

#include "../folders/folders.h"

#define DISKS 8
#define RANGES 8

/* Whose pages a request carries, beyond the classes of the server's own files. */
enum class_of_request {
	CLASS_METADATA = CLASS_SELF_TEST, /* of the file system; this probe tells its self-test by the file's number */
	CLASS_JOURNAL, /* within the range of the file system's journal or log */
	CLASS_SWAP,
	CLASS_DIRECT, /* memory of a program; of which file is not told */
	CLASS_NO_PAGES, /* flushes, discards, zeroes */
	CLASS_ELSEWHERE, /* files that are not the server's */
	CLASS_UNKNOWN,
	CLASS_OWN, /* the file of the self-test: not in the record */
	REQUEST_CLASSES,
};

enum operation {
	OP_READ,
	OP_WRITE,
	OP_FLUSH,
	OP_DISCARD, /* secure erase, too */
	OP_ZEROES,
	OP_OTHER,
	OPERATIONS,
};

/* Of each segment, disk, class and operation: requests that have completed. */
enum number {
	COUNT,
	ERRORS,
	BYTES,
	BYTES_MIN,
	BYTES_MAX,
	QUEUED, /* of those, the ones whose begin the kernel has noted */
	QUEUE_NS,
	QUEUE_MIN,
	QUEUE_MAX,
	DEVICE_NS,
	DEVICE_MIN,
	DEVICE_MAX,
	SYNCHRONOUS, /* somebody waits for it: a read, or marked so */
	META,
	FUA, /* to be on the medium, past the cache */
	AHEAD, /* read ahead of what was asked for */
	NUMBERS,
};

/* Of each segment and disk. */
enum event {
	ISSUED,
	REQUEUED, /* given back by the device, which had no room */
	BEFORE, /* completed, and issued before the segment or unseen */
	UNSEEN_ENDS, /* another request was in the same memory before they were seen to complete */
	NO_ROOM, /* the map of requests under way was full */
	FLUSH_ASKS, /* writes of nothing that asked for a flush, answered by one */
	BIOS_MERGED,
	REQUESTS_MERGED,
	SPLITS,
	EVENTS,
};

/* The distributions of each row: buckets of histogram.bpf.h. */
enum distribution {
	OF_BYTES,
	OF_QUEUE,
	OF_DEVICE,
};

struct bucket_key {
	unsigned int row;
	unsigned short distribution;
	unsigned short bucket;
};

enum lost {
	LOST_FILES, /* the map of files was full */
	LOST_BUCKETS, /* the map of distributions was full */
	LOSSES,
};

enum segment {
	SELF_TEST,
	MEASURED,
	ENDED, /* nothing more is noted */
};
#define SEGMENTS 2

struct range {
	unsigned long long from, to; /* in sectors of 512 bytes; `to` is beyond */
	unsigned int disk;
	unsigned int unused;
};

/* Set before load. */
struct settings {
	struct folders folders;
	unsigned int disks[DISKS]; /* their numbers; 0 ends the list */
	unsigned int disks_of[DEVICES]; /* of each file system: a bit a disk */
	unsigned int volumes[DISKS]; /* block devices that those file systems are made on; 0 ends the list */
	unsigned int unused;
	unsigned long long journal_end; /* the function that jbd2 has called at the end of what it writes; 0: not known */
	struct range journals[RANGES]; /* empty ones end the list */
};

/* Changes while the programs run. */
struct target {
	unsigned long long own_file; /* number of the self-test's file; 0: none */
	unsigned int segment;
	unsigned int period; /* counts the samples */
};

#endif
