/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program and the agent share: layouts are those of records.rs. */
#ifndef PLIMSOLL_NFS_TASKS_H
#define PLIMSOLL_NFS_TASKS_H

#define SERVERS 8
#define ADDRESS_BYTES 16
#define NAME_BYTES 24 /* of an operation, with the 0 behind it */

/* As the kernel's address of a transport has it: the port as on the wire, of IPv4 the first four bytes. */
struct server {
	unsigned short family, port;
	unsigned char address[ADDRESS_BYTES];
};

/* Set before load; user side: mod.rs. */
struct settings {
	unsigned int count;
	struct server servers[SERVERS];
};

struct call {
	unsigned long long ended; /* by bpf_ktime_get_ns() */
	long long backlog, rtt, execute; /* nanoseconds */
	unsigned int program, version, procedure;
	unsigned int number; /* the client's own of the operation, as in its account */
	unsigned int xid;
	unsigned int owner; /* the process that made it */
	unsigned int sent_bytes, received_bytes;
	int transmissions;
	int status;
	char name[NAME_BYTES];
};

enum lost {
	LOST_RECORDS, /* the ring had no room */
	LOSSES,
};

#endif
