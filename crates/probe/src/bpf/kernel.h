/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of the kernel's types that the probes read. CO-RE moves each field to where the running kernel has it, so
 * only names and types have to be right; what follows a name with three underscores is an older or newer kernel's form.
 */
#ifndef PLIMSOLL_KERNEL_H
#define PLIMSOLL_KERNEL_H

#include <linux/bpf.h>

typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
typedef __u8 u8;
typedef __u16 u16;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define PAGE_SHIFT_MIN 12
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define TASK_UNINTERRUPTIBLE 0x00000002
#define TASK_DEAD 0x00000080
#define TASK_WAKEKILL 0x00000100
#define TASK_WAKING 0x00000200
#define offsetof(type, member) __builtin_offsetof(type, member)
/* Set for the time of any reclaim, by kswapd, direct, of a group or asked for (DAMON, memory.reclaim). */
#define PF_MEMALLOC 0x00000800
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define O_DIRECT_X86 040000
#define O_DIRECT_ARM64 0200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct backing_dev_info {
	char dev_name[64];
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct address_space;

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	u32 i_rdev;
	s64 i_size;
	u32 i_generation;
	struct hlist_head i_dentry;
};

struct btrfs_root {
	u32 anon_dev;
};

struct btrfs_inode {
	struct btrfs_root *root;
	struct inode vfs_inode;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct address_space {
	struct inode *host;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned int _nr_pages;
};

struct folio___before_6_15 {
	unsigned int _folio_nr_pages;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
	unsigned long index;
};

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	unsigned int f_flags;
	s64 f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct path {
	struct dentry *dentry;
};

struct fs_struct {
	struct path pwd;
};

struct task_io_accounting {
	u64 syscr;
	u64 read_bytes;
};

struct sched_info {
	u64 run_delay, last_arrival, last_queued;
};

struct task_struct {
	unsigned int __state;
	struct sched_info sched_info;
	unsigned int flags;
	int pid, tgid;
	int exit_code;
	u64 utime, stime;
	u64 start_time; /* by bpf_ktime_get_ns() */
	struct task_struct *real_parent;
	unsigned in_iowait : 1;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct task_io_accounting ioac;
	struct files_struct *files;
	struct fs_struct *fs;
};

struct gendisk {
	int major, first_minor;
};

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
};

struct buffer_head {
	struct block_device *b_bdev;
	void *b_end_io;
};

struct bvec_iter {
	unsigned int bi_size;
	unsigned int bi_idx;
};

struct bio_vec {
	struct page *bv_page;
};

struct bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct kiocb {
	struct file *ki_filp;
	s64 ki_pos;
};

struct io_cqe {
	int fd; /* until the request has its file */
};

/* A request of io_uring. */
struct io_kiocb {
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
};

/* What a request to read or write keeps in it, from its start on. */
struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

/* What a direct read or write has with it. */
struct iomap_dio {
	struct kiocb *iocb;
};

struct btrfs_bio {
	struct btrfs_inode *inode;
	struct bio bio;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
};

struct bdi_writeback {
	struct backing_dev_info *bdi;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, dx, si, di, orig_ax, ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
};
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	int syscallno;
};
#endif

#pragma clang attribute pop

enum pageflags {
	PG_head = 0,
	PG_uptodate,
	PG_swapbacked,
	PG_swapcache,
};

enum req_flag_bits {
	__REQ_PREFLUSH = 0,
	__REQ_SYNC,
	__REQ_META,
	__REQ_FUA,
	__REQ_RAHEAD,
	__REQ_SWAP,
};

static inline __attribute__((always_inline)) u32 call_in(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (u32)regs->orig_ax;
#else
	return (u32)regs->syscallno;
#endif
}

/* The arguments of the system call in the registers. */
static inline __attribute__((always_inline)) u64 first_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->di;
#else
	return regs->orig_x0;
#endif
}

static inline __attribute__((always_inline)) u64 second_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->si;
#else
	return regs->regs[1];
#endif
}

#endif
