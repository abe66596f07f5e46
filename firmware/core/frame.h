/* Frames: [type][sequence][payload][seal, 2 bytes][CRC, 2 bytes], COBS-encoded, ended by 0x00.
 *
 * The CRC is CRC-16/CCITT-FALSE over all preceding bytes. The seal is a second CRC with another
 * polynomial (CRC-16/MODBUS) over a 32-bit key, type, sequence and payload. The key is the
 * device's boot id for frames that may cause motion, and 0 for all others. A sealed frame can
 * therefore move only the device for which it was made, and only until that device restarts. A
 * corrupt frame passes both checks with a probability of 2^-31 instead of 2^-16.
 */
#ifndef SA_FRAME_H
#define SA_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SA_MAX_PAYLOAD 128u
#define SA_FRAME_OVERHEAD 6u /* type, sequence, seal, CRC */
#define SA_MAX_RAW (SA_MAX_PAYLOAD + SA_FRAME_OVERHEAD)
#define SA_MAX_ENCODED (SA_MAX_RAW + 2u) /* one COBS byte (frames are shorter than 254), delimiter */

uint16_t sa_crc_ccitt(uint16_t crc, const uint8_t *data, uint8_t count); /* start with 0xFFFF */
uint16_t sa_crc_modbus(uint16_t crc, const uint8_t *data, uint8_t count); /* start with 0xFFFF */

/* Encode `count` (< 254) bytes without delimiter; return the length, at most count + 1. */
uint8_t sa_cobs_encode(const uint8_t *data, uint8_t count, uint8_t *out);
/* Decode in place; return the number of bytes, or -1 if `data` is not valid COBS. */
int16_t sa_cobs_decode(uint8_t *data, uint8_t count);

/* Write a frame with its delimiter to `out` (SA_MAX_ENCODED bytes); return its length. */
uint8_t sa_frame_encode(uint8_t type, uint8_t sequence, const uint8_t *payload, uint8_t count,
                        uint32_t key, uint8_t *out);

typedef struct {
  uint8_t type;
  uint8_t sequence;
  uint8_t count; /* bytes of payload */
  const uint8_t *payload;
} sa_frame_t;

typedef enum {
  SA_RX_NOTHING, /* more bytes are needed */
  SA_RX_FRAME,
  SA_RX_MALFORMED, /* invalid COBS, too long or too short */
  SA_RX_CORRUPT    /* wrong CRC or seal */
} sa_rx_t;

typedef struct {
  uint8_t buffer[SA_MAX_ENCODED];
  uint8_t count;
  bool overflow;
} sa_receiver_t;

/* Returns the seal key for frames of a type. */
typedef uint32_t (*sa_key_of_t)(const void *context, uint8_t type);

void sa_receiver_init(sa_receiver_t *receiver);
/* Process one received byte. `frame` points into the receiver and is valid until the next byte. */
sa_rx_t sa_receiver_byte(sa_receiver_t *receiver, uint8_t byte, sa_key_of_t key_of,
                         const void *context, sa_frame_t *frame);

/* Little-endian fields. */
uint16_t sa_get_u16(const uint8_t *at);
uint32_t sa_get_u32(const uint8_t *at);
int32_t sa_get_i32(const uint8_t *at);
uint8_t *sa_put_u16(uint8_t *at, uint16_t value); /* both return the address behind the field */
uint8_t *sa_put_u32(uint8_t *at, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif
