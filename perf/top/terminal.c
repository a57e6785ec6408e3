/* SPDX-License-Identifier: MIT */
/*
 * The terminal of tickwheel-perf top.
 *
 * All threads block the signals that end the program or report a new size. The system delivers them
 * only while the main thread waits in ppoll. So no signal is lost between a check and a wait, and
 * none ends the program in the middle of a frame.
 */
#include "top/terminal.h"

#include "harness/measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The first switches to the alternate screen and hides the cursor, the second does the reverse. */
#define SCREEN_TAKE "\033[?1049h\033[?25l\033[2J"
#define SCREEN_GIVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define LINE_REST_CLEAR "\033[K"
#define SCREEN_REST_CLEAR "\033[J"

#define NS_PER_S INT64_C(1000000000)

/*
 * Uses only the sixteen colours that every terminal has, so the terminal's theme decides between
 * light and dark.
 */
static const char *const styles_coloured[TOP_STYLES] = {
	[TOP_PLAIN] = "\033[0m",
	[TOP_TITLE] = "\033[0;1m",
	[TOP_HEADING] = "\033[0;1;34m",
	[TOP_RATE] = "\033[0;32m",
	/* Text and background have the same colour, so that the characters form a bar. */
	[TOP_BAR] = "\033[0;36;46m",
	[TOP_ALARM] = "\033[0;1;31m",
};
static const char *const styles_plain[TOP_STYLES] = {
	[TOP_PLAIN] = "\033[0m", [TOP_TITLE] = "\033[0;1m", [TOP_HEADING] = "\033[0;1m",
	[TOP_RATE] = "\033[0m",  [TOP_BAR] = "\033[0m",     [TOP_ALARM] = "\033[0;1m",
};

static struct {
	const char *const *styles;
	bool screen;   /* stdout is a terminal */
	bool keyboard; /* stdin is a terminal */
	struct termios before;
	sigset_t mask_before;
	volatile sig_atomic_t ended;
} terminal;

static void on_end(int signal)
{
	(void)signal;
	terminal.ended = 1;
}

/* Does nothing, but the signal ends a wait. */
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

/*
 * Delivers keys at once and without an echo. Ctrl-C stays a signal. Ctrl-Z is switched off, because
 * it would stop the program while it has the screen.
 */
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

/*
 * Returns whether to use colours. NO_COLOR forbids them if it is set and not empty
 * (https://no-color.org).
 */
static bool colours_wanted(void)
{
	const char *refused = getenv("NO_COLOR");
	const char *type = getenv("TERM");

	return (!refused || *refused == '\0') && type && strcmp(type, "dumb") != 0;
}

void terminal_open(void)
{
	signals_take();
	terminal.screen = isatty(STDOUT_FILENO);
	if (!terminal.screen)
		return;
	terminal.styles = colours_wanted() ? styles_coloured : styles_plain;
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

static void line_show(const struct top_line *line)
{
	uint8_t style = TOP_PLAIN;

	for (unsigned i = 0; line->text[i] != '\0'; i++) {
		if (line->style[i] != style)
			fputs(terminal.styles[line->style[i]], stdout);
		style = line->style[i];
		fputc(line->text[i], stdout);
	}
	if (style != TOP_PLAIN)
		fputs(terminal.styles[TOP_PLAIN], stdout);
	fputs(LINE_REST_CLEAR, stdout);
}

/* Writes no line end after the last line, because the screen would scroll. */
static void screen_show(const struct top_text *text)
{
	fputs(HOME, stdout);
	for (unsigned i = 0; i < text->count; i++) {
		if (i > 0)
			fputs("\r\n", stdout);
		line_show(&text->line[i]);
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
