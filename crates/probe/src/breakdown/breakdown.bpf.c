// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Splits the time of each request of each backend: on a CPU, waiting for one, blocked and on what.
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

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct settings settings SEC(".rodata.settings");

volatile struct target target SEC(".data.target");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[COUNTERS]);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[LOST]);
} losses SEC(".maps");

/* Room for seconds of the shortest requests. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} requests SEC(".maps");

/*
 * A backend's own CPU moves it from RUNNING to LEAVING and on to BLOCKED. Whoever wakes it, on whatever CPU, only leaves word
 * of that and makes it WOKEN; what follows from it is worked out when it runs again, where its memory is warm.
 */
enum state {
	UNSEEN,
	RUNNING,
	RUNNABLE,
	LEAVING,
	WOKEN,
	BLOCKED,
};

/* What the present, or the last, state of a process is. What every switch touches comes first. */
struct backend {
	u64 since; /* when the state began, but for WOKEN the one before */
	u32 state;
	u32 waker;
	u64 woken;
	u32 event;
	u8 bucket, cause;
	bool open; /* a request is under way, as far as can be told before it is answered */
	bool answered; /* what was sent last was the end of an answer */
	bool sent; /* something was sent since */
	bool encrypted; /* the connection, so that ends of answers cannot be read */
	bool throttled; /* about to pause for having dirtied pages */
	bool reclaiming;
	bool has_client;
	u8 looks; /* at wait events that were thought to be known */
	u8 batched_requests;
	u32 client_instance; /* descriptor of the epoll instance on which it waits for its client, plus one */
	u32 *wait_event; /* where its wait event is, as far as it was found */
	u64 read_bytes; /* asked of devices until the block before */
	u64 run_delay; /* the kernel's own sum of waiting for a CPU, when it last left one */
	u64 user, system; /* the task's own, when the request began */
	u64 after; /* on the CPU since the last answer, outside of requests */
	u64 batched; /* when the first request of the batch ended */
	/* The agent reads these three from the end. */
	u64 batch_bytes;
	u8 batch[BATCH_BYTES]; /* requests that have ended, one behind the other */
	struct request request;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct backend);
} backends SEC(".maps");

static __always_inline void count(enum counter counter)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(&counters, &zero);

	if (counts)
		counts[counter]++;
}

static __always_inline void lost(enum lost what, u64 number)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(&losses, &zero);

	if (counts)
		counts[what] += number;
}

static __always_inline bool is_watched(struct task_struct *task)
{
	return task->real_parent->tgid == target.parent;
}

static __always_inline u32 least(u64 ns)
{
	return ns < 0xffffffffULL ? ns : 0xffffffffU;
}

/* A request may begin here: nothing is summed up yet. */
static __always_inline void begin(struct backend *backend, struct task_struct *task, u64 now, u16 flags)
{
	struct request *request = &backend->request;

	request->arrived = now;
	request->cpu = request->run_queue = 0;
	request->waits = 0;
	request->flags = flags;
	backend->sent = false;
	backend->user = task->utime;
	backend->system = task->stime;
}

/* Keeps clang from folding two comparisons into one that older verifiers do not follow. */
#define barrier(variable) asm volatile("" : "+r"(variable))

static __always_inline void hand_over(struct backend *backend)
{
	u64 bytes = backend->batch_bytes;

	if (!bytes)
		return;
	backend->batch_bytes = 0;
	barrier(bytes);
	if (bytes > BATCH_BYTES)
		bytes = BATCH_BYTES;
	if (bpf_ringbuf_output(&requests, backend->batch, bytes, BPF_RB_NO_WAKEUP))
		lost(NO_ROOM, backend->batched_requests);
	backend->batched_requests = 0;
}

/* Several requests are handed over at once, because each time costs as much as all the rest of a short one. */
static __always_inline void add_to_batch(struct backend *backend)
{
	struct request *request = &backend->request, *copy;
	u64 at = backend->batch_bytes;

	if (at > BATCH_BYTES - sizeof(*copy) || request->ended - backend->batched > BATCH_NS) {
		hand_over(backend);
		at = 0;
	}
	if (!at)
		backend->batched = request->ended;
	copy = (struct request *)(backend->batch + at);
	__builtin_memcpy(copy, request, offsetof(struct request, wait));
	for (u32 i = 0; i < WAITS; i++) {
		if (i >= request->waits)
			break;
		copy->wait[i] = request->wait[i];
	}
	backend->batched_requests++;
	backend->batch_bytes = at + offsetof(struct request, wait) + request->waits * sizeof(struct wait);
}

/* The request ends now; its CPU time is up to date. */
static __noinline int end(struct backend *backend, struct task_struct *task, u64 now, u32 flags)
{
	struct request *request;

	if (!backend || !task)
		return 0;
	request = &backend->request;
	request->pid = task->tgid;
	request->flags = (request->flags & ~OPEN) | flags;
	request->ended = now;
	request->user = least(task->utime - backend->user);
	request->system = least(task->stime - backend->system);
	request->after = least(backend->after);
	backend->after = 0;
	backend->open = false;
	add_to_batch(backend);
	return 0;
}

/* --- what it waits for -------------------------------------------------------------------------------------------- */

static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

static __always_inline u32 system_call_of(struct task_struct *task)
{
	return call_in(registers_of(task));
}

/*
 * The pointer moves once in a backend's life, when it joins the shared memory, and what it points at before is never set: so
 * it is read again only if no wait event is found where it led.
 */
static __always_inline bool read_event(struct backend *backend, u32 *event)
{
	if (!target.wait_pointer)
		return true;
	if (backend->wait_event && !bpf_probe_read_user(event, sizeof(*event), backend->wait_event) && *event)
		return true;
	return !bpf_probe_read_user(&backend->wait_event, sizeof(backend->wait_event), (void *)target.wait_pointer) &&
	       !bpf_probe_read_user(event, sizeof(*event), backend->wait_event);
}

/*
 * A backend has one epoll instance for its client and others for everything else, so which it waits on tells whether it waits
 * for its client. The memory in which it says so is cold by then, and reading it would take as long as all the rest; it is
 * looked at now and then, and a wrong guess is counted.
 */
static __always_inline bool find_event(struct backend *backend, struct task_struct *task, u32 *event)
{
	struct pt_regs *regs = registers_of(task);
	u32 call = call_in(regs), instance = 0;
	bool guessed;

	if (call == settings.wait_call || call == settings.other_wait_call)
		instance = first_argument(regs) + 1;
	/* Without wait events a backend that has answered, and waits, waits for its client. */
	guessed = instance && (target.wait_pointer ? instance == backend->client_instance : backend->answered);
	if (guessed && (!target.wait_pointer || backend->looks++ & 63)) {
		*event = settings.client_read;
		return true;
	}
	if (!read_event(backend, event))
		return false;
	if (guessed && *event != settings.client_read)
		count(WRONG_GUESSES);
	if (*event == settings.client_read)
		backend->client_instance = instance;
	return true;
}

static __always_inline u8 bucket_of(u32 event)
{
	if (event == settings.client_read)
		return CLIENT;
	if (event == settings.wal_write_lock)
		return WAL_WAIT;
	if (event == settings.client_write)
		return NETWORK_SEND;
	if (event >> 24 == IO_CLASS)
		return settings.io_bucket[event & (IO_EVENTS - 1)];
	return settings.class_bucket[(event >> 24) & (CLASSES - 1)];
}

/* What a backend that leaves the CPU to sleep waits for. */
static __always_inline void classify(struct backend *backend, struct task_struct *task, u32 state)
{
	bool throttled = backend->throttled && state & TASK_WAKEKILL;
	u64 read_bytes = task->ioac.read_bytes;
	u32 event = 0, call;

	backend->throttled = false;
	backend->cause = CAUSE_NONE;
	if (!find_event(backend, task, &event)) {
		backend->request.flags |= UNKNOWN_EVENT;
		count(UNKNOWN_EVENTS);
		event = 0;
	}
	if (throttled || backend->reclaiming) {
		backend->bucket = THROTTLE;
	} else if (event) {
		backend->bucket = bucket_of(event);
		if (backend->bucket == DATA_READ)
			backend->cause = read_bytes != backend->read_bytes ? OWN_READ : ON_ITS_WAY;
	} else {
		call = system_call_of(task);
		backend->bucket = call == (u32)-1 && BPF_CORE_READ_BITFIELD(task, in_iowait) ? SWAP_IN : UNATTRIBUTED;
		event = SYSTEM_CALL | (call & 0xffffff);
	}
	backend->read_bytes = read_bytes;
	backend->event = event;
}

/* --- coming back -------------------------------------------------------------------------------------------------- */

static __always_inline void charge(struct backend *backend, u64 ns, u32 waker)
{
	struct request *request = &backend->request;
	struct wait *wait = NULL;
	u32 place;

	for (place = 0; place < WAITS - 1; place++) {
		wait = &request->wait[place];
		if (place >= request->waits)
			break;
		if (wait->event == backend->event && wait->bucket == backend->bucket && wait->cause == backend->cause)
			goto found;
	}
	wait = &request->wait[place];
	if (place == WAITS - 1 && request->waits == WAITS)
		goto found;
	wait->ns = 0;
	wait->count = 0;
	wait->event = place == WAITS - 1 ? 0 : backend->event;
	wait->bucket = place == WAITS - 1 ? OTHER_WAIT : backend->bucket;
	wait->cause = place == WAITS - 1 ? CAUSE_NONE : backend->cause;
	request->waits = place + 1;
	if (place == WAITS - 1)
		request->flags |= CUT;
found:
	wait->ns += ns;
	wait->waker = waker;
	wait->count++;
}

/* The interval in which it was blocked is over. */
static __always_inline void unblocked(struct backend *backend, struct task_struct *task, u32 waker, u64 now)
{
	if (backend->bucket != CLIENT) {
		charge(backend, now - backend->since, waker);
	} else {
		begin(backend, task, now, OPEN);
		backend->open = backend->has_client = true;
		backend->answered = false;
	}
	backend->since = now;
}

/* It was blocked until somebody woke it, or as far as is known until now. */
static __always_inline void wake_up(struct backend *backend, struct task_struct *task, u64 now)
{
	u64 woken = backend->woken;

	if (backend->state == WOKEN && woken >= backend->since && woken <= now) {
		unblocked(backend, task, backend->waker, woken);
	} else if (backend->state == WOKEN || backend->state == BLOCKED) {
		count(WAKES_UNSEEN);
		unblocked(backend, task, 0, now);
	}
}

static __always_inline u64 run_delay_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/*
 * The process runs, so if it is not known to, it was switched to unseen: some kernels do not tell of a switch away from
 * certain tasks. How long it had waited for the CPU the kernel has counted itself.
 */
static __always_inline void catch_up(struct backend *backend, struct task_struct *task, u64 now)
{
	u64 waited, all;

	if (backend->state == RUNNING)
		return;
	if (backend->state == UNSEEN) {
		begin(backend, task, now, 0);
		backend->since = now;
		backend->state = RUNNING;
		return;
	}
	count(ARRIVALS_UNSEEN);
	wake_up(backend, task, now);
	waited = run_delay_of(task) - backend->run_delay;
	all = now - backend->since;
	waited = waited < all ? waited : all;
	backend->request.run_queue += waited;
	backend->since += waited;
	backend->state = RUNNING;
}

static __always_inline void pass(struct backend *backend, struct task_struct *task, u64 now)
{
	catch_up(backend, task, now);
	backend->request.cpu += now - backend->since;
	backend->since = now;
}

static __always_inline void comes(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->state == UNSEEN) {
		begin(backend, task, now, 0);
	} else if (backend->state == RUNNING) {
		/* That it left was not told of. */
		count(ARRIVALS_UNSEEN);
		backend->request.cpu += now - backend->since;
	} else {
		wake_up(backend, task, now);
		backend->request.run_queue += now - backend->since;
	}
	backend->since = now;
	backend->state = RUNNING;
}

/*
 * It goes back to waiting for its client. What it did since its last answer was no request: the end of the work on that one,
 * or it was woken for something else, or by a part of a message. But if the connection is encrypted, and something was sent, this
 * is where the request ends as far as can be told.
 */
static __always_inline void waits_again(struct backend *backend, struct task_struct *task, u64 now)
{
	if (backend->open && backend->sent && backend->encrypted)
		end(backend, task, now, UNREADABLE_END);
	else
		backend->after += backend->request.cpu;
	backend->open = false;
	backend->request.flags = 0;
}

/* --- leaving the CPU ---------------------------------------------------------------------------------------------- */

static __always_inline void leaves(struct backend *backend, struct task_struct *task, bool preempted, u64 now)
{
	u32 state = task->__state;

	if (state & TASK_DEAD)
		return;
	pass(backend, task, now);
	backend->run_delay = run_delay_of(task);
	/* Woken already, on another CPU, while it was on its way out. */
	if (preempted || !state || state == TASK_WAKING) {
		backend->state = RUNNABLE;
		return;
	}
	backend->state = LEAVING;
	classify(backend, task, state);
	if (backend->bucket == CLIENT)
		waits_again(backend, task, now);
	__sync_val_compare_and_swap(&backend->state, LEAVING, BLOCKED);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *from, struct task_struct *to)
{
	struct backend *backend;
	bool from_is, to_is;
	u64 now;

	from_is = is_watched(from);
	to_is = is_watched(to);
	if (!from_is && !to_is)
		return 0;
	now = bpf_ktime_get_ns();
	if (from_is) {
		backend = bpf_task_storage_get(&backends, from, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (backend)
			leaves(backend, from, preempted, now);
		else
			lost(NO_STORAGE, 1);
	}
	if (to_is) {
		backend = bpf_task_storage_get(&backends, to, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (backend)
			comes(backend, to, now);
		else
			lost(NO_STORAGE, 1);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct backend *backend;

	if (!is_watched(task))
		return 0;
	backend = bpf_task_storage_get(&backends, task, 0, 0);
	if (!backend || (backend->state != BLOCKED && backend->state != LEAVING))
		return 0;
	/* The kernel lets one at a time wake a task. */
	backend->woken = bpf_ktime_get_ns();
	backend->waker = bpf_get_current_pid_tgid() >> 32;
	if (__sync_val_compare_and_swap(&backend->state, LEAVING, WOKEN) != LEAVING)
		backend->state = WOKEN;
	return 0;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* ReadyForQuery: a byte, a length of five, and the state of the transaction, of which there are three. */
static __always_inline bool ends_answer(struct task_struct *task, s64 bytes)
{
	u8 end[READY_BYTES] = {};
	u64 from = second_argument(registers_of(task));

	if (bytes < READY_BYTES || system_call_of(task) != settings.send_call)
		return false;
	if (bpf_probe_read_user(end, sizeof(end), (void *)(from + bytes - READY_BYTES)))
		return false;
	return end[0] == 'Z' && !end[1] && !end[2] && !end[3] && end[4] == READY_BYTES - 1 &&
	       (end[5] == 'I' || end[5] == 'T' || end[5] == 'E');
}

/* Application data of TLS 1.2 or 1.3, whose records begin alike. */
static __always_inline bool is_record_of_tls(struct task_struct *task)
{
	u8 head[3] = {};

	return !bpf_probe_read_user(head, sizeof(head), (void *)second_argument(registers_of(task))) && head[0] == 23 &&
	       head[1] == 3 && head[2] == 3;
}

/* With the last byte of an answer a request ends, and the next one, if its message waits already, begins. */
static __always_inline void sent(struct task_struct *task, s64 bytes)
{
	struct backend *backend = bpf_task_storage_get(&backends, task, 0, 0);
	u64 now;

	if (!backend)
		return;
	if (!ends_answer(task, bytes)) {
		backend->sent = true;
		backend->encrypted |= is_record_of_tls(task);
		return;
	}
	now = bpf_ktime_get_ns();
	pass(backend, task, now);
	end(backend, task, now, 0);
	begin(backend, task, now, QUEUED);
	backend->answered = backend->has_client = true;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, void *socket, int bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (bytes > 0 && is_watched(task))
		sent(task, bytes);
	return 0;
}

/* Before 6.3 sockets have no such tracepoints. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (result > 0 && is_watched(task) && system_call_of(task) == settings.send_call)
		sent(task, result);
	return 0;
}

/* --- what is rare ------------------------------------------------------------------------------------------------- */

static __always_inline struct backend *current_backend(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_watched(task))
		return NULL;
	return bpf_task_storage_get(&backends, task, 0, 0);
}

SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_throttle)
{
	struct backend *backend = current_backend();

	if (backend)
		backend->throttled = true;
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

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct backend *backend;
	u64 now;

	if (!is_watched(task) || task->pid != task->tgid)
		return 0;
	backend = bpf_task_storage_get(&backends, task, 0, 0);
	if (!backend || backend->state == UNSEEN)
		return 0;
	now = bpf_ktime_get_ns();
	pass(backend, task, now);
	if (backend->open && task->exit_code) {
		end(backend, task, now, ABORTED);
	} else if (!backend->has_client) {
		backend->request.pid = task->tgid;
		backend->request.flags |= PROCESS_ENDED;
		backend->request.ended = now;
		add_to_batch(backend);
	}
	hand_over(backend);
	backend->state = UNSEEN;
	return 0;
}
