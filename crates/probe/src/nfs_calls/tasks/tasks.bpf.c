// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hands over each call that the kernel's RPC client counts, of those that go to some servers.
 *
 * The fact that constrains it: the tracepoint stands where the client adds a call to its own account (mountstats), once for each
 * call and after its end. So its calls are those of the account, by construction.
 */
#include "../../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include "tasks.h"
#include "../../bpf/counters.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AF_INET 2
#define AF_INET6 10
#define IPV4_AT 4
#define IPV4_BYTES 4
#define IPV6_AT 8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rpc_procinfo {
	u32 p_proc, p_statidx;
	const char *p_name;
};

struct rpc_message {
	const struct rpc_procinfo *rpc_proc;
};

struct rpc_clnt {
	u32 cl_prog, cl_vers;
};

struct __kernel_sockaddr_storage {
	unsigned short ss_family;
};

struct rpc_xprt {
	struct __kernel_sockaddr_storage addr;
};

/* The numbers of bytes are wider in some kernels; a call's are in their lower half. */
struct rpc_rqst {
	u32 rq_xid;
	int rq_ntrans;
	u32 rq_xmit_bytes_sent;
	u32 rq_reply_bytes_recvd;
};

struct rpc_task {
	int tk_status;
	struct rpc_message tk_msg;
	struct rpc_clnt *tk_client;
	struct rpc_xprt *tk_xprt;
	struct rpc_rqst *tk_rqstp;
	int tk_owner;
};

#pragma clang attribute pop

const volatile struct settings settings SEC(".rodata.settings");

LOSSES_OF_EACH_CPU(LOSSES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} calls SEC(".maps");

static __always_inline bool is_of(const volatile struct server *server, const u8 *address, u32 at, u32 bytes)
{
	if (server->family != *(const u16 *)address || server->port != *(const u16 *)(address + 2))
		return false;
	for (u32 i = 0; i < bytes; i++)
		if (server->address[i] != address[at + i])
			return false;
	return true;
}

static __always_inline bool is_of_a_server(const struct rpc_xprt *transport)
{
	u8 address[IPV6_AT + ADDRESS_BYTES] __attribute__((aligned(8))) = {};
	bool is_six;

	if (!transport || bpf_probe_read_kernel(address, sizeof(address), &transport->addr))
		return false;
	is_six = *(u16 *)address == AF_INET6;
	for (u32 i = 0; i < SERVERS && i < settings.count; i++) {
		if (is_six ? is_of(&settings.servers[i], address, IPV6_AT, ADDRESS_BYTES) :
			     is_of(&settings.servers[i], address, IPV4_AT, IPV4_BYTES))
			return true;
	}
	return false;
}

SEC("tp_btf/rpc_stats_latency")
int BPF_PROG(on_call, struct rpc_task *task, s64 backlog, s64 rtt, s64 execute)
{
	const struct rpc_procinfo *procedure;
	struct rpc_clnt *client;
	struct rpc_rqst *request;
	struct call *call;

	/* Kernels of 6.12 take no argument of a tracepoint for one that is there before it has been looked at. */
	if (!task || !is_of_a_server(BPF_CORE_READ(task, tk_xprt)))
		return 0;
	call = bpf_ringbuf_reserve(&calls, sizeof(*call), 0);
	if (!call) {
		lose(LOST_RECORDS);
		return 0;
	}
	client = BPF_CORE_READ(task, tk_client);
	request = BPF_CORE_READ(task, tk_rqstp);
	procedure = BPF_CORE_READ(task, tk_msg.rpc_proc);
	call->ended = bpf_ktime_get_ns();
	call->backlog = backlog;
	call->rtt = rtt;
	call->execute = execute;
	call->program = BPF_CORE_READ(client, cl_prog);
	call->version = BPF_CORE_READ(client, cl_vers);
	call->procedure = BPF_CORE_READ(procedure, p_proc);
	call->number = BPF_CORE_READ(procedure, p_statidx);
	call->xid = bpf_ntohl(BPF_CORE_READ(request, rq_xid));
	call->owner = BPF_CORE_READ(task, tk_owner);
	call->sent_bytes = BPF_CORE_READ(request, rq_xmit_bytes_sent);
	call->received_bytes = BPF_CORE_READ(request, rq_reply_bytes_recvd);
	call->transmissions = BPF_CORE_READ(request, rq_ntrans);
	call->status = BPF_CORE_READ(task, tk_status);
	__builtin_memset(call->name, 0, sizeof(call->name));
	/* A procedure without a name has none. */
	bpf_probe_read_kernel_str(call->name, sizeof(call->name), BPF_CORE_READ(procedure, p_name));
	bpf_ringbuf_submit(call, BPF_RB_NO_WAKEUP);
	return 0;
}
