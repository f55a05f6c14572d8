/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stands for a server of PostgreSQL with one backend and its client, on files whose every access is known.
 *
 * Run in the data directory with the numbers of the wait events ClientRead, DataFileRead, WALWrite and WALSync; at a line on
 * standard input the client asks, request after request, and prints of each what it asked for and how long the backend did it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 8192
#define APART (32 * BLOCK) /* further than anything is read ahead */
#define LOG_BYTES (8 * BLOCK)
#define ANSWER "12345678Z\0\0\0\5I"
#define ANSWER_BYTES 14

static uint32_t event;
/* As PostgreSQL's program exports it. */
uint32_t *my_wait_event_info = &event;

static uint32_t client_read, data_file_read, wal_write, wal_sync;
static char page[LOG_BYTES];

static void check(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	_exit(9);
}

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ULL + at.tv_nsec;
}

static void waits(uint32_t what)
{
	*(volatile uint32_t *)&event = what;
}

static void does(char what, int table, int log)
{
	static off_t read_at, written_at;
	struct stat told;

	switch (what) {
	case 'r': /* a page that nobody has read */
		waits(data_file_read);
		check(pread(table, page, BLOCK, read_at) == BLOCK, "pread");
		read_at += APART;
		break;
	case 's': /* pages of the log, in more calls than one, and a sync of them */
		waits(wal_write);
		check(pwrite(log, page, LOG_BYTES, written_at) == LOG_BYTES, "pwrite");
		written_at += LOG_BYTES;
		waits(wal_sync);
		check(fdatasync(log) == 0, "fdatasync");
		break;
	case 'a': /* attributes, which are asked for without a wait event */
		check(fstat(table, &told) == 0, "fstat");
		break;
	case 'p': /* a pause, which no server is asked for */
		waits(data_file_read);
		usleep(20000);
		break;
	}
	waits(0);
}

static void serve(int client)
{
	int table = open("base/table", O_RDONLY), log = open("pg_wal/log", O_WRONLY | O_CREAT, 0600);
	char what;

	check(table >= 0 && log >= 0, "open");
	check(posix_fadvise(table, 0, 0, POSIX_FADV_RANDOM) == 0, "fadvise");
	for (;;) {
		waits(client_read);
		if (read(client, &what, 1) != 1)
			_exit(0);
		waits(0);
		does(what, table, log);
		check(send(client, ANSWER, ANSWER_BYTES, 0) == ANSWER_BYTES, "send");
	}
}

int main(int count, char **told)
{
	char line[8], answer[ANSWER_BYTES];
	int ends[2];

	check(count == 6 && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "arguments");
	client_read = strtoul(told[1], NULL, 0);
	data_file_read = strtoul(told[2], NULL, 0);
	wal_write = strtoul(told[3], NULL, 0);
	wal_sync = strtoul(told[4], NULL, 0);
	memset(page, 'x', sizeof(page));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 9);
		close(ends[0]);
		serve(ends[1]);
	}
	close(ends[1]);
	check(fgets(line, sizeof(line), stdin) != NULL, "no word to begin");
	for (char *what = told[5]; *what; what++) {
		uint64_t began;

		usleep(20000); /* so that the backend waits for its client again */
		began = now();
		check(write(ends[0], what, 1) == 1, "write");
		check(recv(ends[0], answer, ANSWER_BYTES, MSG_WAITALL) == ANSWER_BYTES, "recv");
		printf("%c %llu\n", *what, (unsigned long long)(now() - began));
		fflush(stdout);
	}
	/* As a server ends: after its backends, for what they did last is theirs as long as they are its children. */
	close(ends[0]);
	wait(NULL);
	return 0;
}
