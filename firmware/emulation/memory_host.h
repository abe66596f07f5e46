/* A board as a library: its time is what `memory_run` is given, its line is memory. */
#ifndef MEMORY_HOST_H
#define MEMORY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Power on; arguments of the runner without its port. Once for each copy of the library. */
void memory_start(const char *given, uint64_t start_us);
/* Let time pass until then. */
void memory_run(uint64_t until_us);
/* The host opens or closes the port. */
void memory_open(bool open);
bool memory_plugged(void);
/* Bytes of the host; and for the host, as many as have arrived. */
void memory_give(const uint8_t *bytes, size_t count);
size_t memory_take(uint8_t *bytes, size_t most);
/* As on the control socket of a runner (README.md). */
void memory_order(const char *order);
size_t memory_said(char *text, size_t most);

#endif
