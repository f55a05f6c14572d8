// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts what the target's files ask of the page cache, by file class, in pages.
 *
 * A read is known twice: its additions to the page cache happen inside the call, and its range becomes known when the
 * kernel has its pages (mm_filemap_get_pages) or when the call ends. So additions wait in the task's call until the
 * range is known; what lies in it was missed, the rest was brought ahead. A call is told from the next by the task's own
 * count of finished read calls, a fault by its count of finished faults: nothing has to be traced at their entry.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "page_cache.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct settings settings SEC(".rodata.settings");
u32 files_seen;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, u64[COUNTERS]);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[LOSSES]);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct file_key);
	__type(value, struct file_entry);
} files SEC(".maps");

/* Files that are not the target's, so that they are looked at once. May forget. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
} foreign SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct directory_key);
	__type(value, u32);
} directories SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ahead_key);
	__type(value, struct ahead_pages);
} ahead SEC(".maps");

struct piece {
	u64 first, end;
};

/* What a task does to one file at the moment. */
struct call {
	u64 id; /* finished reads, or finished faults */
	u64 inode;
	u64 first; /* of the range asked for so far */
	u64 end;
	u64 last_asked; /* of the newest event, for calls that do not count themselves */
	u64 last_block; /* the newest block counted as missed, plus one */
	u64 waited_at; /* the id of the read in which the task waited for I/O, plus one */
	u32 context, class;
	bool counted, missed, waited;
	u32 pieces;
	struct piece brought[PIECES];
	/* What came after those: brought ahead already, and right so unless the range reaches that far. */
	u64 spilled_first, spilled_end, spilled_pages;
	/* Sums of claim(), here because the verifier would follow every combination of them as variables. */
	u64 pages, missed_pages, missed_blocks;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

/* A place in the page cache: whose, and what it is to the target. */
struct place {
	u64 inode;
	struct file_entry *file;
	u32 class;
	u64 *counted;
};

static __noinline int lose(u32 what)
{
	u32 zero = 0;
	u64 *lost = bpf_map_lookup_elem(&losses, &zero);

	if (lost && what < LOSSES)
		__sync_fetch_and_add(&lost[what], 1);
	return 0;
}

static __always_inline void count(u64 *counted, u32 what, u64 by)
{
	if (by)
		__sync_fetch_and_add(&counted[what], by);
}

static __always_inline bool watched(u32 device)
{
	for (int i = 0; i < DEVICES; i++) {
		if (!settings.devices[i])
			return false;
		if (settings.devices[i] == device)
			return true;
	}
	return false;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* PostgreSQL names temporary files pgsql_tmp..., and temporary relations t, the backend's number, _ and theirs. */
static __always_inline bool is_temp(const char *name)
{
	const char temp[] = "pgsql_tmp";

	if (name[0] == 't' && name[1] >= '0' && name[1] <= '9')
		return true;
	for (int i = 0; i < sizeof(temp) - 1; i++)
		if (name[i] != temp[i])
			return false;
	return true;
}

/* The class of a file seen for the first time: that of the nearest folder above it that is known. */
static __noinline u32 classify(struct inode *inode, u32 device)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *entry;
	char name[16] = {};

	if (!alias)
		return CLASS_NONE;
	entry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(entry, d_name.name));
	for (int depth = 0; depth < 8; depth++) {
		struct dentry *above = BPF_CORE_READ(entry, d_parent);
		struct directory_key key = {};
		u32 *class;

		if (!above || above == entry)
			break;
		key.inode = BPF_CORE_READ(above, d_inode, i_ino);
		key.device = device;
		class = bpf_map_lookup_elem(&directories, &key);
		if (class)
			return *class == CLASS_DATA && is_temp(name) ? CLASS_TEMP : *class;
		entry = above;
	}
	return CLASS_NONE;
}

static __noinline struct file_entry *first_seen(struct inode *inode, struct file_key *key, u32 generation)
{
	struct file_entry fresh = {.generation = generation};

	fresh.class = classify(inode, key->device);
	if (fresh.class >= CLASSES) {
		/* An entry of the same number that was the target's is no more. */
		bpf_map_delete_elem(&files, key);
		bpf_map_update_elem(&foreign, key, &generation, BPF_ANY);
		return NULL;
	}
	fresh.number = __sync_fetch_and_add(&files_seen, 1);
	if (bpf_map_update_elem(&files, key, &fresh, BPF_ANY)) {
		lose(LOST_FILES);
		return NULL;
	}
	return bpf_map_lookup_elem(&files, key);
}

/* Fills `place` for a file by its number. With the inode at hand a new file is classified, else it has to be known. */
static __always_inline bool find(struct place *place, u64 number, u32 device, struct inode *inode, u32 generation)
{
	struct file_key key = {.inode = number, .device = device};
	struct file_entry *file;
	u32 *not_ours, class;

	file = bpf_map_lookup_elem(&files, &key);
	/* File systems use numbers again: the generation tells. */
	if (inode && (!file || file->generation != generation)) {
		not_ours = bpf_map_lookup_elem(&foreign, &key);
		if (not_ours && *not_ours == generation)
			return false;
		file = first_seen(inode, &key, generation);
	}
	if (!file)
		return false;
	class = file->class;
	if (class >= CLASSES)
		return false;
	place->inode = number;
	place->file = file;
	place->class = class;
	place->counted = bpf_map_lookup_elem(&counters, &class);
	return place->counted != NULL;
}

/* --- pages brought ahead ------------------------------------------------------------------------------------------ */

static __always_inline u64 bits(u64 from, u64 to)
{
	u64 high = to >= 64 ? ~0ULL : (1ULL << to) - 1;

	return high & ~((1ULL << from) - 1);
}

static __always_inline u32 ones(u64 word)
{
	word = word - ((word >> 1) & 0x5555555555555555ULL);
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

/* A range of pages to mark as waiting for use, or as waiting no more. */
struct marking {
	u64 first, end;
	u32 file, waits;
	u32 changed; /* how many were not so before */
	u32 words;
};

/* One word of it. */
static long mark_word(u32 turn, struct marking *marking)
{
	u64 first = marking->first, from = first & 63, left = marking->end - first;
	u64 to = from + left < 64 ? from + left : 64, mask = bits(from, to);
	struct ahead_key key = {.file = marking->file, .place = first / AHEAD_PAGES};
	struct ahead_pages *found = bpf_map_lookup_elem(&ahead, &key);
	u32 word = (first / 64) % AHEAD_WORDS;

	marking->first = first + to - from;
	if (!found && marking->waits) {
		struct ahead_pages empty = {};

		bpf_map_update_elem(&ahead, &key, &empty, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&ahead, &key);
		if (!found)
			lose(LOST_AHEAD);
	}
	if (!found)
		return 0;
	if (marking->waits)
		marking->changed += ones(mask & ~__sync_fetch_and_or(&found->waiting[word], mask));
	else if (found->waiting[word] & mask)
		marking->changed += ones(mask & __sync_fetch_and_and(&found->waiting[word], ~mask));
	return 0;
}

/* For kernels before bpf_loop (5.17): 10 MiB at 4 KiB a page in one call; what is beyond is lost, and counted. */
#define WORDS_WITHOUT_LOOP 40

static __noinline u32 mark(struct marking *marking)
{
	u32 words;

	if (!marking || marking->first >= marking->end)
		return 0;
	words = ((marking->end - 1) >> 6) - (marking->first >> 6) + 1;
	if (words == 1) {
		mark_word(0, marking);
	} else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(words, mark_word, marking, 0);
	} else {
		for (u32 turn = 0; turn < WORDS_WITHOUT_LOOP && turn < words; turn++)
			mark_word(turn, marking);
		if (words > WORDS_WITHOUT_LOOP)
			lose(LOST_AHEAD);
	}
	return marking->changed;
}

static __noinline int ahead_add(struct file_entry *file, u64 first, u64 end)
{
	struct marking marking = {.first = first, .end = end, .waits = true};
	u32 added;

	if (!file)
		return 0;
	marking.file = file->number;
	added = mark(&marking);
	if (added)
		__sync_fetch_and_add(&file->ahead, added);
	return 0;
}

/* How many of the pages from `first` up to `end` waited for use; they do no more. */
static __always_inline u32 used(struct file_entry *file, u64 first, u64 end)
{
	struct marking marking = {.first = first, .end = end, .file = file->number};
	u32 taken;

	if (!file->ahead)
		return 0;
	taken = mark(&marking);
	if (taken)
		__sync_fetch_and_add(&file->ahead, -taken);
	return taken;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static __always_inline u32 system_call_of(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	return (u32)regs->orig_ax;
#else
	return (u32)regs->syscallno;
#endif
}

static __always_inline u32 context_of(struct task_struct *task)
{
	u32 call;

	if (task->flags & PF_KTHREAD)
		return CONTEXT_OTHER;
	call = system_call_of(task);
	if (call == (u32)-1)
		return CONTEXT_FAULT;
	return call < SYSCALLS ? settings.contexts[call] : CONTEXT_OTHER;
}

/* Whatever a call brought and no range claimed by its end: the read failed. */
static __always_inline void settle(struct call *call)
{
	u32 class = call->class;
	u64 *counted;

	if (!call->pieces)
		return;
	call->pages = 0;
	for (u32 i = 0; i < PIECES; i++) {
		if (i >= call->pieces)
			break;
		call->pages += call->brought[i].end - call->brought[i].first;
	}
	call->pages += call->spilled_pages;
	call->pieces = call->spilled_pages = 0;
	counted = bpf_map_lookup_elem(&counters, &class);
	if (counted)
		count(counted, UNSETTLED_PAGES, call->pages);
}

/* The task's call on this file; a new one forgets the last. */
static __always_inline struct call *call_of(struct task_struct *task, struct place *place, u32 context, u64 id)
{
	struct call *call = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!call) {
		lose(LOST_TASKS);
		return NULL;
	}
	if (call->context != context || call->id != id || call->inode != place->inode) {
		settle(call);
		call->class = place->class;
		call->context = context;
		call->id = id;
		call->inode = place->inode;
		call->first = call->end = call->last_block = 0;
		call->counted = call->missed = call->waited = false;
	}
	return call;
}

static __always_inline void bring(struct call *call, struct place *place, u64 first, u64 end)
{
	u32 last = call->pieces - 1;

	if (last < PIECES && call->brought[last].end == first) {
		call->brought[last].end = end;
		return;
	}
	last = call->pieces;
	if (last >= PIECES) {
		/* Read-ahead over pages that are partly there comes in many pieces, and goes upward from the range. */
		if (!call->spilled_pages || first < call->spilled_first)
			call->spilled_first = first;
		if (!call->spilled_pages || end > call->spilled_end)
			call->spilled_end = end;
		call->spilled_pages += end - first;
		ahead_add(place->file, first, end);
		return;
	}
	call->brought[last].first = first;
	call->brought[last].end = end;
	call->pieces = last + 1;
}

/*
 * Settles what the call brought, now that its range is known: all of it goes among the pages brought ahead, whence the
 * range asked for is taken back right after. How many pages were missed.
 */
static __always_inline u64 claim(struct call *call, struct place *place)
{
	call->pages = call->missed_pages = call->missed_blocks = 0;
	for (u32 i = 0; i < PIECES; i++) {
		struct piece piece;
		u64 first, end, block;

		if (i >= call->pieces)
			break;
		piece = call->brought[i];
		call->pages += piece.end - piece.first;
		ahead_add(place->file, piece.first, piece.end);
		first = piece.first > call->first ? piece.first : call->first;
		end = piece.end < call->end ? piece.end : call->end;
		if (first >= end)
			continue;
		block = first >> settings.block_shift;
		/* A block that two pieces share is missed once. */
		call->missed_blocks -= call->last_block == block + 1;
		call->last_block = ((end - 1) >> settings.block_shift) + 1;
		call->missed_blocks += call->last_block - block;
		call->missed_pages += end - first;
	}
	if (call->spilled_pages) {
		call->pages += call->spilled_pages;
		if (call->end >= call->spilled_end)
			call->missed_pages += call->spilled_pages;
		/* Which of them were asked for is not known any more, or which blocks they share. */
		if (call->end > call->spilled_first)
			lose(LOST_INTERVALS);
		call->spilled_pages = 0;
	}
	call->pieces = 0;
	count(place->counted, READAHEAD_PAGES, call->pages - call->missed_pages);
	count(place->counted, READ_MISSED_PAGES, call->missed_pages);
	count(place->counted, READ_MISSED_BLOCKS, call->missed_blocks);
	return call->missed_pages;
}

/* A read asks for the pages from `first` to `last` of a file of `size` bytes. */
static __always_inline void asked(struct task_struct *task, struct place *place, u64 id, u64 first, u64 last, s64 size)
{
	u64 missed = 0, from, blocks;
	struct call *call;
	u32 context = context_of(task);

	if (size <= 0)
		return;
	if (last > (u64)(size - 1) >> settings.page_shift)
		last = (u64)(size - 1) >> settings.page_shift;
	if (first > last)
		return;
	call = call_of(task, place, CONTEXT_READ, id);
	if (!call)
		return;
	/* A call that does not count itself is a new one when it starts again or has another end. */
	if (context != CONTEXT_READ && call->counted && (first < call->end || last != call->last_asked)) {
		call->counted = call->missed = call->waited = false;
		call->first = call->end = call->last_block = 0;
	}
	call->last_asked = last;
	if (!call->counted) {
		call->counted = true;
		call->first = first;
		count(place->counted, READ_CALLS, 1);
	}
	from = first > call->end ? first : call->end;
	if (from <= last) {
		blocks = (last >> settings.block_shift) - (from >> settings.block_shift) + 1;
		if (call->end && call->end == from && (from & ((1 << settings.block_shift) - 1)))
			blocks--;
		count(place->counted, READ_PAGES, last + 1 - from);
		count(place->counted, READ_BLOCKS, blocks);
		call->end = last + 1;
	}
	if (call->pieces) {
		missed = claim(call, place);
		from = call->first;
	}
	if (from < call->end)
		count(place->counted, AHEAD_USED_PAGES, used(place->file, from, call->end) - missed);
	if (missed && !call->missed) {
		call->missed = true;
		count(place->counted, READ_CALLS_MISSED, 1);
		if (call->waited) {
			call->waited = false;
			count(place->counted, READ_CALLS_WAITED, -1);
		}
	}
	if (!call->missed && !call->waited && call->waited_at == id + 1) {
		call->waited = true;
		count(place->counted, READ_CALLS_WAITED, 1);
	}
}

static __always_inline void added(struct task_struct *task, struct place *place, u64 index, u64 pages)
{
	u32 context = context_of(task);
	u64 end = index + pages;
	struct call *call;

	count(place->counted, ADDED_PAGES, pages);
	switch (context) {
	case CONTEXT_READ:
	case CONTEXT_READ_LOOSE:
		call = call_of(task, place, CONTEXT_READ, task->ioac.syscr);
		if (call)
			bring(call, place, index, end);
		else
			count(place->counted, UNSETTLED_PAGES, pages);
		return;
	case CONTEXT_WRITE:
		count(place->counted, WRITE_PAGES, pages);
		return;
	case CONTEXT_PREFETCH:
		count(place->counted, PREFETCH_PAGES, pages);
		ahead_add(place->file, index, end);
		return;
	case CONTEXT_FAULT:
		if (!settings.faults_are_seen)
			break;
		call = call_of(task, place, CONTEXT_FAULT, task->min_flt + task->maj_flt);
		if (!call)
			break;
		if (call->counted && index <= call->last_asked && call->last_asked < end) {
			count(place->counted, FAULT_MISSED_PAGES, 1);
			pages--;
			ahead_add(place->file, index, call->last_asked);
			ahead_add(place->file, call->last_asked + 1, end);
		} else {
			ahead_add(place->file, index, end);
		}
		count(place->counted, READAHEAD_PAGES, pages);
		return;
	}
	count(place->counted, OTHER_PAGES, pages);
}

static __always_inline void deleted(struct task_struct *task, struct place *place, u64 index, u64 pages)
{
	count(place->counted, task->flags & PF_MEMALLOC ? EVICTED_PAGES : DROPPED_PAGES, pages);
	count(place->counted, AHEAD_EVICTED_PAGES, used(place->file, index, index + pages));
}

/* A fault asks for one page; fault-around, which has no page of its own, comes first when it comes. */
static __always_inline void faulted(struct task_struct *task, struct place *place, u64 first, u64 end, bool around)
{
	struct call *call = call_of(task, place, CONTEXT_FAULT, task->min_flt + task->maj_flt);

	if (!call)
		return;
	if (!call->counted) {
		call->counted = true;
		count(place->counted, FAULT_PAGES, 1);
	}
	if (around)
		count(place->counted, AHEAD_MAPPED_PAGES, used(place->file, first, end));
	else
		count(place->counted, AHEAD_USED_PAGES, used(place->file, first, end));
	call->last_asked = around ? ~0ULL : first;
}

/* --- BTF tracepoints ---------------------------------------------------------------------------------------------- */

static __always_inline bool find_mapping(struct place *place, struct address_space *mapping)
{
	struct inode *inode = mapping->host;
	u32 device = inode->i_sb->s_dev;

	return watched(device) && find(place, inode->i_ino, device, inode, inode->i_generation);
}

static __always_inline u64 pages_of(struct folio *folio)
{
	/* The flags are the first word in every version, whatever their type. */
	u64 flags = *(unsigned long *)folio;
	u64 pages;

	if (!(flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_head))))
		return 1;
	if (bpf_core_field_exists(folio->_nr_pages))
		pages = folio->_nr_pages;
	else if (bpf_core_field_exists(((struct folio___before_6_15 *)folio)->_folio_nr_pages))
		pages = ((struct folio___before_6_15 *)folio)->_folio_nr_pages;
	else
		pages = 1;
	return pages ? pages : 1;
}

struct folio_place {
	struct place place;
	u64 index, pages;
};

static __always_inline bool find_folio(struct folio_place *found, void *object)
{
	if (bpf_core_type_exists(struct folio)) {
		struct folio *folio = object;

		if (!find_mapping(&found->place, folio->mapping))
			return false;
		found->index = folio->index;
		found->pages = pages_of(folio);
	} else {
		/* Before 5.16 one page an event. */
		struct page *page = object;

		if (!find_mapping(&found->place, page->mapping))
			return false;
		found->index = page->index;
		found->pages = 1;
	}
	return true;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_add, struct folio *folio)
{
	struct folio_place found = {};

	if (find_folio(&found, folio))
		added(bpf_get_current_task_btf(), &found.place, found.index, found.pages);
	return 0;
}

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_delete, struct folio *folio)
{
	struct folio_place found = {};

	if (find_folio(&found, folio))
		deleted(bpf_get_current_task_btf(), &found.place, found.index, found.pages);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_get_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct place place = {};

	if (find_mapping(&place, mapping))
		asked(task, &place, task->ioac.syscr, first, last, mapping->host->i_size);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_fault, struct address_space *mapping, unsigned long index)
{
	struct place place = {};

	if (find_mapping(&place, mapping))
		faulted(bpf_get_current_task_btf(), &place, index, index + 1, false);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct place place = {};

	if (find_mapping(&place, mapping))
		faulted(bpf_get_current_task_btf(), &place, first, last + 1, true);
	return 0;
}

/* Where the kernel has no get_pages, the end of a read call tells what it asked for. */
static __always_inline void read_ended(struct task_struct *task, struct pt_regs *regs, s64 result)
{
	u32 call = system_call_of(task), descriptor, position;
	struct file *file, **table;
	struct place place = {};
	struct inode *inode;
	u32 device;
	s64 from;

	if (call >= SYSCALLS || result <= 0)
		return;
	position = settings.positions[call];
	if (position == POSITION_NONE)
		return;
#if defined(__TARGET_ARCH_x86)
	descriptor = BPF_CORE_READ(regs, di);
	from = BPF_CORE_READ(regs, r10);
#else
	descriptor = BPF_CORE_READ(regs, orig_x0);
	from = BPF_CORE_READ(regs, regs[3]);
#endif
	if (descriptor >= BPF_CORE_READ(task, files, fdt, max_fds))
		return;
	table = BPF_CORE_READ(task, files, fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), table + descriptor) || !file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (!watched(device) || BPF_CORE_READ(file, f_flags) & settings.direct_flag)
		return;
	if (position == POSITION_FILE || from < 0)
		from = BPF_CORE_READ(file, f_pos) - result;
	if (!find(&place, BPF_CORE_READ(inode, i_ino), device, inode, BPF_CORE_READ(inode, i_generation)))
		return;
	/* The call has counted itself by now. */
	asked(task, &place, task->ioac.syscr - 1, from >> settings.page_shift, (from + result - 1) >> settings.page_shift, from + result);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	read_ended(bpf_get_current_task_btf(), regs, result);
	return 0;
}

/* A task that leaves the CPU for I/O inside a read: the page it asked for is on its way. */
static __always_inline void leaves(struct task_struct *task)
{
	struct call *call;
	u32 number;

	if (!BPF_CORE_READ_BITFIELD(task, in_iowait))
		return;
	call = bpf_task_storage_get(&calls, task, 0, 0);
	if (!call)
		return;
	number = system_call_of(task);
	if (number < SYSCALLS && settings.contexts[number] == CONTEXT_READ)
		call->waited_at = task->ioac.syscr + 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *task)
{
	leaves(task);
	return 0;
}

/* --- classic tracepoints ------------------------------------------------------------------------------------------ */

/*
 * They give a file's number, not the file. A read's file is taken from its descriptor, so that new files are classified
 * at their first read; an addition to a file never read before is not counted, since nobody can say whose it is.
 */

static __always_inline u64 word_at(void *event, u32 at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), event + at);
	return word;
}

static __always_inline u32 half_at(void *event, u32 at)
{
	u32 half = 0;

	bpf_probe_read_kernel(&half, sizeof(half), event + at);
	return half;
}

static __always_inline struct inode *inode_of(struct task_struct *task, u64 number)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u32 call = system_call_of(task), descriptor;
	struct file *file, **table;
	struct inode *inode;

	if (call >= SYSCALLS || (settings.contexts[call] != CONTEXT_READ && settings.contexts[call] != CONTEXT_WRITE))
		return NULL;
#if defined(__TARGET_ARCH_x86)
	descriptor = BPF_CORE_READ(regs, di);
#else
	descriptor = BPF_CORE_READ(regs, orig_x0);
#endif
	if (descriptor >= BPF_CORE_READ(task, files, fdt, max_fds))
		return NULL;
	table = BPF_CORE_READ(task, files, fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), table + descriptor) || !file)
		return NULL;
	inode = BPF_CORE_READ(file, f_inode);
	return BPF_CORE_READ(inode, i_ino) == number ? inode : NULL;
}

static __always_inline bool find_number(struct place *place, struct task_struct *task, u64 number, u32 device)
{
	struct inode *inode;

	if (!watched(device))
		return false;
	inode = inode_of(task, number);
	return find(place, number, device, inode, inode ? BPF_CORE_READ(inode, i_generation) : 0);
}

static __always_inline u64 pages_at(void *event)
{
	u8 order = 0;

	if (settings.op_order_at)
		bpf_probe_read_kernel(&order, sizeof(order), event + settings.op_order_at);
	return 1ULL << (order & 31);
}

SEC("tracepoint")
int classic_add(void *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct place place = {};

	if (find_number(&place, task, word_at(event, settings.op_inode_at), half_at(event, settings.op_device_at)))
		added(task, &place, word_at(event, settings.op_index_at), pages_at(event));
	return 0;
}

SEC("tracepoint")
int classic_delete(void *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct place place = {};

	if (find_number(&place, task, word_at(event, settings.op_inode_at), half_at(event, settings.op_device_at)))
		deleted(task, &place, word_at(event, settings.op_index_at), pages_at(event));
	return 0;
}

SEC("tracepoint")
int classic_get_pages(void *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 number = word_at(event, settings.pages_inode_at);
	struct inode *inode = inode_of(task, number);
	struct place place = {};

	if (inode && find_number(&place, task, number, half_at(event, settings.pages_device_at)))
		asked(task, &place, task->ioac.syscr, word_at(event, settings.pages_first_at),
		      word_at(event, settings.pages_last_at), BPF_CORE_READ(inode, i_size));
	return 0;
}

SEC("tracepoint")
int classic_fault(void *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 index = word_at(event, settings.fault_index_at);
	struct place place = {};

	if (find_number(&place, task, word_at(event, settings.fault_inode_at), half_at(event, settings.fault_device_at)))
		faulted(task, &place, index, index + 1, false);
	return 0;
}

SEC("tracepoint")
int classic_map_pages(void *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct place place = {};

	if (find_number(&place, task, word_at(event, settings.map_inode_at), half_at(event, settings.map_device_at)))
		faulted(task, &place, word_at(event, settings.map_first_at),
			word_at(event, settings.map_last_at) + 1, true);
	return 0;
}

struct sys_exit_event {
	u64 common;
	s64 call;
	s64 result;
};

SEC("tracepoint")
int classic_sys_exit(struct sys_exit_event *event)
{
	struct task_struct *task = bpf_get_current_task_btf();

	read_ended(task, (void *)bpf_task_pt_regs(task), event->result);
	return 0;
}

/* The task that leaves is the current one at this tracepoint. */
SEC("tracepoint")
int classic_switch(void *event)
{
	leaves(bpf_get_current_task_btf());
	return 0;
}
