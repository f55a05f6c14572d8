/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs and the agent share: layouts are those of records.rs. */
#ifndef PLIMSOLL_SYNC_H
#define PLIMSOLL_SYNC_H

#include "../folders/folders.h"

/* Where the time of a call goes; places as in the record. Each moment is in one of them. */
enum part {
	WRITEBACK, /* waiting for pages that were on their way already */
	WRITING, /* handing dirty pages to the device, on a CPU and waiting for room */
	WRITE_IO, /* waiting for pages to arrive that it has written */
	JOURNAL, /* waiting for a commit of the journal */
	METADATA, /* waiting for metadata that it writes itself, where there is no journal */
	FLUSH, /* waiting for the device to empty its cache, asked for by the call itself */
	COMMIT, /* waiting for a server of NFS to commit what was written to it */
	RUN_QUEUE,
	CPU, /* on a CPU, but for WRITING and FLUSH */
	OTHER_WAIT,
	PARTS,
};

/* What a file system tells of writing; its number in mod.rs. */
enum tells {
	TELLS_NOTHING,
	TELLS_OF_A_JOURNAL, /* ext4: when pages are written, and when a commit has ended */
	TELLS_BY_STACK, /* NFS: by its functions that a call waits in */
};

/* What those functions tell; user side: nfs.rs. */
enum of_nfs {
	OF_NFS_PAGES = 1,
	OF_NFS_WRITING,
	OF_NFS_COMMIT,
};

enum call {
	CALL_FSYNC,
	CALL_FDATASYNC,
};

#define CLASS_ELSEWHERE CLASS_SELF_TEST /* not the server's; this probe knows no folder of a self-test */

struct sync {
	unsigned long long entered, ended;
	unsigned long long parts[PARTS];
	unsigned long long journal_flush; /* of JOURNAL, while the device was emptying its cache */
	unsigned int pid;
	unsigned int pages; /* written by the call itself */
	int result;
	unsigned char call, class;
	unsigned char tells; /* enum tells, of the file system */
	unsigned char unused;
};

enum lost {
	LOST_FILES, /* the map of files was full */
	LOST_TASKS, /* tasks that could not be remembered */
	LOST_RECORDS, /* the ring had no room */
	LOSSES,
};

/* Set before load; user side: mod.rs. */
struct settings {
	struct folders folders;
	unsigned int disks[DEVICES]; /* of those file systems; 0: not known */
	unsigned int tells[DEVICES]; /* enum tells, of each */
	unsigned int fsync, fdatasync; /* their numbers */
	unsigned int by_stack; /* one of the file systems tells so */
};

struct target {
	unsigned int parent; /* it and its children are watched */
	unsigned int unused;
};

#endif
