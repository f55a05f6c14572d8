// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Splits the time of each fsync and fdatasync of a server's processes into what it waits for.
 *
 * The fact that constrains it: parts of a call are the intervals between events of the task itself, so that each moment is in
 * one of them; what is waited for is told by the last event before the task leaves the CPU, or by who wakes it.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "sync.h"
#include "state.bpf.h"
#include "../bpf/system_calls.bpf.h"
#include "../bpf/functions.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_MASK 0xff

/* --- a call begins and ends --------------------------------------------------------------------------------------- */

static __always_inline u32 place_of(u32 device)
{
	for (u32 i = 0; i < DEVICES; i++)
		if (settings.folders.devices[i] == device)
			return i;
	return DEVICES;
}

static __always_inline void begins(struct task_struct *task, struct state *state, struct file *file, u32 call)
{
	struct file_key key = {};
	struct file_entry *entry;
	struct inode *inode;
	u32 device;

	__builtin_memset(&state->sync, 0, sizeof(state->sync));
	state->sync.class = CLASS_ELSEWHERE;
	state->disk = DEVICES;
	if (file) {
		inode = BPF_CORE_READ(file, f_inode);
		device = BPF_CORE_READ(inode, i_sb, s_dev);
		if (watched(device)) {
			state->disk = place_of(device);
			if (state->disk < DEVICES)
				state->sync.tells = settings.tells[state->disk];
			entry = look_up(&key, BPF_CORE_READ(inode, i_ino), inode, BPF_CORE_READ(inode, i_generation),
					device);
			if (entry)
				state->sync.class = entry->class;
		}
	}
	state->sync.call = call;
	state->sync.pid = task->tgid;
	state->off = state->wrote = state->woken_by_journal = false;
	state->now = state->running = CPU;
	state->blocked = state->later = OTHER_WAIT;
	state->waited = PARTS;
	state->run_delay = task->sched_info.run_delay;
	state->sync.entered = state->since = bpf_ktime_get_ns();
	if (!state->active)
		__sync_fetch_and_add(&under_way, 1);
	state->active = true;
}

static __always_inline int enters(struct task_struct *task, struct file *file, u32 number)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (state)
		begins(task, state, file, number == settings.fsync ? CALL_FSYNC : CALL_FDATASYNC);
	else
		lose(LOST_TASKS);
	return 0;
}

static __always_inline int ends(long result)
{
	struct task_struct *task;
	struct state *state;

	if (!under_way)
		return 0;
	task = bpf_get_current_task_btf();
	state = syncs(task);
	if (!state)
		return 0;
	becomes(state, task, CPU);
	state->active = false;
	__sync_fetch_and_add(&under_way, -1);
	state->sync.ended = state->since;
	state->sync.result = result;
	if (bpf_ringbuf_output(&ended, &state->sync, sizeof(state->sync), BPF_RB_NO_WAKEUP))
		lose(LOST_RECORDS);
	return 0;
}

static __always_inline bool is_sync(u32 number)
{
	return number == settings.fsync || number == settings.fdatasync;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task;

	if (!is_sync(number))
		return 0;
	task = bpf_get_current_task_btf();
	return is_of_family(task, target.parent) ? enters(task, file_of(task, 0), number) : 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	return ends(result);
}

/* Where every file is on ext4 its own tracepoints bound a call, so that no other system call of the machine is slowed. */
SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(on_ext4_enter, struct file *file)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number;

	if (!is_of_family(task, target.parent))
		return 0;
	number = call_in(registers_of(task));
	return is_sync(number) ? enters(task, file, number) : 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(on_ext4_exit, struct inode *inode, int result)
{
	return ends(result);
}

/* --- off and on the CPU ------------------------------------------------------------------------------------------- */

/* With the first wait for pages or for a commit nothing more is handed over. NFS does not tell so itself. */
static __always_inline void tell_by_stack(struct state *state, void *context)
{
	switch (told_by_stack(context)) {
	case OF_NFS_WRITING:
		if (state->blocked != WRITEBACK)
			state->blocked = WRITING;
		return;
	case OF_NFS_PAGES:
		state->blocked = state->wrote ? WRITE_IO : WRITEBACK;
		break;
	case OF_NFS_COMMIT:
		state->blocked = COMMIT;
		break;
	default:
		state->blocked = OTHER_WAIT;
		return;
	}
	state->running = CPU;
}

static __always_inline void switched_out(void *context, struct state *state, struct task_struct *task, bool runnable, u64 now)
{
	charge_until(state, now);
	take_out_run_queue(state, task);
	if (!runnable && settings.by_stack && state->sync.tells == TELLS_BY_STACK)
		tell_by_stack(state, context);
	state->now = runnable ? RUN_QUEUE : state->blocked;
	state->woken_by_journal = false;
	state->off = true;
	if (!runnable)
		state->flushed = flushed_ns(state->disk, now);
}

static __always_inline void switched_in(struct state *state, u64 now)
{
	if (state->woken_by_journal && state->now != RUN_QUEUE) {
		state->now = JOURNAL;
		state->sync.journal_flush += flushed_ns(state->disk, now) - state->flushed;
	}
	charge_until(state, now);
	state->waited = state->now;
	/* What was waited for has come; only writing goes on. */
	if (state->now != RUN_QUEUE) {
		if (state->running != WRITING)
			state->running = CPU;
		state->blocked = state->running == WRITING ? WRITING : state->later;
	}
	state->now = state->running;
	state->off = false;
}

/* The call in a task's registers is sooner looked at than its storage, and at a switch it is nearly always another. */
static __always_inline struct state *syncs_by_its_call(struct task_struct *task)
{
	return is_of_family(task, target.parent) && is_sync(call_in(registers_of(task))) ? syncs(task) : NULL;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *from, struct task_struct *to)
{
	struct state *state;

	if (!under_way)
		return 0;
	state = syncs_by_its_call(from);
	if (state)
		switched_out(ctx, state, from, preempted || !from->__state, bpf_ktime_get_ns());
	state = syncs_by_its_call(to);
	if (state && state->off)
		switched_in(state, bpf_ktime_get_ns());
	return 0;
}

/* A thread of the journal wakes those that wait for a commit after it has ended it, and nobody else until the next. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct task_struct *waker;
	struct state *state, *journal;

	if (!under_way || !is_of_family(task, target.parent))
		return 0;
	waker = bpf_get_current_task_btf();
	if (!(waker->flags & PF_KTHREAD))
		return 0;
	journal = bpf_task_storage_get(&states, waker, 0, 0);
	if (!journal || !journal->ended_commit)
		return 0;
	state = syncs(task);
	if (state)
		state->woken_by_journal = true;
	return 0;
}

static __always_inline int commit(bool ended_commit)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state;

	state = bpf_task_storage_get(&states, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state)
		state->ended_commit = ended_commit;
	else
		lose(LOST_TASKS);
	return 0;
}

SEC("tp_btf/jbd2_start_commit")
int BPF_PROG(on_start_commit)
{
	return commit(false);
}

SEC("tp_btf/jbd2_end_commit")
int BPF_PROG(on_end_commit)
{
	return commit(true);
}

/* --- what the task is about to wait for --------------------------------------------------------------------------- */

SEC("tp_btf/ext4_writepages")
int BPF_PROG(on_writing)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = syncs(task);

	if (!state)
		return 0;
	becomes(state, task, WRITING);
	state->blocked = WRITING;
	return 0;
}

SEC("tp_btf/ext4_writepages_result")
int BPF_PROG(on_written, struct inode *inode, void *control, int result, int pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = syncs(task);

	if (!state)
		return 0;
	becomes(state, task, CPU);
	state->blocked = OTHER_WAIT;
	if (pages > 0) {
		state->wrote = true;
		state->sync.pages += pages;
	}
	return 0;
}

/* A page is about to be handed over; only where files are on NFS, for others say so themselves. */
SEC("tp_btf/wbc_writepage")
int BPF_PROG(on_page_of_nfs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = syncs(task);

	if (!state || state->sync.tells != TELLS_BY_STACK)
		return 0;
	if (state->running != WRITING)
		becomes(state, task, WRITING);
	state->blocked = WRITING;
	state->wrote = true;
	return 0;
}

SEC("tp_btf/folio_wait_writeback")
int BPF_PROG(on_wait_for_page)
{
	struct state *state = syncs(bpf_get_current_task_btf());

	if (!state)
		return 0;
	state->blocked = WRITE_IO;
	/* Before it writes a page again, or if it has written none, the pages are others'. */
	if (state->sync.tells && (state->running == WRITING || !state->wrote))
		state->blocked = WRITEBACK;
	return 0;
}

static __always_inline bool is_flush(struct bio *bio)
{
	return !bio->bi_iter.bi_size && bio->bi_opf & (1ULL << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH));
}

/* What a task writes while it is not writing pages is metadata, one block after the other; then it waits for each. */
static __always_inline void writes_metadata(struct state *state, struct bio *bio)
{
	if (state->sync.tells == TELLS_OF_A_JOURNAL && state->running != WRITING && (bio->bi_opf & REQ_OP_MASK) == REQ_OP_WRITE)
		state->blocked = state->later = METADATA;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio, struct bio *bio)
{
	struct task_struct *task;
	struct state *state;

	if (!under_way)
		return 0;
	task = bpf_get_current_task_btf();
	state = syncs(task);
	if (!state)
		return 0;
	if (!is_flush(bio)) {
		writes_metadata(state, bio);
		return 0;
	}
	becomes(state, task, FLUSH);
	state->blocked = FLUSH;
	state->later = OTHER_WAIT;
	return 0;
}

/* --- what the device is at ---------------------------------------------------------------------------------------- */

static __always_inline void flush(struct request *request, bool begins)
{
	u64 now = bpf_ktime_get_ns();
	u32 device = request->q->disk->major << 20 | request->q->disk->first_minor;

	for (u32 i = 0; i < DEVICES; i++) {
		struct flushing *flushing;
		u32 place = i;

		if (settings.disks[i] != device || !device)
			continue;
		flushing = bpf_map_lookup_elem(&flushes, &place);
		if (!flushing)
			continue;
		bpf_spin_lock(&flushing->lock);
		if (begins && !flushing->requests++)
			flushing->since = now;
		/* One that was under way when the programs came is none of ours. */
		if (!begins && flushing->requests && !--flushing->requests)
			flushing->ns += now - flushing->since;
		bpf_spin_unlock(&flushing->lock);
	}
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	if ((request->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
		flush(request, true);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request)
{
	if ((request->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
		flush(request, false);
	return 0;
}
