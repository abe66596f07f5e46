/* Trapezoidal speed ramp of one motor towards an absolute target that may change at any time.
 *
 * All numbers are fixed-point integers; time advances in ticks of SA_TICK_US; speeds are in 2^-16
 * microsteps per tick.
 */
#ifndef SA_RAMP_H
#define SA_RAMP_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SA_TICK_US 2000u
#define SA_TICKS_PER_S 500u
#define SA_MAX_SPEED 4000u        /* microsteps/s: 8 per tick */
#define SA_MIN_ACCELERATION 100u  /* microsteps/s^2 */
#define SA_MAX_ACCELERATION 120000ul
#define SA_MAX_BRAKING_STEPS 16000ul
#define SA_MAX_BRAKING_MS 40u     /* watchdog 200 ms + 40 ms + one tick stays within 250 ms */

typedef struct {
  int32_t speed;        /* limits, all > 0 */
  int32_t acceleration;
  int32_t braking;      /* deceleration of a stop; at least `acceleration` */
  int32_t reach;        /* distance in steps within which braking may begin */
} sa_ramp_limits_t;

typedef struct {
  int32_t position; /* whole microsteps ... */
  uint16_t fraction; /* ... and 2^-16 of one, upwards */
  int32_t velocity;
} sa_ramp_t;

/* Convert limits in microsteps/s and microsteps/s^2. Return false if one is out of range, if the
 * ramp is too long for the arithmetic, or if a stop would take more than SA_MAX_BRAKING_MS. */
bool sa_ramp_limits(sa_ramp_limits_t *limits, uint16_t speed, uint32_t acceleration,
                    uint32_t braking);
void sa_ramp_init(sa_ramp_t *ramp, int32_t position);
void sa_ramp_tick(sa_ramp_t *ramp, const sa_ramp_limits_t *limits, int32_t target);
/* One tick of a stop. If `held`, only reduce the speed, because the coils lag too far behind. */
void sa_ramp_brake(sa_ramp_t *ramp, const sa_ramp_limits_t *limits, bool held);
uint32_t sa_square_root(uint32_t value); /* rounded down */

#ifdef __cplusplus
}
#endif

#endif
