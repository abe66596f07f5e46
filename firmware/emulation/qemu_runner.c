/* Run the STM32 binary in QEMU's netduinoplus2 (an STM32F405), USART1 on a pseudo-terminal.
 *
 *   qemu_runner --elf FILE --port LINK [--control SOCKET] [--seed N] [--qemu PROGRAM]
 *
 * QEMU emulates no GPIO here, but logs each write to it; valve states follow from the writes to the
 * set/reset registers. --seed: memory word for the firmware's boot id (this machine has no random
 * number generator); default: the time. Control socket: see firmware/emulation/README.md.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

typedef struct {
  port_t port;
  control_t control;
  int line;    /* USART1 */
  int log;     /* QEMU's log of missing peripherals */
  int monitor; /* orders to QEMU */
  pid_t qemu;
  char text[4096];
  size_t used;
  uint32_t pins[4]; /* ports D, E, C, B, in the order of the firmware's outputs */
  uint64_t writes;
} machine_t;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void pair(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    die("socketpair");
  }
}

static void start(machine_t *machine, const char *qemu, const char *elf, const char *seed) {
  int line[2];
  int monitor[2];
  int log[2];
  char line_option[64];
  char monitor_option[64];
  char log_option[32];
  char seed_option[96];
  pair(line);
  pair(monitor);
  if (pipe(log) != 0) {
    die("pipe");
  }
  (void)snprintf(line_option, sizeof line_option, "socket,id=line,fd=%d", line[1]);
  (void)snprintf(monitor_option, sizeof monitor_option, "socket,id=mon,fd=%d", monitor[1]);
  (void)snprintf(log_option, sizeof log_option, "/dev/fd/%d", log[1]);
  (void)snprintf(seed_option, sizeof seed_option,
                 "loader,addr=0x2001fff0,data=%s,data-len=4", seed);
  const pid_t self = getpid();
  machine->qemu = fork();
  if (machine->qemu == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) {
      _exit(1);
    }
    (void)close(line[0]);
    (void)close(monitor[0]);
    (void)close(log[0]);
    (void)execlp(qemu, qemu, "-M", "netduinoplus2", "-display", "none", "-nodefaults", "-kernel",
                 elf, "-device", seed_option, "-chardev", line_option, "-serial", "chardev:line",
                 "-chardev", monitor_option, "-mon", "chardev=mon", "-d", "unimp", "-D",
                 log_option, (char *)NULL);
    perror(qemu);
    _exit(127);
  }
  (void)close(line[1]);
  (void)close(monitor[1]);
  (void)close(log[1]);
  machine->line = line[0];
  machine->monitor = monitor[0];
  machine->log = log[0];
  (void)fcntl(machine->line, F_SETFL, O_NONBLOCK);
  (void)fcntl(machine->monitor, F_SETFL, O_NONBLOCK);
  (void)fcntl(machine->log, F_SETFL, O_NONBLOCK);
}

static void say_valves(machine_t *machine) {
  const uint32_t b = machine->pins[3];
  const uint64_t mask = machine->pins[0] | (uint64_t)machine->pins[1] << 16 |
                        (uint64_t)machine->pins[2] << 32 | (uint64_t)(b & 3) << 46 |
                        (uint64_t)(b >> 4) << 48;
  control_say(&machine->control, "V %llu %016llx", (unsigned long long)monotonic_us(),
              (unsigned long long)mask);
}

/* "GPIOD: unimplemented device write (size 4, offset 0x18, value 0x00010000)" */
static void take_line(machine_t *machine, const char *text) {
  static const char PORTS[] = "DECB";
  char port;
  unsigned size;
  unsigned offset;
  unsigned value;
  if (sscanf(text, "GPIO%c: unimplemented device write (size %u, offset %x, value %x", &port,
             &size, &offset, &value) != 4 ||
      offset != 0x18) {
    return;
  }
  const char *found = strchr(PORTS, port);
  if (port == '\0' || found == NULL) {
    return;
  }
  uint32_t *pins = &machine->pins[found - PORTS];
  const uint32_t before = *pins;
  *pins = (*pins & ~(value >> 16)) | (value & 0xFFFFu); /* set wins over reset */
  machine->writes++;
  if (*pins != before) {
    say_valves(machine);
  }
}

static void take_log(machine_t *machine) {
  for (;;) {
    const ssize_t got = read(machine->log, machine->text + machine->used,
                             sizeof machine->text - 1 - machine->used);
    if (got <= 0) {
      return;
    }
    machine->used += (size_t)got;
    machine->text[machine->used] = '\0';
    char *begin = machine->text;
    for (char *end; (end = strchr(begin, '\n')) != NULL; begin = end + 1) {
      *end = '\0';
      take_line(machine, begin);
    }
    machine->used -= (size_t)(begin - machine->text);
    memmove(machine->text, begin, machine->used);
    machine->used = machine->used == sizeof machine->text - 1 ? 0 : machine->used;
  }
}

static void take_orders(machine_t *machine) {
  char answers[1024];
  while (read(machine->monitor, answers, sizeof answers) > 0) {
  }
  const char *order = control_order(&machine->control);
  if (order == NULL) {
    return;
  }
  if (strcmp(order, "status") == 0) {
    control_say(&machine->control, "S %llu writes %llu", (unsigned long long)monotonic_us(),
                (unsigned long long)machine->writes);
  } else if (strcmp(order, "reset") == 0) {
    static const char RESET[] = "system_reset\n";
    memset(machine->pins, 0, sizeof machine->pins); /* pins become inputs, the valves close */
    say_valves(machine);
    (void)!write(machine->monitor, RESET, sizeof RESET - 1);
    control_say(&machine->control, "R %llu 0", (unsigned long long)monotonic_us());
  } else if (strcmp(order, "quit") == 0) {
    host_ended = true;
  } else if (!port_order(&machine->port, order)) {
    control_say(&machine->control, "? %s", order);
  }
}

static void carry(machine_t *machine) {
  uint8_t bytes[512];
  (void)port_watch(&machine->port);
  const size_t count = port_read(&machine->port, bytes, sizeof bytes);
  if (count > 0) {
    (void)!write(machine->line, bytes, count);
  }
  ssize_t got;
  while ((got = read(machine->line, bytes, sizeof bytes)) > 0) {
    port_write(&machine->port, bytes, (size_t)got);
  }
}

/* QEMU blocks on a full log pipe, so the pipe must be read until QEMU ends. */
static void stop(machine_t *machine) {
  (void)kill(machine->qemu, SIGTERM);
  for (int ms = 0; waitpid(machine->qemu, NULL, WNOHANG) == 0; ms++) {
    if (ms == 1000) {
      (void)kill(machine->qemu, SIGKILL);
    }
    take_log(machine);
    sleep_us(1000);
  }
}

int main(int argc, char **argv) {
  static machine_t machine;
  const char *elf = option(argc, argv, "--elf", NULL);
  const char *link = option(argc, argv, "--port", NULL);
  if (elf == NULL || link == NULL) {
    fprintf(stderr, "usage: qemu_runner --elf FILE --port LINK [--control SOCKET] [--seed N]"
                    " [--qemu PROGRAM]\n");
    return 2;
  }
  char seed[16];
  (void)snprintf(seed, sizeof seed, "%u", (unsigned)(uint32_t)monotonic_us());
  host_signals();
  (void)signal(SIGPIPE, SIG_IGN);
  start(&machine, option(argc, argv, "--qemu", "qemu-system-arm"), elf,
        option(argc, argv, "--seed", seed));
  port_create(&machine.port, link);
  control_create(&machine.control, option(argc, argv, "--control", NULL));
  printf("ready\n");
  fflush(stdout);
  int status = 0;
  bool runs = true;
  while (runs && !host_ended && !host_orphaned()) {
    struct pollfd events[3] = {
        {machine.line, POLLIN, 0}, {machine.log, POLLIN, 0}, {machine.port.fd, POLLIN, 0}};
    /* A port that no program has open always reports POLLHUP, so do not wait on it. */
    (void)poll(events, machine.port.open ? 3 : 2, 1);
    take_orders(&machine);
    carry(&machine);
    take_log(&machine);
    runs = waitpid(machine.qemu, &status, WNOHANG) == 0;
  }
  if (runs) {
    stop(&machine);
  }
  port_remove(&machine.port);
  control_remove(&machine.control);
  return runs ? 0 : 1;
}
