/*
 * The floor of a load generator: a closed loop of one prepared select that keeps no record, checks no answer and has
 * nothing to configure. Edge-triggered epoll, messages encoded beforehand. What any generator adds is on top of this.
 *
 *     bare SOCKET USER DATABASE CONNECTIONS THREADS SECONDS ACCOUNTS PINNED
 *
 * Prints the transactions and the seconds. The server must trust the user.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { CONNECTIONS_MAX = 1024, REPLY_BYTES = 8192 };

static const char *socket_path, *user, *database;
static int connections, threads, pinned;
static double seconds;
static uint64_t accounts;
static long done[64];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static char *put(char *to, char tag, const void *body, int bytes)
{
	uint32_t length = htonl(bytes + 4);
	*to = tag;
	memcpy(to + 1, &length, 4);
	memcpy(to + 5, body, bytes);
	return to + 5 + bytes;
}

/* Six bytes of ReadyForQuery end every answer. */
static int is_whole(const char *reply, ssize_t bytes)
{
	return bytes >= 6 && reply[bytes - 6] == 'Z';
}

static void send_and_wait(int fd, const char *message, int bytes)
{
	char reply[REPLY_BYTES];
	if (send(fd, message, bytes, 0) != bytes)
		fail("send");
	for (;;) {
		ssize_t got = recv(fd, reply, sizeof reply, 0);
		if (got <= 0)
			fail("recv");
		if (reply[0] == 'E') {
			fprintf(stderr, "the server refused\n");
			exit(1);
		}
		if (is_whole(reply, got))
			return;
	}
}

static int open_connection(void)
{
	static const char statement[] = "s\0SELECT abalance FROM pgbench_accounts WHERE aid = $1\0\0";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char message[512], *end = message + 8;
	uint32_t version = htonl(196608), length;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		fail(socket_path);
	end += sprintf(end, "user%c%s%cdatabase%c%s%c", 0, user, 0, 0, database, 0);
	*end++ = 0;
	length = htonl(end - message);
	memcpy(message, &length, 4);
	memcpy(message + 4, &version, 4);
	send_and_wait(fd, message, end - message);
	end = put(message, 'P', statement, sizeof statement);
	end = put(end, 'S', "", 0);
	send_and_wait(fd, message, end - message);
	return fd;
}

/* Bind, Describe, Execute and Sync in one message, as libpq sends them; the key of four bytes is at *key_at. */
static int encode(char *message, int *key_at)
{
	static const char head[] = {0, 's', 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 4};
	static const char tail[] = {0, 1, 0, 1}, execute[5] = {0};
	char bind[sizeof head + 4 + sizeof tail] = {0}, *end;

	memcpy(bind, head, sizeof head);
	memcpy(bind + sizeof head + 4, tail, sizeof tail);
	*key_at = 5 + sizeof head;
	end = put(message, 'B', bind, sizeof bind);
	end = put(end, 'D', "P", 2);
	end = put(end, 'E', execute, sizeof execute);
	end = put(end, 'S', "", 0);
	return end - message;
}

static void *carry(void *argument)
{
	long self = (long)argument;
	int epoll = epoll_create1(0), fds[CONNECTIONS_MAX], count = 0, key_at;
	char message[128], reply[REPLY_BYTES];
	int bytes = encode(message, &key_at);
	uint64_t draw = 88172645463325252ULL + self;
	struct epoll_event ready[256];

	if (pinned) {
		cpu_set_t cpus;
		CPU_ZERO(&cpus);
		CPU_SET(self, &cpus);
		sched_setaffinity(0, sizeof cpus, &cpus);
	}
	for (int i = self; i < connections; i += threads, count++) {
		struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = count}};
		fds[count] = open_connection();
		epoll_ctl(epoll, EPOLL_CTL_ADD, fds[count], &event);
	}
#define SEND(place) do { \
		draw ^= draw << 13; draw ^= draw >> 7; draw ^= draw << 17; \
		uint32_t key = htonl(1 + draw % accounts); \
		memcpy(message + key_at, &key, 4); \
		if (send(fds[place], message, bytes, MSG_NOSIGNAL) != bytes) \
			fail("send"); \
	} while (0)
	double end = now() + seconds;
	for (int i = 0; i < count; i++)
		SEND(i);
	for (;;) {
		int events = epoll_wait(epoll, ready, 256, -1);
		double woken = now();
		for (int i = 0; i < events; i++) {
			uint64_t place = ready[i].data.u64;
			if (!is_whole(reply, recv(fds[place], reply, sizeof reply, MSG_DONTWAIT)))
				continue;
			done[self]++;
			if (woken < end)
				SEND(place);
		}
		if (woken >= end)
			return NULL;
	}
}

int main(int count, char **arguments)
{
	pthread_t handles[64];
	long sum = 0;

	if (count != 9) {
		fprintf(stderr, "bare SOCKET USER DATABASE CONNECTIONS THREADS SECONDS ACCOUNTS PINNED\n");
		return 2;
	}
	socket_path = arguments[1], user = arguments[2], database = arguments[3];
	connections = atoi(arguments[4]), threads = atoi(arguments[5]), seconds = atof(arguments[6]);
	accounts = strtoull(arguments[7], NULL, 10), pinned = atoi(arguments[8]);
	if (connections < 1 || connections > CONNECTIONS_MAX || threads < 1 || threads > 64 || accounts < 1)
		return 2;
	for (long i = 0; i < threads; i++)
		pthread_create(&handles[i], NULL, carry, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(handles[i], NULL);
	for (int i = 0; i < threads; i++)
		sum += done[i];
	printf("%ld %.3f\n", sum, seconds);
	return 0;
}
