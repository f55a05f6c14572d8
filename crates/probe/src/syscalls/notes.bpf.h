/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the end of a call has to know of its beginning.
 *
 * A note lies in a place of a table that the task's number gives, for that is found by a load where the task's own storage
 * takes a call into the kernel. While another's call has the place the note goes into the storage.
 */
#ifndef PLIMSOLL_SYSCALLS_NOTES_BPF_H
#define PLIMSOLL_SYSCALLS_NOTES_BPF_H

/* A call under way. */
struct call {
	u32 task; /* whose place it is; 0: nobody's */
	u32 number;
	u64 entered; /* in a task's storage, 0: none */
	s64 position;
	struct file_key file; /* of a read or write of one of the server's files */
	u32 class;
	u16 stands_for; /* so many calls, as far as its time goes */
	bool of_server;
} __attribute__((aligned(64)));

#define PLACES 4096

struct call places[PLACES];

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

/* Whether a note was ever put into a storage: until then nobody looks there. */
bool crowded;

static __always_inline struct call *place_of(struct task_struct *task)
{
	return &places[task->pid & (PLACES - 1)];
}

static __always_inline struct call *new_note(struct task_struct *task)
{
	struct call *call = place_of(task);
	u32 number = task->pid;

	/* Its own is there if its last call did not return, or of a process of that number that ended in one. */
	if (call->task == number || !__sync_val_compare_and_swap(&call->task, 0, number))
		return call;
	crowded = true;
	return bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline struct call *note_of(struct task_struct *task)
{
	struct call *call = place_of(task);

	if (call->task != task->pid)
		call = !crowded ? NULL : bpf_task_storage_get(&calls, task, 0, 0);
	return call && call->entered > task->start_time ? call : NULL;
}

static __always_inline void done_with(struct call *call)
{
	if (call->task)
		__sync_lock_test_and_set(&call->task, 0);
	else
		call->entered = 0;
}

#endif
