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
#ifdef OWN_CLASSES
	CLASS_OWN, /* the first of a workload's own, which are known by their files' names */
	CLASS_OWN_LAST = CLASS_OWN + OWN_CLASSES - 1,
#endif
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

#define NAME_BYTES 16
#define NAME_WORDS (NAME_BYTES / 4)

/* A class of a workload's own: of the files of another class, those whose names begin so. */
struct own_class {
	unsigned int begins[NAME_WORDS];
	unsigned int mask[NAME_WORDS]; /* of the bytes that are compared; 0 in the first ends the list */
	unsigned int within; /* the class of the folder */
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
