/* SPDX-License-Identifier: MIT */
/*
 * The terminal of tickwheel-perf top.
 *
 * Signals are blocked in all threads, and come through only while the main thread waits: so none is
 * lost between a look and a wait, and none ends the program in the middle of a frame.
 */
#include "top/terminal.h"

#include "harness/measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The other screen, without a cursor; and back. */
#define SCREEN_TAKE "\033[?1049h\033[?25l\033[2J"
#define SCREEN_GIVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define STRONG "\033[1m"
#define PLAIN "\033[0m"
#define LINE_REST_CLEAR "\033[K"
#define SCREEN_REST_CLEAR "\033[J"

#define NS_PER_S INT64_C(1000000000)

static struct {
	bool screen;   /* stdout is one */
	bool keyboard; /* stdin is one */
	struct termios before;
	sigset_t mask_before;
	volatile sig_atomic_t ended;
} terminal;

static void on_end(int signal)
{
	(void)signal;
	terminal.ended = 1;
}

/* A wait ends by it. */
static void on_resize(int signal)
{
	(void)signal;
}

static void signals_take(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction end = {.sa_handler = on_end};
	struct sigaction resize = {.sa_handler = on_resize};
	sigset_t mask;

	(void)sigemptyset(&mask);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		(void)sigaction(ends[i], &end, NULL);
		(void)sigaddset(&mask, ends[i]);
	}
	(void)sigaction(SIGWINCH, &resize, NULL);
	(void)sigaddset(&mask, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &mask, &terminal.mask_before);
}

/* Keys at once and unseen. Ctrl-C stays a signal; nothing stops the program with the screen taken. */
static void keyboard_take(void)
{
	struct termios keys;

	terminal.keyboard = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &terminal.before) == 0;
	if (!terminal.keyboard)
		return;
	keys = terminal.before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	keys.c_cc[VSUSP] = _POSIX_VDISABLE;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

void terminal_open(void)
{
	signals_take();
	terminal.screen = isatty(STDOUT_FILENO);
	if (!terminal.screen)
		return;
	keyboard_take();
	fputs(SCREEN_TAKE, stdout);
	(void)fflush(stdout);
}

void terminal_close(void)
{
	if (terminal.screen) {
		fputs(SCREEN_GIVE, stdout);
		(void)fflush(stdout);
	}
	if (terminal.keyboard)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
	terminal.screen = terminal.keyboard = false;
}

void terminal_size(unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size = {0};

	*ret_rows = 24;
	*ret_columns = 80;
	if (!terminal.screen || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return;
	if (size.ws_row > 0)
		*ret_rows = size.ws_row;
	if (size.ws_col > 0)
		*ret_columns = size.ws_col;
}

/* No line end behind the last line: it would scroll. */
static void screen_show(const struct top_text *text)
{
	fputs(HOME, stdout);
	for (unsigned i = 0; i < text->count; i++) {
		const struct top_line *line = &text->line[i];

		if (i > 0)
			fputs("\r\n", stdout);
		fputs(line->strong ? STRONG : "", stdout);
		fputs(line->text, stdout);
		fputs(line->strong ? PLAIN LINE_REST_CLEAR : LINE_REST_CLEAR, stdout);
	}
	fputs(SCREEN_REST_CLEAR, stdout);
}

void terminal_show(const struct top_text *text)
{
	if (terminal.screen) {
		screen_show(text);
	} else {
		for (unsigned i = 0; i < text->count; i++)
			puts(text->line[i].text);
		puts("");
	}
	(void)fflush(stdout);
}

static bool key_ends(void)
{
	char key;

	while (read(STDIN_FILENO, &key, 1) == 1)
		if (key == 'q' || key == 'Q')
			return true;
	return false;
}

bool terminal_wait(int64_t until_ns)
{
	struct pollfd keys = {.fd = terminal.keyboard ? STDIN_FILENO : -1, .events = POLLIN};
	int64_t left_ns = until_ns - measure_now_ns();
	struct timespec left;
	int ready;

	if (left_ns < 0)
		left_ns = 0;
	left = (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
	ready = ppoll(&keys, 1, &left, &terminal.mask_before);
	if (terminal.ended || (keys.revents & (POLLHUP | POLLERR)) != 0)
		return false;
	return ready <= 0 || !key_ends();
}
