/* Common part of both devices: handshake, sequence numbers, answers, states, watchdog, counters.
 *
 * The link's state controls motion: the code that owns the actuators checks `sa_link_active` and
 * moves them only while it is true, so a stop needs no further notification.
 */
#ifndef SA_LINK_H
#define SA_LINK_H

#include "frame.h"
#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of the board. `room` returns how many bytes `send` accepts without waiting. */
typedef struct {
  void *context;
  uint32_t (*now_us)(void *context);
  uint8_t (*room)(void *context);
  void (*send)(void *context, const uint8_t *bytes, uint8_t count);
} sa_board_t;

typedef struct {
  uint32_t accepted;
  uint16_t corrupt;
  uint16_t malformed;
  uint16_t lost;    /* gaps in the sequence */
  uint16_t stale;   /* control frames not newer than the last one */
  uint16_t refused; /* valid frames answered with an error */
  uint16_t skipped_states;
  uint32_t stalled; /* ticks in which a ramp waited for the coil bus */
  uint32_t writes;  /* writes to coils or valves */
  uint16_t write_errors;
} sa_counters_t;

typedef struct {
  sa_board_t board;
  uint8_t kind;
  uint8_t channels;
  uint8_t reset_cause;
  uint32_t boot_id;
  sa_receiver_t receiver;
  uint8_t state;
  uint8_t cause;
  uint8_t tx_sequence;
  uint8_t rx_sequence;
  bool rx_known;
  uint8_t control_sequence;
  uint32_t control_us; /* time of the last valid control frame */
  uint32_t state_us;   /* due time of the last state frame */
  sa_counters_t counters;
} sa_link_t;

void sa_link_init(sa_link_t *link, const sa_board_t *board, uint8_t kind, uint8_t channels,
                  uint8_t reset_cause, uint32_t boot_id);
bool sa_link_active(const sa_link_t *link); /* armed or running */

/* Process one byte; return true if `frame` is now a valid frame with the right seal. */
bool sa_link_byte(sa_link_t *link, uint8_t byte, sa_frame_t *frame);

/* Handle a frame of a type common to both devices. `arm_result` is the device's result for ARM.
 * Return false for any other type. */
bool sa_link_handle(sa_link_t *link, const sa_frame_t *frame, uint8_t arm_result);

/* Check a control frame, whose payload must have `count` bytes. Return SA_OK, the error sent as
 * answer, or SA_LINK_STALE (counted, not answered). */
#define SA_LINK_STALE 0xFFu
uint8_t sa_link_control(sa_link_t *link, const sa_frame_t *frame, uint8_t count);
void sa_link_control_accepted(sa_link_t *link, const sa_frame_t *frame);

void sa_link_answer(sa_link_t *link, const sa_frame_t *frame, uint8_t result);
void sa_link_stop(sa_link_t *link, uint8_t state, uint8_t cause);
void sa_link_watchdog(sa_link_t *link);

void sa_link_send(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t count);
/* Return true once per period; due times do not drift. */
bool sa_link_state_due(sa_link_t *link, uint32_t period_us);
/* Send a state frame, or skip it if the line has no room: a late state is useless. */
void sa_link_send_state(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t count);

#ifdef __cplusplus
}
#endif

#endif
