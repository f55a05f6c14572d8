/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a backend sends tells where its requests and transactions end. */
#ifndef PLIMSOLL_ANSWERS_BPF_H
#define PLIMSOLL_ANSWERS_BPF_H

#include "states.bpf.h"

/* What ReadyForQuery says of the transaction. */
#define NO_BLOCK 'I'
#define BLOCK 'T'
#define FAILED_BLOCK 'E'

/* ReadyForQuery: a byte, a length of five, and the state of the transaction; that state, or 0 if the answer goes on. */
static __always_inline u8 state_at_end(struct pt_regs *regs, s64 bytes)
{
	u8 end[READY_BYTES] = {};

	if (bytes < READY_BYTES || call_in(regs) != settings.send_call)
		return 0;
	/* Rare: the page was moved or put away since the call read it, and a program cannot wait for it. */
	if (bpf_probe_read_user(end, sizeof(end), (void *)(second_argument(regs) + bytes - READY_BYTES))) {
		count(UNREAD_ANSWERS);
		return 0;
	}
	if (end[0] != 'Z' || end[1] || end[2] || end[3] || end[4] != READY_BYTES - 1)
		return 0;
	return end[5] == NO_BLOCK || end[5] == BLOCK || end[5] == FAILED_BLOCK ? end[5] : 0;
}

/* The last bytes of the CommandComplete that ends a block, as a number: of COMMIT (with its length), ROLLBACK, PREPARE TRANSACTION. */
#define TAG_BYTES 8
#define TAG(a, b, c, d, e, f, g)                                                                                              \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48)

/* Whether this answer, at whose end no block is open, closed one. */
static __always_inline bool closes_block(struct pt_regs *regs, s64 bytes)
{
	u64 tag = 0;

	if (bytes < READY_BYTES + TAG_BYTES)
		return false;
	if (bpf_probe_read_user(&tag, sizeof(tag), (void *)(second_argument(regs) + bytes - READY_BYTES - TAG_BYTES)))
		return false;
	return tag == TAG(11, 'C', 'O', 'M', 'M', 'I', 'T') || tag == TAG('O', 'L', 'L', 'B', 'A', 'C', 'K') ||
	       tag == TAG('S', 'A', 'C', 'T', 'I', 'O', 'N');
}

/* Application data of TLS 1.2 or 1.3, whose records begin alike. */
static __always_inline bool is_record_of_tls(const u8 *head)
{
	return head[0] == 23 && head[1] == 3 && head[2] == 3;
}

/* ParseComplete, BindComplete and NoData, which may come before: a byte and a length of four. */
#define EMPTY_BYTES 5
#define EMPTY_MAX 3

/* CopyInResponse: what the client sends now belongs to the request, and the waits for it too. */
static __always_inline bool begins_copy(const u8 *head)
{
	for (u32 i = 0; i <= EMPTY_MAX; i++) {
		u8 kind = head[i * EMPTY_BYTES];

		if (kind == 'G')
			return true;
		if (kind != '1' && kind != '2' && kind != 'n')
			return false;
	}
	return false;
}

/* A part of an answer, or something else, was sent. */
static __always_inline void goes_on(struct backend *backend, struct pt_regs *regs)
{
	u8 head[EMPTY_MAX * EMPTY_BYTES + 1] = {};

	backend->sent = true;
	if (bpf_probe_read_user(head, sizeof(head), (void *)second_argument(regs)))
		return;
	backend->encrypted |= is_record_of_tls(head);
	/* As in a block, it waits for its client within the transaction. A long result may look alike, and does not wait for it. */
	backend->in_block |= begins_copy(head);
}

/* An answer within a slice ends a transaction that is not known: what follows is. */
static __always_inline void follow(struct backend *backend, struct task_struct *task)
{
	if (is_closing())
		return;
	begin_anew(backend, task, bpf_ktime_get_ns(), QUEUED);
	set_busy(backend, true);
}

/* With the last byte of an answer a request ends, and outside of blocks the next transaction, if its message is there, begins. */
static __always_inline void sent(struct task_struct *task, s64 bytes)
{
	/* One whose first arrival on a CPU was not told of is not known yet. */
	struct backend *backend = known_from_now(task);
	struct pt_regs *regs;
	u8 state;
	u64 now;

	if (!backend)
		return;
	regs = registers_of(task);
	state = state_at_end(regs, bytes);
	if (!state) {
		goes_on(backend, regs);
		return;
	}
	backend->has_client = true;
	if (settings.by_system_call)
		backend->client_socket = first_argument(regs) + 1;
	/* Before the request is counted, for if the backend came unseen what was counted so far was before. */
	if (is_followed(backend, task, false) && backend->state == UNSEEN)
		appears(backend, task, bpf_ktime_get_ns());
	else if (backend->state != RUNNING && backend->state != PASSED_OVER)
		catch_up(backend, task, bpf_ktime_get_ns());
	if (backend->state == PASSED_OVER) {
		if (state == NO_BLOCK)
			follow(backend, task);
		return;
	}
	backend->transaction.requests++;
	if (state != NO_BLOCK && !settings.by_request) {
		backend->in_block = true;
		if (backend->found_waiting)
			backend->transaction.flags |= HEADLESS;
		return;
	}
	/* It was within a block when it was found, but for a whole one in a single message, which cannot be told from that. */
	if (backend->found_waiting && closes_block(regs, bytes))
		backend->transaction.flags |= HEADLESS;
	now = bpf_ktime_get_ns();
	charge_cpu_until(backend, task, now);
	end(backend, task, now, 0);
	if (is_closing()) {
		pass_over(backend);
	} else {
		begin(backend, now, QUEUED);
		set_busy(backend, true);
	}
}

#endif
