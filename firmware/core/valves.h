/* Sixty on-off valves of thirty muscles: output 2 m inflates muscle m, output 2 m + 1 deflates it.
 *
 * A command sets the remaining open time of each output (0: close, SA_GO_ON: continue the previous
 * time) and has a batch number. A repeated batch does not restart the times. The device measures
 * open times in milliseconds and limits them to a cap. The two valves of a muscle are never open
 * together, and one opens only after the other has been closed for the dead time.
 */
#ifndef SA_VALVES_H
#define SA_VALVES_H

#include "link.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SA_VALVE_STATE_US 20000ul
#define SA_MOST_OPEN_MS 10000u /* largest configurable cap */
#define SA_MOST_DEAD_MS 200u
#define SA_GO_ON 0xFFFFu

typedef struct {
  void *context;
  void (*write)(void *context, const uint8_t open[SA_VALVE_BYTES]);
} sa_outputs_t;

typedef struct {
  sa_link_t link;
  sa_outputs_t outputs;
  uint16_t cap_ms;
  uint8_t dead_ms;
  bool configured;
  bool has_batch; /* a batch has arrived since arming */
  uint16_t batch;
  uint16_t left_ms[SA_VALVES];  /* remaining open time */
  uint8_t closed_ms[SA_VALVES]; /* time since closing, at most SA_MOST_DEAD_MS */
  uint8_t open[SA_VALVE_BYTES];
  uint32_t tick_us;
} sa_valves_t;

void sa_valves_init(sa_valves_t *valves, const sa_board_t *board, const sa_outputs_t *outputs,
                    uint8_t reset_cause, uint32_t boot_id);
void sa_valves_byte(sa_valves_t *valves, uint8_t byte);
void sa_valves_poll(sa_valves_t *valves); /* call at least every millisecond */

#ifdef __cplusplus
}
#endif

#endif
