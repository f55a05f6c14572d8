// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Splits the time of each transaction of each backend: on a CPU, waiting for one, blocked and on what.
 *
 * The fact that constrains it: it runs at every context switch of the machine. So it looks at a process only if its parent is
 * the server, keeps what it knows in the task's own storage, looks at the wait event when the backend leaves the CPU and
 * not when it is set, and at no system call.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "breakdown.h"
#include "bpf/answers.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *from, struct task_struct *to)
{
	struct backend *backend;
	u64 now = 0;

	if (is_child(from, target.parent)) {
		backend = known_from_now(from);
		if (backend && is_followed(backend, from, false)) {
			now = bpf_ktime_get_ns();
			switched_out(ctx, backend, from, preempted, now);
		}
	}
	if (is_child(to, target.parent)) {
		backend = known_from_now(to);
		if (backend && is_followed(backend, to, true))
			switched_in(backend, to, now ? now : bpf_ktime_get_ns());
	}
	return 0;
}

/* Who wakes whom within the server. The memory of the one that wakes is warm, so it is looked at first. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct backend *backend;

	if (!is_child(waker, target.parent) || !is_child(task, target.parent))
		return 0;
	backend = known(task);
	if (backend)
		backend->waker = waker->tgid;
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, void *socket, int bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (bytes > 0 && is_child(task, target.parent))
		sent(task, bytes);
	return 0;
}

/* Before 6.3 sockets have no such tracepoints. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (result > 0 && is_child(task, target.parent) && call_in(registers_of(task)) == settings.send_call)
		sent(task, result);
	return 0;
}

/* --- what is rare ------------------------------------------------------------------------------------------------- */

static __always_inline struct backend *current_backend(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return is_child(task, target.parent) ? known_from_now(task) : NULL;
}

SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_throttle)
{
	struct backend *backend = current_backend();

	if (backend)
		backend->throttled = true;
	return 0;
}

/* So that waiting for it is told from waiting for a page that was swapped out. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_file_fault)
{
	struct backend *backend = current_backend();

	if (backend)
		backend->file_fault = number_of_fault(bpf_get_current_task_btf());
	return 0;
}

static __always_inline int reclaims(bool begins)
{
	struct backend *backend = current_backend();

	if (backend)
		backend->reclaiming = begins;
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_reclaim_begin)
{
	return reclaims(true);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_reclaim_end)
{
	return reclaims(false);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_group_reclaim_begin)
{
	return reclaims(true);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_group_reclaim_end)
{
	return reclaims(false);
}

static __always_inline enum counter kind_of_sync(struct backend *backend)
{
	u32 event = 0, place;
	u8 bucket;

	if (settings.by_system_call) {
		place = place_of(bpf_get_current_task_btf(), first_argument(registers_of(bpf_get_current_task_btf())));
		bucket = bucket_of_way(WAY_SYNC, place);
		return bucket == WAL_SYNC ? SYNCS_WAL : bucket == DATA_SYNC ? SYNCS_DATA : SYNCS_OTHER;
	}
	if (!read_event(backend, &event))
		count(UNKNOWN_EVENTS);
	if (event == settings.wal_sync)
		return SYNCS_WAL;
	return event && bucket_of(event) == DATA_SYNC ? SYNCS_DATA : SYNCS_OTHER;
}

static __always_inline int syncs(void)
{
	struct backend *backend = current_backend();

	if (backend)
		count(kind_of_sync(backend));
	return 0;
}

SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(on_sync_of_ext4)
{
	return syncs();
}

SEC("tp_btf/xfs_file_fsync")
int BPF_PROG(on_sync_of_xfs)
{
	return syncs();
}

SEC("tp_btf/btrfs_sync_file")
int BPF_PROG(on_sync_of_btrfs)
{
	return syncs();
}

/* What is left of a process that ends: the transaction in which it was, or all that it did if it has no client. */
static __always_inline void ends(struct backend *backend, struct task_struct *task, u64 now)
{
	struct transaction *transaction = &backend->transaction;
	bool followed = !is_between_slices() && is_followed(backend, task, false) && charge_cpu_until(backend, task, now);

	if (followed && (transaction->requests || (backend->open && task->exit_code))) {
		end(backend, task, now, ABORTED);
	} else if (!backend->has_client) {
		transaction->pid = task->tgid;
		transaction->flags |= PROCESS_ENDED;
		transaction->ended = now;
		add_to_batch(backend);
	}
	hand_over(backend);
	set_busy(backend, false);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct backend *backend;

	if (!is_child(task, target.parent) || task->pid != task->tgid)
		return 0;
	backend = known(task);
	if (!backend || backend->state == UNSEEN)
		return 0;
	ends(backend, task, bpf_ktime_get_ns());
	backend->state = UNSEEN;
	return 0;
}
