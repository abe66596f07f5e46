/* Simulated faults of a serial line, and command line options of the runners. */
#include <stdio.h>
#include <string.h>

#include "host.h"

void line_seed(port_t *port) { port->random = 88172645463325252u; }

static double draw(port_t *port) {
  port->random ^= port->random << 13;
  port->random ^= port->random >> 7;
  port->random ^= port->random << 17;
  return (double)(port->random >> 11) / 9007199254740992.0;
}

void line_onto(port_t *port, line_t *line, uint8_t byte) {
  if (line->count == LINE_BYTES || (port->loss > 0.0 && draw(port) < port->loss)) {
    return;
  }
  if (port->noise > 0.0 && draw(port) < port->noise) {
    byte ^= (uint8_t)(1u << (int)(8.0 * draw(port)));
  }
  const size_t at = (line->first + line->count++) % LINE_BYTES;
  line->bytes[at] = byte;
  line->due_us[at] = monotonic_us() + port->delay_us;
}

size_t line_off(line_t *line, uint8_t *bytes, size_t most) {
  size_t count = 0;
  while (count < most && line->count > 0 && line->due_us[line->first] <= monotonic_us()) {
    bytes[count++] = line->bytes[line->first];
    line->first = (line->first + 1) % LINE_BYTES;
    line->count--;
  }
  return count;
}

bool line_order(port_t *port, const char *order) {
  double value;
  if (sscanf(order, "line delay %lf", &value) == 1) {
    port->delay_us = (uint32_t)(1000.0 * value);
  } else if (sscanf(order, "line loss %lf", &value) == 1) {
    port->loss = value;
  } else if (sscanf(order, "line noise %lf", &value) == 1) {
    port->noise = value;
  } else {
    return false;
  }
  return true;
}

const char *option(int argc, char **argv, const char *name, const char *otherwise) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], name) == 0) {
      return argv[i + 1];
    }
  }
  return otherwise;
}
