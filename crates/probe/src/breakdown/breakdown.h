/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs and the agent share: layouts are those of records.rs. */
#ifndef PLIMSOLL_BREAKDOWN_H
#define PLIMSOLL_BREAKDOWN_H

#include "../folders/folders.h"

/* Places as in the record. */
enum bucket {
	CPU_USER,
	CPU_KERNEL,
	RUN_QUEUE,
	LOCK,
	WAL_SYNC,
	WAL_WAIT,
	WAL_WRITE,
	DATA_READ,
	DATA_WRITE,
	DATA_SYNC,
	TEMP_IO,
	SWAP_IN,
	THROTTLE,
	NETWORK_SEND,
	CLIENT,
	OTHER_WAIT,
	UNATTRIBUTED,
};

enum flag {
	QUEUED = 1, /* it never waited for the message: counted from the answer before */
	UNKNOWN_EVENT = 2,
	CUT = 4, /* more kinds of wait than there is room for */
	ABORTED = 8, /* the process ended inside */
	UNREADABLE_END = 16, /* ends where the backend waits for its client again: the connection is encrypted */
	PROCESS_ENDED = 32, /* no transaction: all that a process of the server without a client did */
	OPEN = 64, /* under way; in no record */
	HEADLESS = 128, /* a block that may have begun before the slice of time that was watched */
};

/* Why a backend waits: for a page, */
enum cause {
	CAUSE_NONE,
	OWN_READ, /* it has asked the device for it, or for others, itself */
	ON_ITS_WAY, /* somebody else had */
	/* And what is waited for on NFS, in whichever bucket; user side: nfs.rs. */
	NFS_READ,
	NFS_WRITE,
	NFS_COMMIT,
	NFS_ATTRIBUTES,
	NFS_CALL,
};

enum counter {
	UNKNOWN_EVENTS,
	ARRIVALS_UNSEEN, /* switches to a backend that were told of later, by the backend itself */
	WRONG_GUESSES, /* that a backend waits for its client */
	UNREAD_ANSWERS, /* sent, and the end could not be read: the request ends with the next answer */
	SYNCS_WAL, /* calls of fsync and fdatasync, by what the caller says that it waits for */
	SYNCS_DATA,
	SYNCS_OTHER,
	BUSY, /* backends that are followed and not waiting for a client's next transaction; one CPU may have less than none */
	COUNTERS,
};

enum lost {
	NO_ROOM, /* requests of transactions that the ring had no room for */
	NO_STORAGE, /* tasks that could not be remembered at an event */
	LOST_FILES, /* times that the table of files had no room for one */
	LOST,
};

#define WAITS 8
/* In place of a wait event: the system call in which a backend without one blocked, and from bit 16 on `enum place`. */
#define SYSTEM_CALL 0xfe000000U
/* In none. */
#define NO_CALL 0xffffffU
/* In none, and what it reads is a page of a file that it has mapped. */
#define FILE_FAULT 0xfffffeU
#define IO_CLASS 0x0a
/* Of ReadyForQuery, the last message of an answer. */
#define READY_BYTES 6
#define WAIT_CLASSES 16
#define IO_EVENTS 256
#define CALLS 512

/* How a system call waits. */
enum way {
	WAY_UNKNOWN,
	WAY_SEMAPHORE,
	WAY_PAUSE, /* for time, or for what the call does not tell */
	WAY_EPOLL,
	WAY_READ,
	WAY_WRITE,
	WAY_SYNC,
	WAYS = 8,
};

/* What the descriptor of a system call is: none, one of the server's files by its class, or another. */
enum place {
	PLACE_NONE,
	PLACE_SOCKET = 6,
	PLACE_ELSEWHERE = 7,
	PLACES = 8,
};
#define PLACE_OF_CLASS(class) ((class) + 1)

struct wait {
	u64 ns;
	u32 event; /* PostgreSQL's wait_event_info */
	u32 waker; /* a process of the server, or 0 */
	u32 count;
	u8 bucket, cause;
	u16 unused;
};

/* A transaction of the server: a block, or a request outside of one. */
struct transaction {
	u32 pid;
	u16 flags, waits;
	u64 arrived, ended, cpu, run_queue;
	u32 user, system, after;
	u32 requests; /* answered */
	u32 one_in; /* while so much of the time, as one to this, was watched */
	u32 unused;
	struct wait wait[WAITS];
};

/* Room for the longest transaction behind seven of the shortest. */
#define BATCH_BYTES 704
#define BATCH_NS 100000000ULL

struct settings {
	struct folders folders; /* first, as folders.bpf.h wants it */
	u32 send_call; /* number of the system call with which a backend answers */
	u32 wait_call, other_wait_call; /* in which a backend waits for descriptors */
	u32 client_read, client_write, wal_write_lock; /* wait events with buckets of their own */
	u32 wal_sync; /* the wait event in which syncs of the log are counted */
	u32 by_request; /* each request is a transaction, also within a block */
	u32 in_slices; /* not all of the time may be watched */
	u32 by_system_call; /* the server does not tell its wait events */
	u32 on_nfs; /* some of its files are, and the kernel shows what its functions are called */
	u8 class_bucket[WAIT_CLASSES]; /* by the class of a wait event */
	u8 io_bucket[IO_EVENTS]; /* by the number of an event of the class IO */
	u8 call_way[CALLS];
	u8 way_bucket[WAYS * PLACES];
};

/* To keep within a budget only slices of time are watched. */
enum phase {
	OPENED,
	CLOSING, /* what is under way is followed to its end */
	CLOSED,
};

/* Changes while the programs run: first the self-test is watched, then the server; then slice after slice. */
struct target {
	u64 wait_pointer; /* address, in every process, of a pointer to its wait event, or 0 */
	s64 slew; /* of the clock that stamps against that of the scheduler, up to a constant */
	u64 until; /* when a slice that is being closed ended */
	u32 parent; /* its children are watched */
	u32 phase;
	u32 slice; /* its number */
	u32 one_in; /* so much of the time is in a slice */
	u32 wait_offset; /* of the wait event, from where the pointer points */
	u32 unused;
};

#endif
