/* The computer's side of an emulated board: its serial port as a pseudo-terminal, and a control
 * socket that says what the actuators do and takes orders. */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_BYTES 16384u /* under way on a slow line, each way */

typedef struct {
  uint64_t due_us[LINE_BYTES];
  uint8_t bytes[LINE_BYTES];
  size_t first;
  size_t count;
} line_t;

typedef struct {
  int fd;    /* -1 while it is unplugged */
  bool open; /* somebody has the port open */
  char link[256];
  line_t in;
  line_t out;
  /* What is wrong with the line, both ways. */
  uint32_t delay_us;
  double loss;  /* of a byte, 0..1 */
  double noise; /* one wrong bit in a byte, 0..1 */
  uint64_t random;
} port_t;

/* Of a line that delays, loses and spoils bytes: put one on it, take off what has arrived. */
void line_seed(port_t *port);
void line_onto(port_t *port, line_t *line, uint8_t byte);
size_t line_off(line_t *line, uint8_t *bytes, size_t most);
/* "line delay MS", "line loss P", "line noise P": whether it was one. */
bool line_order(port_t *port, const char *order);

/* A pty whose other end is the symbolic link `link`; ends the program if that cannot be had. */
void port_create(port_t *port, const char *link);
/* To be called often. Returns +1 when the port has just been opened, -1 when closed. */
int port_watch(port_t *port);
size_t port_read(port_t *port, uint8_t *bytes, size_t most);
/* Bytes nobody reads are lost, as on a real port. */
void port_write(port_t *port, const uint8_t *bytes, size_t count);
/* "line delay MS", "line loss P", "line noise P", "line unplug", "line plug": whether it was one. */
bool port_order(port_t *port, const char *order);
void port_remove(port_t *port);

typedef struct {
  int listener; /* -1 without a socket */
  int client;   /* -1 while nobody is connected */
  char path[256];
} control_t;

void control_create(control_t *control, const char *path); /* NULL: none */
/* A packet to whoever is connected. One who does not read misses packets, never parts of one. */
void control_say(control_t *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The next order, or NULL. Accepts connections. */
const char *control_order(control_t *control);
void control_remove(control_t *control);

uint64_t monotonic_us(void);
void sleep_us(uint32_t us);
extern volatile bool host_ended; /* SIGINT, SIGTERM */
void host_signals(void);
bool host_orphaned(void); /* whoever started this program is gone */

/* The value behind `name` in the arguments, or `otherwise`; unknown arguments end the program. */
const char *option(int argc, char **argv, const char *name, const char *otherwise);

#endif
