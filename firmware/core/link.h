/* What both devices do alike: handshake, sequence numbers, answers, states, watchdog, counters.
 *
 * The state rules the machine: whoever owns actuators looks at `sa_link_active` and moves them
 * only while it is true. Nothing else has to be told of a stop.
 */
#ifndef SA_LINK_H
#define SA_LINK_H

#include "frame.h"
#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The board. `room` says how many bytes `send` takes without waiting. */
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
  uint16_t stale;   /* control frames that are no newer than the last */
  uint16_t refused; /* valid frames answered with an error */
  uint16_t skipped_states;
  uint32_t stalled; /* ticks in which a ramp waited for the coil bus */
  uint32_t writes;  /* of coils or valves */
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
  uint32_t control_us; /* when the last valid control frame came */
  uint32_t state_us;   /* when the last state frame was due */
  sa_counters_t counters;
} sa_link_t;

void sa_link_init(sa_link_t *link, const sa_board_t *board, uint8_t kind, uint8_t channels,
                  uint8_t reset_cause, uint32_t boot_id);
bool sa_link_active(const sa_link_t *link); /* armed or running */

/* Take one byte; true if `frame` is a valid frame of the right seal. */
bool sa_link_byte(sa_link_t *link, uint8_t byte, sa_frame_t *frame);

/* Handle a frame that both devices know. `arm_result` is what the machine says to being armed.
 * Returns false if the type is not one of these. */
bool sa_link_handle(sa_link_t *link, const sa_frame_t *frame, uint8_t arm_result);

/* Judge a control frame of `count` bytes: SA_OK, or the error it was answered with, or
 * SA_LINK_STALE (counted, not answered). */
#define SA_LINK_STALE 0xFFu
uint8_t sa_link_control(sa_link_t *link, const sa_frame_t *frame, uint8_t count);
void sa_link_control_accepted(sa_link_t *link, const sa_frame_t *frame);

void sa_link_answer(sa_link_t *link, const sa_frame_t *frame, uint8_t result);
void sa_link_stop(sa_link_t *link, uint8_t state, uint8_t cause);
void sa_link_watchdog(sa_link_t *link);

void sa_link_send(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t count);
/* True once a period; the time of the next one does not drift. */
bool sa_link_state_due(sa_link_t *link, uint32_t period_us);
/* Send a state frame unless the line has no room for it: a late state is worth nothing. */
void sa_link_send_state(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t count);

#ifdef __cplusplus
}
#endif

#endif
