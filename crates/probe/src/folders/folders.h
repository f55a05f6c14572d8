/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* File classes by folder: what the probes' programs and their user side agree on. */
#ifndef PLIMSOLL_FOLDERS_H
#define PLIMSOLL_FOLDERS_H

enum class {
	CLASS_DATA,
	CLASS_WAL,
	CLASS_GLOBAL,
	CLASS_TEMP,
	CLASS_OTHER,
	CLASS_SELF_TEST,
	CLASSES,
	CLASS_NONE = 255, /* not the target's */
};

#define DEVICES 8
#define GENERATION_UNKNOWN 0xffffffffU
#define BTRFS_MAGIC 0x9123683eU

/* What the settings of a probe with file classes begin with; `words` of mod.rs writes it in this order. */
struct folders {
	unsigned int devices[DEVICES]; /* file systems of the target; 0 ends the list */
	unsigned int by_subvolume; /* keys of btrfs files have their subvolume's number */
};

struct file_key {
	unsigned long long inode;
	unsigned int device;
	unsigned int unused;
};

struct file_entry {
	unsigned int generation;
	unsigned int number; /* of the file */
	unsigned int class;
	unsigned int unused;
#ifdef FILES_HAVE_POSITIONS
	unsigned long long read_end, write_end; /* of the last read and the last write, plus one; 0: none yet */
#endif
};

#endif
