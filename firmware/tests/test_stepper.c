/* Tests of the motors: the coils follow the commands, even with a slow or failing bus. */
#include "tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../core/motor_shield.h"
#include "bench.h"
#include "check.h"

static const int32_t ZEROS[SA_MOTORS] = {0};

static void follow(bench_t *bench, const int32_t *targets, uint32_t us) {
  for (uint32_t t = 0; t < us; t += 10000u) {
    bench_targets(bench, targets);
    bench_run(bench, 10000u);
  }
}

static void currents_turn_by_one_microstep_each(void) {
  for (int32_t position = -200; position < 200; position++) {
    int16_t from[2];
    int16_t to[2];
    sa_stepper_currents(position, &from[0], &from[1]);
    sa_stepper_currents(position + 1, &to[0], &to[1]);
    CHECK_EQUAL(bench_microsteps(from, to), 1);
    const double size = hypot(from[0], from[1]);
    CHECK(fabs(size - SA_COIL_FULL) < 2.0);
  }
}

/* Return the level of a channel from its four registers, by the data sheet of the PCA9685. */
static double level(const uint8_t *at) {
  const int on = at[0] | (at[1] & 0x0F) << 8;
  const int off = at[2] | (at[3] & 0x0F) << 8;
  if ((at[3] & 0x10) != 0) {
    return 0.0;
  }
  return (at[1] & 0x10) != 0 ? 1.0 : ((off - on) & 4095) / 4096.0;
}

static void shield_bytes_are_the_currents(void) {
  for (uint8_t motor = 0; motor < SA_MOTORS; motor++) {
    for (int32_t position = 0; position < SA_ELECTRICAL_CYCLE; position++) {
      uint8_t bytes[SA_SHIELD_BYTES];
      int16_t a;
      int16_t b;
      sa_stepper_currents(position, &a, &b);
      sa_shield_coils(motor, a, b, bytes);
      CHECK_EQUAL(sa_shield_address(motor), 0x60 + motor / 2);
      /* Pins of the shield's ports: PWMA 8, AIN2 9, AIN1 10, BIN1 11, BIN2 12, PWMB 13 and
       * PWMA 2, AIN2 3, AIN1 4, BIN1 5, BIN2 6, PWMB 7. */
      CHECK_EQUAL(bytes[0], 6 + 4 * (motor % 2 == 0 ? 8 : 2));
      double pins[6];
      for (int i = 0; i < 6; i++) {
        pins[i] = level(bytes + 1 + 4 * i);
      }
      CHECK(pins[1] == 0.0 || pins[2] == 0.0);
      CHECK(pins[3] == 0.0 || pins[4] == 0.0);
      CHECK(fabs(pins[0] * (pins[2] - pins[1]) - a / 4095.0) < 1.1 / 4095.0);
      CHECK(fabs(pins[5] * (pins[3] - pins[4]) - b / 4095.0) < 1.1 / 4095.0);
    }
  }
}

static void targets_are_reached_on_the_coils(void) {
  static const int32_t TARGETS[SA_MOTORS] = {100, -100, 1, 0, 1867, -1528};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  bench.write_us = 590;
  follow(&bench, TARGETS, 4000000);
  for (int m = 0; m < 6; m++) {
    CHECK_EQUAL(bench.executed[m], TARGETS[m]);
    CHECK_EQUAL(bench.stepper.motors[m].coil, TARGETS[m]);
    CHECK_EQUAL(sa_get_i32(bench.state + 10 + 4 * m), TARGETS[m]);
  }
  CHECK_EQUAL(bench.state[7], 0); /* nothing moves */
  CHECK_EQUAL(bench.stepper.link.counters.stalled, 0);
}

/* A ramp that ignored the slow bus would lose steps here. */
static void a_slow_bus_stalls_the_ramp_and_loses_nothing(void) {
  static const int32_t TARGETS[SA_MOTORS] = {9000, -9000, 9000, -9000, 9000, -9000};
  bench_t bench;
  bench_armed_steppers(&bench, 4000, 50000, 120000);
  bench.write_us = 2400; /* 100 kHz: 14 ms per round, 8 microsteps each */
  for (int i = 0; i < 2000 && bench.executed[0] != 9000; i++) {
    follow(&bench, TARGETS, 10000);
    for (int m = 0; m < 6; m++) {
      CHECK_EQUAL(bench.executed[m], bench.stepper.motors[m].coil);
      CHECK(abs(bench.stepper.motors[m].ramp.position - bench.executed[m]) < 2 * SA_MAX_LAG);
    }
  }
  CHECK(bench.stepper.link.counters.stalled > 1000);
  follow(&bench, TARGETS, 100000);
  for (int m = 0; m < 6; m++) {
    CHECK_EQUAL(bench.executed[m], TARGETS[m]);
  }
}

static void silence_brakes_within_250_ms_of_the_last_frame(void) {
  static const int32_t FAR[SA_MOTORS] = {20000, -20000, 20000, -20000, 20000, -20000};
  static const uint32_t BUS_US[] = {0, 590, 2400};
  for (int bus = 0; bus < 3; bus++) {
    bench_t bench;
    bench_armed_steppers(&bench, 679, 3395, 17000);
    bench.write_us = BUS_US[bus];
    follow(&bench, FAR, 1000000);
    bench_targets(&bench, FAR);
    const uint32_t last = bench.now_us;
    bench_run(&bench, 199000);
    const int32_t before = bench.executed[0];
    CHECK(before > 500);
    bench_run(&bench, 250000 - (bench.now_us - last));
    int32_t stopped[SA_MOTORS];
    memcpy(stopped, bench.executed, sizeof stopped);
    CHECK(stopped[0] > before);
    bench_run(&bench, 500000);
    CHECK(memcmp(stopped, bench.executed, sizeof stopped) == 0);
    CHECK_EQUAL(bench.stepper.link.cause, SA_CAUSE_WATCHDOG);
    CHECK_EQUAL(sa_get_i32(bench.state + 10), stopped[0]);
    CHECK_EQUAL(bench.state[8], 0x3F); /* still zeroed: nothing was lost */
    /* Motion continues from here on command, and not before. */
    bench_send(&bench, SA_RESET, NULL, 0);
    bench_send(&bench, SA_ARM, NULL, 0);
    CHECK_EQUAL(bench.last_ack[2], SA_OK);
    bench_run(&bench, 100000);
    CHECK(memcmp(stopped, bench.executed, sizeof stopped) == 0);
  }
}

static void a_target_beyond_its_limit_moves_nothing(void) {
  static const int32_t TARGETS[SA_MOTORS] = {100, 100, 20001, 100, 100, 100};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  follow(&bench, ZEROS, 50000);
  bench_targets(&bench, TARGETS);
  CHECK_EQUAL(bench.last_ack[0], SA_TARGETS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LIMIT);
  bench_run(&bench, 100000);
  for (int m = 0; m < 6; m++) {
    CHECK_EQUAL(bench.executed[m], 0);
  }
}

static void arming_needs_limits_and_zero(void) {
  bench_t bench;
  bench_steppers(&bench);
  bench_hello(&bench);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY);
  bench_zero(&bench, 1, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY);
  bench_configure(&bench, 0, 679, 3395, 17000, -10, 10);
  bench_configure(&bench, 3, 679, 3395, 17000, -10, 10);
  bench_zero(&bench, 1, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY);
  bench_zero(&bench, 8, ZEROS);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  CHECK_EQUAL(bench.coil_writes, 2);
  const int32_t unused[SA_MOTORS] = {5, 1, 0, 5, 0, 0};
  bench_targets(&bench, unused);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LIMIT);
}

static void nonsense_limits_and_zeros_are_refused(void) {
  static const int32_t OUTSIDE[SA_MOTORS] = {11};
  bench_t bench;
  bench_steppers(&bench);
  bench_hello(&bench);
  bench_configure(&bench, 6, 679, 3395, 17000, -10, 10);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  bench_configure(&bench, 0, 679, 3395, 17000, 10, 10);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  bench_configure(&bench, 0, 679, 3395, 16000, -10, 10); /* brakes for 42 ms */
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  bench_configure(&bench, 0, 679, 3395, 17000, INT32_MIN, INT32_MAX);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  bench_configure(&bench, 0, 679, 3395, 17000, -10, 10);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  bench_zero(&bench, 1, OUTSIDE);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LIMIT);
  bench_zero(&bench, 0x41, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  bench_zero(&bench, 1, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  bench_configure(&bench, 0, 679, 3395, 17000, 1, 10); /* the present position would be outside */
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LIMIT);
  CHECK_EQUAL(bench.coil_writes, 1);
}

static void a_shield_that_falls_silent_is_a_fault(void) {
  static const int32_t FAR[SA_MOTORS] = {20000, -20000, 20000, -20000, 20000, -20000};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  follow(&bench, FAR, 500000);
  bench.shields_answer = 5; /* one of three */
  follow(&bench, FAR, 100000);
  CHECK_EQUAL(bench.state[4], SA_STATE_FAULT);
  CHECK_EQUAL(bench.state[5], SA_CAUSE_COIL_BUS);
  CHECK_EQUAL(bench.state[8], 0);
  for (int m = 0; m < 6; m++) {
    CHECK_EQUAL(sa_get_i32(bench.state + 10 + 4 * m), bench.executed[m]);
  }
  CHECK(bench.stepper.link.counters.write_errors <= 2 * SA_BUS_TRIES);
  bench_send(&bench, SA_RESET, NULL, 0);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY); /* zeroed only on command */
  bench_zero(&bench, 0x3F, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_COIL_BUS);
  bench.shields_answer = 7;
  bench_zero(&bench, 0x3F, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  CHECK_EQUAL(bench.begun, 3 + 2); /* the answering shields kept holding */
}

static void zeroing_a_motor_that_holds_does_not_turn_it(void) {
  static const int32_t THERE[SA_MOTORS] = {867, -528, 1, 0, 31, 33};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  follow(&bench, THERE, 2500000);
  bench_send(&bench, SA_DISARM, NULL, 0);
  bench_zero(&bench, 0x3F, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  CHECK(memcmp(bench.executed, THERE, sizeof THERE) == 0);
  bench_zero(&bench, 0x01, THERE);
  CHECK_EQUAL(bench.executed[0], THERE[0]);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  static const int32_t FURTHER[SA_MOTORS] = {868, 10, 10, 10, 10, 10};
  follow(&bench, FURTHER, 300000);
  CHECK_EQUAL(bench.executed[0], 868);
  for (int m = 1; m < 6; m++) {
    CHECK_EQUAL(bench.executed[m], THERE[m] + 10);
  }
}

static void zeroing_again_after_a_failed_write_does_not_turn_a_motor_that_holds(void) {
  static const int32_t THERE[SA_MOTORS] = {20, -20, 9, 0, 31, 33};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  follow(&bench, THERE, 500000);
  bench_send(&bench, SA_DISARM, NULL, 0);
  bench.shields_answer = 0;
  bench_zero(&bench, 0x3F, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_COIL_BUS);
  bench.shields_answer = 7;
  bench_zero(&bench, 0x3F, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  CHECK(memcmp(bench.executed, THERE, sizeof THERE) == 0);
}

static void a_single_failed_write_is_tried_again(void) {
  static const int32_t FAR[SA_MOTORS] = {20000, 20000};
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  for (int i = 0; i < 50; i++) {
    follow(&bench, FAR, 20000);
    bench.shields_answer = 6;
    while (bench.stepper.link.counters.write_errors == i) {
      bench_run(&bench, 100);
    }
    bench.shields_answer = 7;
  }
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_RUNNING);
  CHECK_EQUAL(bench.executed[0], bench.stepper.motors[0].coil);
  CHECK_EQUAL(bench.executed[1], bench.stepper.motors[1].coil);
}

static void released_motors_have_no_current_and_no_position(void) {
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  bench_send(&bench, SA_RELEASE, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_send(&bench, SA_DISARM, NULL, 0);
  CHECK(bench.currents[0][0] != 0); /* disarmed motors hold */
  bench_send(&bench, SA_RELEASE, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_OK);
  for (int m = 0; m < 6; m++) {
    CHECK(bench.currents[m][0] == 0 && bench.currents[m][1] == 0);
  }
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY);
}

void run_stepper_tests(void) {
  RUN(currents_turn_by_one_microstep_each);
  RUN(shield_bytes_are_the_currents);
  RUN(targets_are_reached_on_the_coils);
  RUN(a_slow_bus_stalls_the_ramp_and_loses_nothing);
  RUN(silence_brakes_within_250_ms_of_the_last_frame);
  RUN(a_target_beyond_its_limit_moves_nothing);
  RUN(arming_needs_limits_and_zero);
  RUN(nonsense_limits_and_zeros_are_refused);
  RUN(a_shield_that_falls_silent_is_a_fault);
  RUN(zeroing_a_motor_that_holds_does_not_turn_it);
  RUN(zeroing_again_after_a_failed_write_does_not_turn_a_motor_that_holds);
  RUN(a_single_failed_write_is_tried_again);
  RUN(released_motors_have_no_current_and_no_position);
}
