/* Tests of the speed ramp: within its limits, exact, and close to the ideal time. */
#include "tests.h"

#include <math.h>
#include <stdlib.h>

#include "../core/ramp.h"
#include "check.h"

static void square_roots_are_rounded_down(void) {
  for (uint64_t root = 0; root <= 65535; root++) {
    CHECK_EQUAL(sa_square_root((uint32_t)(root * root)), root);
    CHECK_EQUAL(sa_square_root((uint32_t)(root * root + 2 * root)), root);
  }
}

typedef struct {
  uint32_t ticks;
  int64_t overshoot; /* 2^-16 microsteps */
} travel_t;

/* Travel to `target` and check the limits at every tick. */
static travel_t travel(sa_ramp_t *ramp, const sa_ramp_limits_t *limits, int32_t target) {
  travel_t done = {0, 0};
  const int32_t start = ramp->position;
  const int32_t sign = target >= start ? 1 : -1;
  while (ramp->position != target || ramp->fraction != 0 || ramp->velocity != 0) {
    const int32_t before = ramp->velocity;
    sa_ramp_tick(ramp, limits, target);
    CHECK(abs(ramp->velocity) <= limits->speed);
    CHECK(abs(ramp->velocity - before) <= limits->acceleration);
    const int64_t beyond = sign * (((int64_t)ramp->position - target) * 65536 + ramp->fraction);
    done.overshoot = beyond > done.overshoot ? beyond : done.overshoot;
    CHECK(++done.ticks < 400000);
  }
  return done;
}

/* Return the number of ticks of the ideal trapezoid or triangle. */
static double ideal_ticks(double distance, double speed, double acceleration) {
  const double seconds = distance * acceleration >= speed * speed
                             ? distance / speed + speed / acceleration
                             : 2.0 * sqrt(distance / acceleration);
  return seconds * SA_TICKS_PER_S;
}

static void targets_are_reached_without_overshoot_in_the_ideal_time(void) {
  static const uint16_t SPEEDS[] = {50, 679, 1500, 4000};
  static const uint32_t ACCELERATIONS[] = {600, 3395, 50000, 120000};
  static const int32_t TARGETS[] = {1, 2, 3, 7, 16, 100, 1001, 30000, -1, -5, -640, -30000};
  for (int s = 0; s < 4; s++) {
    for (int a = 0; a < 4; a++) {
      sa_ramp_limits_t limits;
      const uint32_t braking = 120000;
      CHECK(sa_ramp_limits(&limits, SPEEDS[s], ACCELERATIONS[a], braking));
      for (int t = 0; t < 12; t++) {
        sa_ramp_t ramp;
        sa_ramp_init(&ramp, 17);
        const travel_t done = travel(&ramp, &limits, 17 + TARGETS[t]);
        CHECK_EQUAL(done.overshoot, 0);
        const double ideal = ideal_ticks(abs(TARGETS[t]), SPEEDS[s], ACCELERATIONS[a]);
        CHECK(done.ticks <= ideal * 1.01 + 6.0);
        CHECK(done.ticks >= ideal * 0.99 - 3.0);
      }
    }
  }
}

static void targets_that_change_at_any_time_keep_the_limits(void) {
  sa_ramp_limits_t limits;
  sa_ramp_t ramp;
  uint32_t random = 7;
  CHECK(sa_ramp_limits(&limits, 1500, 6000, 60000));
  sa_ramp_init(&ramp, 0);
  int32_t target = 0;
  for (uint32_t i = 0; i < 1000000; i++) {
    random = random * 1664525u + 1013904223u;
    if ((random >> 24) < 8) {
      target = (int32_t)(random >> 8 & 0xFFF) - 0x800;
    }
    const int32_t before = ramp.velocity;
    sa_ramp_tick(&ramp, &limits, target);
    CHECK(abs(ramp.velocity) <= limits.speed);
    CHECK(abs(ramp.velocity - before) <= limits.acceleration);
    CHECK(abs(ramp.position) < 0x800 + 200); /* braking distance: 1500^2 / 12000 */
  }
  (void)travel(&ramp, &limits, 5);
}

static void a_moving_target_is_followed(void) {
  sa_ramp_limits_t limits;
  sa_ramp_t ramp;
  CHECK(sa_ramp_limits(&limits, 679, 3395, 17000));
  sa_ramp_init(&ramp, 0);
  int32_t worst = 0;
  for (int32_t tick = 0; tick < 5000; tick++) {
    const int32_t target = tick / 5 * 5; /* 500 microsteps/s in commands of 100 Hz */
    sa_ramp_tick(&ramp, &limits, target);
    if (tick > 500) {
      const int32_t lag = abs(target - ramp.position);
      worst = lag > worst ? lag : worst;
    }
  }
  /* The ramp must be able to stop at every command, so it lags by v^2 / 2 a = 37 microsteps. */
  CHECK(worst <= 45);
}

static void braking_ends_within_its_time(void) {
  for (uint16_t speed = 100; speed <= SA_MAX_SPEED; speed = (uint16_t)(speed + 100)) {
    sa_ramp_limits_t limits;
    sa_ramp_t ramp;
    const uint32_t braking = (1000ul * speed + SA_MAX_BRAKING_MS - 1) / SA_MAX_BRAKING_MS;
    CHECK(sa_ramp_limits(&limits, speed, braking, braking));
    CHECK(!sa_ramp_limits(&limits, speed, braking - 1, braking - 1));
    CHECK(sa_ramp_limits(&limits, speed, braking, braking));
    sa_ramp_init(&ramp, 0);
    for (int i = 0; i < 1000; i++) {
      sa_ramp_tick(&ramp, &limits, 100000);
    }
    CHECK_EQUAL(ramp.velocity, limits.speed);
    uint32_t ticks = 0;
    while (ramp.velocity != 0) {
      sa_ramp_brake(&ramp, &limits, false);
      ticks++;
    }
    CHECK(ticks * SA_TICK_US <= 1000ul * SA_MAX_BRAKING_MS + SA_TICK_US);
  }
}

static void impossible_limits_are_refused(void) {
  sa_ramp_limits_t limits;
  CHECK(!sa_ramp_limits(&limits, 0, 1000, 100000));
  CHECK(!sa_ramp_limits(&limits, SA_MAX_SPEED + 1, 100000, 120000));
  CHECK(!sa_ramp_limits(&limits, 100, 99, 100000));
  CHECK(!sa_ramp_limits(&limits, 100, 1000, 999));
  CHECK(!sa_ramp_limits(&limits, 100, 120001, 120001));
  CHECK(!sa_ramp_limits(&limits, 4000, 400, 120000)); /* a ramp of 20000 microsteps */
}

void run_ramp_tests(void) {
  RUN(square_roots_are_rounded_down);
  RUN(targets_are_reached_without_overshoot_in_the_ideal_time);
  RUN(targets_that_change_at_any_time_keep_the_limits);
  RUN(a_moving_target_is_followed);
  RUN(braking_ends_within_its_time);
  RUN(impossible_limits_are_refused);
}
