/* Host side of an emulated board: its serial port as a pseudo-terminal, and a control socket that
 * reports actuator motion and accepts orders. */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_BYTES 16384u /* capacity of a slow line in each direction */

typedef struct {
  uint64_t due_us[LINE_BYTES];
  uint8_t bytes[LINE_BYTES];
  size_t first;
  size_t count;
} line_t;

typedef struct {
  int fd;    /* -1 while unplugged */
  bool open; /* a program has the port open */
  char link[256];
  line_t in;
  line_t out;
  /* Faults of the line in both directions. */
  uint32_t delay_us;
  double loss;  /* probability that a byte is lost, 0..1 */
  double noise; /* probability of one wrong bit in a byte, 0..1 */
  uint64_t random;
} port_t;

/* A line that delays, loses and corrupts bytes: put a byte onto it; take off arrived bytes. */
void line_seed(port_t *port);
void line_onto(port_t *port, line_t *line, uint8_t byte);
size_t line_off(line_t *line, uint8_t *bytes, size_t most);
/* Handle "line delay MS", "line loss P", "line noise P"; return whether it was such an order. */
bool line_order(port_t *port, const char *order);

/* Create a pty with the symbolic link `link` to its other end; end the program on failure. */
void port_create(port_t *port, const char *link);
/* Call often. Return +1 if the port has just been opened, -1 if it has just been closed. */
int port_watch(port_t *port);
size_t port_read(port_t *port, uint8_t *bytes, size_t most);
/* Write bytes; they are lost if no program has the port open, as on a real port. */
void port_write(port_t *port, const uint8_t *bytes, size_t count);
/* Handle the orders of `line_order`, "line unplug" and "line plug"; return whether it was one. */
bool port_order(port_t *port, const char *order);
void port_remove(port_t *port);

typedef struct {
  int listener; /* -1 without a control socket */
  int client;   /* -1 while no client is connected */
  char path[256];
} control_t;

void control_create(control_t *control, const char *path); /* NULL: no socket */
/* Send a packet to the client. A slow client misses whole packets, never parts of one. */
void control_say(control_t *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Accept connections and return the next order, or NULL. */
const char *control_order(control_t *control);
void control_remove(control_t *control);

uint64_t monotonic_us(void);
void sleep_us(uint32_t us);
extern volatile bool host_ended; /* SIGINT, SIGTERM */
void host_signals(void);
bool host_orphaned(void); /* the parent process has ended */

/* Return the value after `name` in the arguments, or `otherwise`. */
const char *option(int argc, char **argv, const char *name, const char *otherwise);

#endif
