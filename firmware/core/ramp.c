#include "ramp.h"

uint32_t sa_square_root(uint32_t value) {
  uint32_t root = 0;
  uint32_t bit = 1ul << 30;
  while (bit > value) {
    bit >>= 2;
  }
  while (bit != 0u) {
    if (value >= root + bit) {
      value -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
    bit >>= 2;
  }
  return root;
}

/* Convert microsteps/s^2 to 2^-16 microsteps per tick^2: 65536 / 500^2 = 32768 / 125000. */
static int32_t per_tick_squared(uint32_t acceleration) {
  return (int32_t)(acceleration * 4096ul / 15625ul);
}

bool sa_ramp_limits(sa_ramp_limits_t *limits, uint16_t speed, uint32_t acceleration,
                    uint32_t braking) {
  if (speed == 0u || speed > SA_MAX_SPEED || acceleration < SA_MIN_ACCELERATION ||
      acceleration > SA_MAX_ACCELERATION || braking < acceleration ||
      braking > SA_MAX_ACCELERATION || 1000ul * speed > SA_MAX_BRAKING_MS * braking) {
    return false;
  }
  limits->speed = (int32_t)(((uint32_t)speed << 16) / SA_TICKS_PER_S);
  limits->acceleration = per_tick_squared(acceleration);
  limits->braking = per_tick_squared(braking);
  /* v^2 / 2 a of the rounded numbers in 2^-8 microsteps; below, plus the distance of one tick. */
  const uint32_t scaled = (uint32_t)limits->speed >> 4;
  const uint32_t reach = scaled * scaled / (2u * (uint32_t)limits->acceleration);
  if (reach > SA_MAX_BRAKING_STEPS << 8) {
    return false;
  }
  limits->reach = (int32_t)(reach >> 8) + 2 + (limits->speed >> 16);
  return true;
}

void sa_ramp_init(sa_ramp_t *ramp, int32_t position) {
  ramp->position = position;
  ramp->fraction = 0;
  ramp->velocity = 0;
}

static void advance(sa_ramp_t *ramp) {
  const int32_t sum = (int32_t)ramp->fraction + ramp->velocity;
  ramp->fraction = (uint16_t)((uint32_t)sum & 0xFFFFu);
  ramp->position += (int16_t)((uint32_t)sum >> 16); /* rounds down; avoids a slow division */
}

static int32_t towards(int32_t from, int32_t to, int32_t most) {
  return to > from + most ? from + most : to < from - most ? from - most : to;
}

/* Return the largest speed of the next tick from which a deceleration of `a` per tick stops within
 * `distance` (2^-16 microsteps, >= 0): v = sqrt(2 a d) - a / 2. This rule is consistent from tick
 * to tick: after one tick, sqrt(2 a (d - v)) - a / 2 = v - a. */
static int32_t speed_to_stop_within(int32_t distance, int32_t a) {
  if (distance <= a) {
    return distance; /* reaches the target in this tick and stops in the next */
  }
  const uint32_t half = ((uint32_t)a + 1u) >> 1;
  /* Long distances are scaled by 2^-8 under the root, so that 16000 microsteps fit 32 bits. */
  const uint32_t twice = 2u * (uint32_t)a;
  const uint32_t root = distance < 65536 ? sa_square_root(twice * (uint32_t)distance)
                                         : sa_square_root(twice * ((uint32_t)distance >> 8)) << 4;
  return root > half ? (int32_t)(root - half) : 0;
}

void sa_ramp_tick(sa_ramp_t *ramp, const sa_ramp_limits_t *limits, int32_t target) {
  const int32_t whole = target - ramp->position;
  int32_t wanted;
  if (whole > limits->reach) {
    wanted = limits->speed;
  } else if (whole < -limits->reach) {
    wanted = -limits->speed;
  } else {
    const int32_t distance = whole * 65536 - (int32_t)ramp->fraction;
    wanted = distance < 0 ? -speed_to_stop_within(-distance, limits->acceleration)
                          : speed_to_stop_within(distance, limits->acceleration);
    wanted = wanted > limits->speed ? limits->speed : wanted;
    wanted = wanted < -limits->speed ? -limits->speed : wanted;
  }
  ramp->velocity = towards(ramp->velocity, wanted, limits->acceleration);
  advance(ramp);
}

void sa_ramp_brake(sa_ramp_t *ramp, const sa_ramp_limits_t *limits, bool held) {
  ramp->velocity = towards(ramp->velocity, 0, limits->braking);
  if (!held) {
    advance(ramp);
  }
}
