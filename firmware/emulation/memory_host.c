/* Replacement for host.c: a runner as a library, with time set by the caller.
 *
 * The runner executes as a coroutine until it sleeps; then the caller continues. Each copy of the
 * library is one board. */
#include "memory_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "host.h"

#define STACK_BYTES (256u * 1024u)
#define SAID_BYTES (1u << 20)
#define ORDERS 16
#define ARGUMENTS 16

static char stack[STACK_BYTES];
static ucontext_t runner;
static ucontext_t caller;
static char *arguments[ARGUMENTS];
static int argument_count;
static uint64_t now_us;
static uint64_t wake_us;
static port_t *line_of; /* port of the runner */
static bool plugged;
static bool opened;
static char said[SAID_BYTES];
static size_t said_bytes;
static char orders[ORDERS][64];
static int order_count;

volatile bool host_ended = false;

int runner_main(int argc, char **argv);

static void run_runner(void) { (void)runner_main(argument_count, arguments); }

void memory_start(const char *given, uint64_t start_us) {
  static char text[1024];
  (void)snprintf(text, sizeof text, "runner --port memory %s", given);
  argument_count = 0;
  for (char *word = strtok(text, " "); word != NULL && argument_count < ARGUMENTS;
       word = strtok(NULL, " ")) {
    arguments[argument_count++] = word;
  }
  now_us = wake_us = start_us;
  (void)getcontext(&runner);
  runner.uc_stack.ss_sp = stack;
  runner.uc_stack.ss_size = sizeof stack;
  runner.uc_link = &caller;
  makecontext(&runner, run_runner, 0);
}

void memory_run(uint64_t until_us) {
  while (!host_ended && wake_us <= until_us) {
    now_us = wake_us > now_us ? wake_us : now_us;
    (void)swapcontext(&caller, &runner);
  }
  now_us = until_us;
}

void memory_open(bool open) { opened = open && plugged; }

bool memory_plugged(void) { return plugged; }

void memory_give(const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count && opened; i++) {
    line_onto(line_of, &line_of->in, bytes[i]);
  }
}

size_t memory_take(uint8_t *bytes, size_t most) { return line_off(&line_of->out, bytes, most); }

void memory_order(const char *order) {
  if (order_count < ORDERS) {
    (void)snprintf(orders[order_count++], sizeof orders[0], "%s", order);
  }
}

size_t memory_said(char *text, size_t most) {
  const size_t count = said_bytes < most ? said_bytes : most;
  memcpy(text, said, count);
  said_bytes = 0;
  return count;
}

/* ---- Host functions that a runner calls ---- */

uint64_t monotonic_us(void) { return now_us; }

void sleep_us(uint32_t us) {
  wake_us = now_us + us;
  (void)swapcontext(&runner, &caller);
}

void host_signals(void) {}

bool host_orphaned(void) { return false; }

void port_create(port_t *port, const char *link) {
  (void)link;
  line_seed(port);
  line_of = port;
  plugged = true;
}

int port_watch(port_t *port) {
  const int change = (int)opened - (int)port->open;
  port->open = opened;
  return change;
}

size_t port_read(port_t *port, uint8_t *bytes, size_t most) {
  return line_off(&port->in, bytes, most);
}

void port_write(port_t *port, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count && opened; i++) {
    line_onto(port, &port->out, bytes[i]);
  }
}

bool port_order(port_t *port, const char *order) {
  if (strcmp(order, "line unplug") == 0) {
    plugged = opened = false;
    port->in.count = port->out.count = 0;
  } else if (strcmp(order, "line plug") == 0) {
    plugged = true;
  } else {
    return line_order(port, order);
  }
  return true;
}

void port_remove(port_t *port) { (void)port; }

void control_create(control_t *control, const char *path) {
  (void)control;
  (void)path;
}

void control_say(control_t *control, const char *format, ...) {
  va_list values;
  (void)control;
  va_start(values, format);
  const int count = vsnprintf(said + said_bytes, SAID_BYTES - said_bytes, format, values);
  va_end(values);
  if (count > 0 && said_bytes + (size_t)count + 1 < SAID_BYTES) {
    said_bytes += (size_t)count;
    said[said_bytes++] = '\n';
  }
}

const char *control_order(control_t *control) {
  static char order[sizeof orders[0]];
  (void)control;
  if (order_count == 0) {
    return NULL;
  }
  memcpy(order, orders[0], sizeof order);
  memmove(orders[0], orders[1], sizeof orders - sizeof orders[0]);
  order_count--;
  return order;
}

void control_remove(control_t *control) { (void)control; }
