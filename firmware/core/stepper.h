/* Six stepper motors behind one slow coil bus.
 *
 * Positions are microsteps, 16 to a full step. The ramps run in microsteps at any speed; the bus
 * writes the newest position of one motor after the other as fast as it can, so that a
 * motor microsteps while it is slow and takes a few microsteps at a time while it is fast. What
 * counts as the motor's position is what its coils were told. A ramp that is SA_MAX_LAG ahead of
 * its coils waits.
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
#define SA_BUS_TRIES 3u          /* writes that fail in a row before the device is at fault */

typedef struct {
  void *context;
  /* Wake a shield with all coils off; false if it does not answer. */
  bool (*begin)(void *context, uint8_t shield);
  /* Set both coils of a motor, -SA_COIL_FULL..SA_COIL_FULL, at once; false if the bus failed. */
  bool (*write)(void *context, uint8_t motor, int16_t coil_a, int16_t coil_b);
} sa_coils_t;

typedef struct {
  sa_ramp_limits_t limits;
  sa_ramp_t ramp;
  int32_t minimum;
  int32_t maximum;
  int32_t target;
  int32_t coil; /* the position the coils were last set to */
  uint8_t phase;    /* electrical angle at position 0, microsteps */
  uint8_t failures; /* of writes, in a row */
} sa_motor_t;

typedef struct {
  sa_link_t link;
  sa_coils_t coils;
  sa_motor_t motors[SA_MOTORS];
  uint8_t configured; /* bit masks of motors */
  uint8_t zeroed;
  uint8_t energised;
  uint8_t stalled;    /* since the last state frame */
  uint8_t next;       /* motor whose turn at the bus it is */
  uint8_t awake;      /* shields that have been begun */
  uint32_t tick_us;
} sa_stepper_t;

void sa_stepper_init(sa_stepper_t *stepper, const sa_board_t *board, const sa_coils_t *coils,
                     uint8_t reset_cause, uint32_t boot_id);
void sa_stepper_byte(sa_stepper_t *stepper, uint8_t byte);
/* Call as often as possible; writes at most one motor's coils. Returns whether more are waiting:
 * if not, there is a millisecond to sleep. */
bool sa_stepper_poll(sa_stepper_t *stepper);
/* Coil currents at a position: sine and cosine of the electrical angle. */
void sa_stepper_currents(int32_t position, int16_t *coil_a, int16_t *coil_b);

#ifdef __cplusplus
}
#endif

#endif
