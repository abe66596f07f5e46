#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void plug(port_t *port) {
  port->fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (port->fd < 0 || grantpt(port->fd) != 0 || unlockpt(port->fd) != 0) {
    die("pty");
  }
  const char *name = ptsname(port->fd);
  const int other = open(name, O_RDWR | O_NOCTTY);
  struct termios settings;
  if (other < 0 || tcgetattr(other, &settings) != 0) {
    die(name);
  }
  cfmakeraw(&settings); /* no echo or line editing for any program that opens it */
  (void)tcsetattr(other, TCSANOW, &settings);
  (void)close(other); /* from now on, poll shows whether a program has the pty open */
  port->open = false;
  (void)unlink(port->link);
  if (symlink(name, port->link) != 0) {
    die(port->link);
  }
}

static void unplug(port_t *port) {
  if (port->fd >= 0) {
    (void)unlink(port->link);
    (void)close(port->fd);
  }
  port->fd = -1;
  port->open = false;
  port->in.count = 0;
  port->out.count = 0;
}

void port_create(port_t *port, const char *link) {
  (void)snprintf(port->link, sizeof port->link, "%s", link);
  line_seed(port);
  plug(port);
}

static void flush(port_t *port) {
  uint8_t bytes[512];
  for (size_t count; (count = line_off(&port->out, bytes, sizeof bytes)) > 0;) {
    if (port->open) {
      (void)!write(port->fd, bytes, count);
    }
  }
}

int port_watch(port_t *port) {
  struct pollfd watch = {port->fd, 0, 0};
  const bool open =
      port->fd >= 0 && poll(&watch, 1, 0) >= 0 && (watch.revents & POLLHUP) == 0;
  const int change = (int)open - (int)port->open;
  port->open = open;
  flush(port);
  return change;
}

size_t port_read(port_t *port, uint8_t *bytes, size_t most) {
  uint8_t fresh[512];
  const ssize_t got = port->open ? read(port->fd, fresh, sizeof fresh) : 0;
  for (ssize_t i = 0; i < got; i++) {
    line_onto(port, &port->in, fresh[i]);
  }
  return line_off(&port->in, bytes, most);
}

void port_write(port_t *port, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    line_onto(port, &port->out, bytes[i]);
  }
  flush(port);
}

bool port_order(port_t *port, const char *order) {
  if (strcmp(order, "line unplug") == 0) {
    unplug(port);
  } else if (strcmp(order, "line plug") == 0) {
    if (port->fd < 0) {
      plug(port);
    }
  } else {
    return line_order(port, order);
  }
  return true;
}

void port_remove(port_t *port) { unplug(port); }

void control_create(control_t *control, const char *path) {
  control->listener = -1;
  control->client = -1;
  if (path == NULL) {
    return;
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    die(path);
  }
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  (void)snprintf(control->path, sizeof control->path, "%s", path);
  (void)unlink(path);
  control->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (control->listener < 0 ||
      bind(control->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
      listen(control->listener, 1) != 0) {
    die(path);
  }
}

static void let_go(control_t *control) {
  (void)close(control->client);
  control->client = -1;
}

void control_say(control_t *control, const char *format, ...) {
  char line[512];
  va_list arguments;
  if (control->client < 0) {
    return;
  }
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (send(control->client, line, strlen(line), MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
    let_go(control);
  }
}

const char *control_order(control_t *control) {
  static char order[256];
  if (control->listener < 0) {
    return NULL;
  }
  if (control->client < 0) {
    control->client = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (control->client < 0) {
      return NULL;
    }
  }
  const ssize_t got = recv(control->client, order, sizeof order - 1, 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    let_go(control);
  }
  if (got <= 0) {
    return NULL;
  }
  order[got] = '\0';
  return order;
}

void control_remove(control_t *control) {
  if (control->listener >= 0) {
    (void)unlink(control->path);
  }
}

uint64_t monotonic_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void sleep_us(uint32_t us) {
  const struct timespec time = {0, (long)us * 1000};
  (void)nanosleep(&time, NULL);
}

volatile bool host_ended = false;

static pid_t parent;

static void end(int signal_number) {
  (void)signal_number;
  host_ended = true;
}

void host_signals(void) {
  (void)signal(SIGINT, end);
  (void)signal(SIGTERM, end);
  (void)signal(SIGHUP, end);
  parent = getppid();
  (void)prctl(PR_SET_TIMERSLACK, 20000); /* ns; the default of 50 us is half of a sleep here */
}

bool host_orphaned(void) { return getppid() != parent; }
