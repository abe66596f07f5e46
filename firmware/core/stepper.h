/* Six stepper motors behind one slow coil bus.
 *
 * Positions are in microsteps, 16 per full step. The ramps run in microsteps at any speed. The bus
 * writes the newest position of each motor in turn, as fast as it can: a slow motor moves in single
 * microsteps, a fast motor in several microsteps at a time. The position of a motor is the one
 * last written to its coils. A ramp that is SA_MAX_LAG ahead of its coils waits.
 */
#ifndef SA_STEPPER_H
#define SA_STEPPER_H

#include "link.h"
#include "ramp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SA_MICROSTEPS 16         /* per full step */
#define SA_ELECTRICAL_CYCLE 64   /* microsteps: four full steps */
#define SA_COIL_FULL 4095        /* duty of a coil, twelve bits */
#define SA_MAX_LAG 8             /* microsteps: half a full step */
#define SA_STEPPER_STATE_US 10000ul
#define SA_SHIELD_OF(motor) ((uint8_t)((motor) / 2u))
#define SA_BUS_TRIES 3u          /* consecutive failed writes before a fault */

typedef struct {
  void *context;
  /* Wake a shield with all coils off; return false if it does not answer. */
  bool (*begin)(void *context, uint8_t shield);
  /* Set both coils of a motor at once, -SA_COIL_FULL..SA_COIL_FULL; return false on a bus error. */
  bool (*write)(void *context, uint8_t motor, int16_t coil_a, int16_t coil_b);
} sa_coils_t;

typedef struct {
  sa_ramp_limits_t limits;
  sa_ramp_t ramp;
  int32_t minimum;
  int32_t maximum;
  int32_t target;
  int32_t coil; /* position last written to the coils */
  uint8_t phase;    /* electrical angle at position 0 [microsteps] */
  uint8_t failures; /* consecutive failed writes */
} sa_motor_t;

typedef struct {
  sa_link_t link;
  sa_coils_t coils;
  sa_motor_t motors[SA_MOTORS];
  uint8_t configured; /* bit masks of motors */
  uint8_t zeroed;
  uint8_t energised;
  uint8_t stalled;    /* ramps that waited since the last state frame */
  uint8_t next;       /* next motor to write on the bus */
  uint8_t awake;      /* bit mask of awake shields */
  uint32_t tick_us;
} sa_stepper_t;

void sa_stepper_init(sa_stepper_t *stepper, const sa_board_t *board, const sa_coils_t *coils,
                     uint8_t reset_cause, uint32_t boot_id);
void sa_stepper_byte(sa_stepper_t *stepper, uint8_t byte);
/* Call as often as possible; writes the coils of at most one motor. Return whether more work is
 * waiting; if not, the caller may sleep for a millisecond. */
bool sa_stepper_poll(sa_stepper_t *stepper);
/* Compute the coil currents at a position: cosine and sine of the electrical angle. */
void sa_stepper_currents(int32_t position, int16_t *coil_a, int16_t *coil_b);

#ifdef __cplusplus
}
#endif

#endif
