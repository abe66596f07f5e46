/* Rows of the tables written by vectors_to_c.py. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include "../core/frame.h"

typedef struct {
  const uint8_t *data;
  uint8_t count;
  uint16_t ccitt_false;
  uint16_t modbus;
} golden_crc_t;

typedef struct {
  const char *name;
  uint8_t type;
  uint8_t sequence;
  uint32_t key;
  const uint8_t *payload;
  uint8_t count;
  const uint8_t *encoded;
  uint8_t encoded_count;
} golden_frames_t;

typedef struct {
  const char *name;
  const uint8_t *bytes;
  uint16_t count;
  sa_rx_t verdict;
} golden_invalid_t;

#endif
