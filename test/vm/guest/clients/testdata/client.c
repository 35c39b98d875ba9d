/* What programs do around a connect: client HOW ADDRESS PORT TEXT, with HOW name NAME in place of ADDRESS. It ends with 0 when
 * the text was sent, with 3 when the call failed with EPERM, with 4 when its own time was over, and with 1 otherwise. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define OWN_LIMIT_MS 10000

static struct sockaddr_in to;
static const char *text;
static volatile sig_atomic_t signals;

static void count(int sig)
{
	signals++;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(errno == EPERM ? 3 : 1);
}

/* A handler that does not ask for restarts. */
static void handle(int sig)
{
	struct sigaction a = {.sa_handler = count};
	sigaction(sig, &a, 0);
}

/* finish waits for a connect that a signal interrupted or that does not block. */
static int finish(int s, long limit)
{
	int e = 0, n;
	socklen_t size = sizeof(e);
	struct pollfd p = {.fd = s, .events = POLLOUT};
	while ((n = poll(&p, 1, limit)) < 0 && errno == EINTR)
		;
	if (n == 0) {
		fprintf(stderr, "connect: its own time is over\n");
		exit(4);
	}
	if (n < 0 || getsockopt(s, SOL_SOCKET, SO_ERROR, &e, &size))
		return -1;
	errno = e;
	return e ? -1 : 0;
}

static int send_text(struct sockaddr_in *at)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s, (struct sockaddr *)at, sizeof(*at)) && (errno != EINTR || finish(s, -1)))
		return -1;
	if (write(s, text, strlen(text)) < 0)
		return -1;
	char end;
	shutdown(s, SHUT_WR);
	while (read(s, &end, 1) > 0)
		;
	return close(s);
}

static void *send_one(void *at)
{
	return (void *)(long)(send_text(at) ? errno : 0);
}

/* apart: each thread has a port of its own */
static void threads(int apart)
{
	pthread_t t[THREADS];
	struct sockaddr_in at[THREADS];
	int bad = 0;
	for (int i = 0; i < THREADS; i++) {
		at[i] = to;
		at[i].sin_port = htons(ntohs(to.sin_port) + (apart ? i : 0));
		pthread_create(&t[i], 0, send_one, &at[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		void *e;
		pthread_join(t[i], &e);
		if (e)
			bad = (int)(long)e;
	}
	errno = bad;
	if (bad)
		fail("connect in a thread");
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* As clients do that bound their connects: the time begins before the call. */
static void own_limit(void)
{
	long until = now_ms() + OWN_LIMIT_MS;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(s, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		fail("connect");
	long left = until - now_ms();
	if (finish(s, left > 0 ? left : 0) || write(s, text, strlen(text)) < 0)
		fail("connect");
}

static int look_up(const char *name)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
	int e = getaddrinfo(name, 0, &hints, &found);
	if (e) {
		fprintf(stderr, "%s: %s\n", name, gai_strerror(e));
		return 0;
	}
	to.sin_addr = ((struct sockaddr_in *)found->ai_addr)->sin_addr;
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "name")) {
		if (!look_up(argv[2]))
			return 1;
	} else if (argc != 5 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: client HOW ADDRESS PORT TEXT\n");
		return 2;
	}
	const char *how = argv[1];
	to.sin_family = AF_INET;
	to.sin_port = htons(atoi(argv[3]));
	text = argv[4];
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(how, "threads") || !strcmp(how, "apart")) {
		threads(how[0] == 'a');
	} else if (!strcmp(how, "limit")) {
		own_limit();
	} else {
		struct itimerval often = {{0, 50000}, {0, 50000}};
		pid_t child = 0;
		if (!strcmp(how, "alarm")) {
			handle(SIGALRM);
			setitimer(ITIMER_REAL, &often, 0);
		} else if (!strcmp(how, "cont")) {
			handle(SIGCONT);
		} else if (!strcmp(how, "child")) {
			handle(SIGCHLD);
			if (!(child = fork())) {
				usleep(300000);
				_exit(0);
			}
		}
		if (send_text(&to))
			fail("connect");
		if (child)
			waitpid(child, 0, 0);
	}
	printf("sent, %s\n", signals ? "signals came" : "no signals");
	return 0;
}
