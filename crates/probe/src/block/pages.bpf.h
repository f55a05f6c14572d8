/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose pages a request carries. The first page of its first bio speaks for all of it.
 *
 * The fact that constrains it: a page says what it is only in the form of pointers, which anything may be in a page of another
 * kind. So whatever is taken for an inode has to be the host of its own mapping, on a file system of the very disk.
 */
#ifndef PLIMSOLL_BLOCK_PAGES_BPF_H
#define PLIMSOLL_BLOCK_PAGES_BPF_H

#define MAPPING_KIND 3UL /* the lowest bits of a mapping that is none of a file */
#define BTRFS_TREE 1 /* the number of the file that stands for btrfs's trees; files of users have larger ones */

static __always_inline bool is_marked(u32 flags, u64 bit)
{
	return flags & (1ULL << bit);
}

static __always_inline bool in_journal(u32 disk, u64 sector)
{
	for (u32 i = 0; i < RANGES; i++) {
		if (!settings.journals[i].to)
			return false;
		if (settings.journals[i].disk == disk && sector >= settings.journals[i].from &&
		    sector < settings.journals[i].to)
			return true;
	}
	return false;
}

static __always_inline bool is_volume(u32 device)
{
	for (u32 i = 0; i < DISKS; i++) {
		if (!settings.volumes[i])
			return false;
		if (settings.volumes[i] == device)
			return true;
	}
	return false;
}

/* What ext4's journal writes are buffers with a function of its own for their end. */
static __always_inline bool is_of_journal(struct bio *bio)
{
	struct buffer_head *buffer = BPF_CORE_READ(bio, bi_private);

	return settings.journal_end && (u64)BPF_CORE_READ(buffer, b_end_io) == settings.journal_end &&
	       is_volume(BPF_CORE_READ(buffer, b_bdev, bd_dev));
}

/* Whether files of that file system may be on that disk. */
static __always_inline bool lies_on(u32 device, u32 disk)
{
	for (u32 i = 0; i < DEVICES; i++) {
		if (!settings.folders.devices[i])
			return false;
		if (settings.folders.devices[i] == device)
			return settings.disks_of[i] & (1 << (disk & 31));
	}
	return false;
}

static __always_inline bool is_host(struct inode *inode, struct address_space *mapping)
{
	return inode && mapping && BPF_CORE_READ(inode, i_mapping) == mapping && BPF_CORE_READ(mapping, host) == inode;
}

/* The class of a file of one of the server's file systems on the disk; CLASS_NONE for all others. */
static __noinline u32 class_of_file(struct inode *inode, u32 disk)
{
	u32 device = BPF_CORE_READ(inode, i_sb, s_dev);
	u64 number = BPF_CORE_READ(inode, i_ino);
	struct file_key key = {};
	struct file_entry *entry;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return is_volume(BPF_CORE_READ(inode, i_rdev)) ? CLASS_METADATA : CLASS_NONE;
	if (!lies_on(device, disk))
		return CLASS_NONE;
	if (number == BTRFS_TREE && BPF_CORE_READ(inode, i_sb, s_magic) == BTRFS_MAGIC)
		return CLASS_METADATA;
	if (target.own_file && number == target.own_file)
		return CLASS_OWN;
	entry = look_up(&key, number, inode, BPF_CORE_READ(inode, i_generation), device);
	return entry ? entry->class : CLASS_ELSEWHERE;
}

/* The open file of a direct read or write, if `private` is what iomap has with it. */
static __always_inline struct inode *direct_file(void *private)
{
	struct iomap_dio *direct = private;
	struct file *file = BPF_CORE_READ(direct, iocb, ki_filp);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	return is_host(inode, BPF_CORE_READ(file, f_mapping)) ? inode : NULL;
}

/* btrfs puts its own around each of its bios. */
static __always_inline struct inode *btrfs_file(struct bio *bio)
{
	struct btrfs_bio *around;
	struct btrfs_inode *tree;
	struct inode *inode;

	if (!bpf_core_type_exists(struct btrfs_bio) || !bpf_core_field_exists(struct btrfs_bio, inode))
		return NULL;
	around = (void *)bio - bpf_core_field_offset(struct btrfs_bio, bio);
	tree = BPF_CORE_READ(around, inode);
	if (!tree)
		return NULL;
	inode = (void *)tree + bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	return BPF_CORE_READ(inode, i_sb, s_magic) == BTRFS_MAGIC && is_host(inode, BPF_CORE_READ(inode, i_mapping)) ?
		       inode :
		       NULL;
}

/* Memory of a program, or of another file system, on its way from or to a file that is read or written directly. */
static __noinline u32 class_of_direct(struct bio *bio, u32 disk)
{
	struct bio *whole = BPF_CORE_READ(bio, bi_private);
	struct inode *inode = direct_file(whole);
	u32 class = CLASS_NONE;

	/* What was cut off a bio has the bio for its own. */
	if (!inode && whole)
		inode = direct_file(BPF_CORE_READ(whole, bi_private));
	if (inode)
		class = class_of_file(inode, disk);
	if (class != CLASS_NONE)
		return class;
	inode = btrfs_file(bio);
	return inode ? class_of_file(inode, disk) : CLASS_NONE;
}

static __always_inline struct page *first_page(struct bio *bio)
{
	struct bio_vec *vectors = BPF_CORE_READ(bio, bi_io_vec);
	u32 at = BPF_CORE_READ(bio, bi_iter.bi_idx);
	struct page *page;
	unsigned long above;

	if (!vectors)
		return NULL;
	vectors = (void *)vectors + at * bpf_core_type_size(struct bio_vec);
	page = BPF_CORE_READ(vectors, bv_page);
	above = BPF_CORE_READ(page, compound_head);
	return above & 1 ? (void *)(above - 1) : page;
}

/* On its way to or from swap. A page of the swap cache that has its content may be read into by a program. */
static __always_inline bool is_swap(struct page *page, u32 flags, bool is_read)
{
	unsigned long bits = 0;

	if (!is_read)
		return is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_SWAP));
	/* Flags are the first of a page, whatever their type. */
	bpf_probe_read_kernel(&bits, sizeof(bits), page);
	return bits & (1UL << bpf_core_enum_value(enum pageflags, PG_swapcache)) &&
	       bits & (1UL << bpf_core_enum_value(enum pageflags, PG_swapbacked)) &&
	       !(bits & (1UL << bpf_core_enum_value(enum pageflags, PG_uptodate)));
}

static __always_inline u32 class_of(struct bio *bio, u64 sector, u32 flags, u32 operation, u32 disk)
{
	struct address_space *mapping;
	struct inode *inode = NULL;
	struct page *page;
	u32 class = CLASS_NONE;

	if (!bio || operation > OP_WRITE)
		return CLASS_NO_PAGES;
	if (in_journal(disk, sector) || (operation == OP_WRITE && is_of_journal(bio)))
		return CLASS_JOURNAL;
	page = first_page(bio);
	if (!page)
		return CLASS_UNKNOWN;
	mapping = BPF_CORE_READ(page, mapping);
	if (mapping && !((unsigned long)mapping & MAPPING_KIND))
		inode = BPF_CORE_READ(mapping, host);
	if (!is_host(inode, mapping))
		inode = NULL;
	if (inode)
		class = class_of_file(inode, disk);
	if (class != CLASS_NONE)
		return class;
	if (is_marked(flags, bpf_core_enum_value(enum req_flag_bits, __REQ_META)))
		return inode ? CLASS_ELSEWHERE : CLASS_METADATA;
	if (!inode && is_swap(page, flags, operation == OP_READ))
		return CLASS_SWAP;
	class = class_of_direct(bio, disk);
	if (class != CLASS_NONE)
		return class;
	if (inode)
		return CLASS_ELSEWHERE;
	/* Anonymous memory is a program's. */
	return (unsigned long)mapping & MAPPING_KIND ? CLASS_DIRECT : CLASS_UNKNOWN;
}

#endif
