/* Loaded into a postgres program before its main function: prints what the server calls each wait event, and ends it there.
 *
 * A line is the number in hex, the class and the server's answer; a line without answer opens a class. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLASSES = 256, IDS = 1024, CLASS_SHIFT = 24, PATIENCE_S = 10 };

typedef const char *(*name_of)(unsigned info);

/* Each class in a process of its own: names that extensions register lie in shared memory, which is not there yet, so that
 * asking for one ends the process. What it said until then stands. */
static void print_class(unsigned class, const char *class_name, name_of event_of)
{
	pid_t child;

	printf("%08x %s\n", class << CLASS_SHIFT, class_name);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(PATIENCE_S);
		for (unsigned id = 0; id < IDS; id++) {
			unsigned info = class << CLASS_SHIFT | id;
			const char *event = event_of(info);

			printf("%08x %s %s\n", info, class_name, event ? event : "-");
			fflush(stdout);
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

__attribute__((constructor)) static void print_names(void)
{
	name_of class_of = (name_of)dlsym(RTLD_DEFAULT, "pgstat_get_wait_event_type");
	name_of event_of = (name_of)dlsym(RTLD_DEFAULT, "pgstat_get_wait_event");
	struct rlimit no_core = { 0, 0 };

	if (!class_of || !event_of) {
		fputs("this program has no pgstat_get_wait_event\n", stderr);
		_exit(1);
	}
	setrlimit(RLIMIT_CORE, &no_core);
	for (unsigned class = 0; class < CLASSES; class++) {
		/* Of number 0 the server says nothing, since it means no wait. */
		const char *class_name = class ? class_of(class << CLASS_SHIFT) : NULL;

		if (class_name && strcmp(class_name, "???") != 0)
			print_class(class, class_name, event_of);
	}
	_exit(0);
}
