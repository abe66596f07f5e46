/* A board as a library: `memory_run` sets its time, and its serial line is memory. */
#ifndef MEMORY_HOST_H
#define MEMORY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Power on, with the runner's arguments except the port. Call once per copy of the library. */
void memory_start(const char *given, uint64_t start_us);
/* Run the board until a time. */
void memory_run(uint64_t until_us);
/* Open or close the port on the host's side. */
void memory_open(bool open);
bool memory_plugged(void);
/* Send bytes to the board; receive the bytes that have arrived from it. */
void memory_give(const uint8_t *bytes, size_t count);
size_t memory_take(uint8_t *bytes, size_t most);
/* Orders and reports, as on the control socket of a runner (README.md). */
void memory_order(const char *order);
size_t memory_said(char *text, size_t most);

#endif
