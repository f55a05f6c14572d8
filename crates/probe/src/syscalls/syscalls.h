/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the probe's programs and its user side agree on; calls.rs names the calls, the classes and the numbers in this order. */
#ifndef PLIMSOLL_SYSCALLS_H
#define PLIMSOLL_SYSCALLS_H

#define FILES_HAVE_POSITIONS
#include "../folders/folders.h"

/* Beside the classes of the target's own files. */
enum class_of_call {
	CLASS_ELSEWHERE = CLASS_SELF_TEST, /* files and folders that are not the server's; this probe makes none for a self-test */
	CLASS_NO_FILE, /* sockets, pipes, epoll instances, devices; no descriptor at all */
	CALL_CLASSES,
};

/* Kinds of calls that are counted by class; 0 in the table by number stands for all others. */
enum kind {
	KIND_OTHER,
	KIND_OPEN,
	KIND_READ,
	KIND_PREAD,
	KIND_WRITE,
	KIND_PWRITE,
	KIND_LSEEK,
	KIND_CLOSE,
	KIND_FSYNC,
	KIND_FDATASYNC,
	KIND_SYNC_FILE_RANGE,
	KIND_TRUNCATE,
	KIND_FALLOCATE,
	KIND_UNLINK,
	KIND_RENAME,
	KIND_STAT,
	KINDS,
	KIND_NEVER_RETURNS = KINDS,
	KIND_RETURNS_TWICE, /* also in the process that it makes, with 0 */
};

/* How a call names its file and what it asks for: bits in the table by number. */
enum way {
	BY_DESCRIPTOR = 1, /* the first argument */
	BY_PATH = 2, /* the first argument, relative to the task's folder */
	BY_PATH_AT = 4, /* the second argument, relative to the first */
	GIVES_DESCRIPTOR = 8,
	TRANSFERS_READ = 16,
	TRANSFERS_WRITE = 32,
	FROM_ARGUMENT = 64, /* at the fourth argument and not at the file's own position */
	OF_VECTORS = 128, /* the second and third argument, else the third is a length */
};

/* Numbers of each kind and class, one behind the other. */
enum number {
	COUNT,
	ERRORS,
	ASKED_BYTES,
	RETURNED_BYTES,
	NS,
	SEQUENTIAL,
	NS_BUCKETS_AT,
};

#define NS_BUCKETS 40 /* the bucket n holds 2^n to 2^(n+1) - 1 ns, the first also 0, the last all above */
#define BYTES_BUCKETS_AT (NS_BUCKETS_AT + NS_BUCKETS)
#define BYTES_BUCKETS 33 /* the first holds 0 bytes, the bucket n 2^(n-1) to 2^n - 1, the last all above */
#define NUMBERS (BYTES_BUCKETS_AT + BYTES_BUCKETS)
/* Of calls that are counted by number alone: as above, and for how many of them NS stands. */
#define TIMED (NS + 1)
#define OTHER_NUMBERS (TIMED + 1)
/* Their time is taken of the first, then of one in so many. */
#define TIMED_FIRST 64
#define TIMED_SHIFT 3

#define SYSCALLS 512
#define ROOT_BYTES 256
#define PATH_BYTES 512
#define REST_BYTES 128 /* of a name within the server's folder that are looked at */
#define VECTORS_MAX 128 /* as many as PostgreSQL uses at once */

enum lost {
	LOST_FILES, /* the map of files was full */
	LOST_TASKS, /* no room for a task's call */
	LOST_PATHS, /* a path could not be read: its call is of no file */
	LOST_VECTORS, /* what a call asked for could not be read */
	LOSSES,
};

/* Which calls are counted one by one; what is not is counted in slices of time. */
enum counted { COUNTED_SLICES, COUNTED_FILES, COUNTED_ALL };

/* Set before load. The user side writes it field by field in this order (calls.rs). */
struct settings {
	struct folders folders;
	unsigned int append_flag; /* O_APPEND */
	unsigned int root_bytes; /* at most ROOT_BYTES - 1 */
	unsigned int root_device; /* as keys of files have it */
	unsigned long long root_inode;
	char root[ROOT_BYTES]; /* the target's folder with a slash at its end */
	unsigned int sigreturn; /* the number of the call that forgets its number */
	unsigned int counted; /* enum counted */
	unsigned int names_tell; /* the class of a file within the folder; else all are CLASS_OTHER */
	unsigned int unused;
	unsigned char kinds[SYSCALLS]; /* by number */
	unsigned char ways[SYSCALLS];
};

/* Changes while the programs run: first the self-test is watched, then the server. */
struct target {
	unsigned int parent; /* it and its children are watched */
	unsigned int unused;
	unsigned long long slice_since; /* calls are counted that began since this moment; 0: none are */
	unsigned long long slice_until; /* and before this one; 0: the slice goes on */
};

#endif
