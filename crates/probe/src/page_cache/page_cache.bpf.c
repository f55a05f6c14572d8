// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts what the target's files ask of the page cache, by file class, in pages.
 *
 * A read's range stands in its call's arguments, so that each page added inside the call is known at once as missed or
 * brought ahead; where the arguments do not tell, additions wait until the kernel has the range. A call is told from the
 * next by the task's own count of finished read calls, a fault by its count of finished faults: nothing has to be traced
 * at their entry.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "page_cache.h"
#include "pages.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- BTF tracepoints ---------------------------------------------------------------------------------------------- */

static __always_inline bool find_mapping(struct place *place, struct address_space *mapping)
{
	struct inode *inode = mapping->host;
	u32 device = inode->i_sb->s_dev;

	if (!watched(device))
		return false;
	place->size = inode->i_size;
	return find(place, inode->i_ino, device, inode, inode->i_generation);
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

static __noinline int got_pages(struct task_struct *task, struct address_space *mapping, u64 first, u64 last)
{
	struct inode *inode = mapping->host;
	struct place place = {};

	if (!find_mapping(&place, mapping))
		return 0;
	asked(task, &place, task->ioac.syscr, first, last, true);
	/* The super block of btrfs does not tell subvolumes apart. */
	if (inode->i_sb->s_magic != BTRFS_MAGIC)
		remember(task, &place, inode->i_sb->s_dev, inode->i_generation);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(on_get_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!watched(mapping->host->i_sb->s_dev) || plain_read(task, mapping->host))
		return 0;
	return got_pages(task, mapping, first, last);
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_submit, struct io_kiocb *request)
{
	submits(bpf_get_current_task_btf(), request);
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
static __always_inline void read_ended(struct task_struct *task, s64 result)
{
	u32 call = system_call_of(task), device;
	struct place place = {};
	struct inode *inode;
	struct file *file;
	s64 from;

	if (call >= SYSCALLS || result <= 0 || !settings.reads[call])
		return;
	file = file_of(task, 0);
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (!watched(device) || BPF_CORE_READ(file, f_flags) & settings.direct_flag)
		return;
	from = settings.reads[call] & POSITION_ARGUMENT ? (s64)argument(registers_of(task), 3) : -1;
	if (from < 0)
		from = BPF_CORE_READ(file, f_pos) - result;
	if (!find(&place, BPF_CORE_READ(inode, i_ino), device, inode, BPF_CORE_READ(inode, i_generation)))
		return;
	place.size = from + result;
	/* The call has counted itself by now. */
	asked(task, &place, task->ioac.syscr - 1, from >> settings.page_shift,
	      (from + result - 1) >> settings.page_shift, false);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	read_ended(bpf_get_current_task_btf(), result);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *task)
{
	switched_out(task);
	return 0;
}

/* --- classic tracepoints ------------------------------------------------------------------------------------------ */

/*
 * They give a file's number, not the file. Files are known from the folders before the programs are attached; a new one is
 * classified at its first read or write, by its descriptor.
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
	u32 context = context_of(task);
	struct file *file;
	struct inode *inode;

	if (context != CONTEXT_READ && context != CONTEXT_WRITE)
		return NULL;
	file = file_of(task, 0);
	if (!file)
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
	place->size = inode ? BPF_CORE_READ(inode, i_size) : SIZE_UNKNOWN;
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
	struct place place = {};

	if (find_number(&place, task, number, half_at(event, settings.pages_device_at)))
		asked(task, &place, task->ioac.syscr, word_at(event, settings.pages_first_at),
		      word_at(event, settings.pages_last_at), true);
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

	read_ended(task, event->result);
	return 0;
}

/* The task that leaves is the current one at this tracepoint. */
SEC("tracepoint")
int classic_switch(void *event)
{
	switched_out(bpf_get_current_task_btf());
	return 0;
}
