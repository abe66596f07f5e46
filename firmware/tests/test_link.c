/* Tests of the part common to both devices, run on the steppers. */
#include "tests.h"

#include <string.h>

#include "bench.h"
#include "check.h"

static const int32_t ZEROS[SA_MOTORS] = {0};

static void hello_is_answered_with_version_kind_and_boot_id(void) {
  bench_t bench;
  bench_steppers(&bench);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_BOOT);
  bench_hello(&bench);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_IDLE);
  CHECK_EQUAL(bench.hello[0], SA_PROTOCOL_VERSION);
  CHECK_EQUAL(bench.hello[1], SA_KIND_STEPPERS);
  CHECK_EQUAL(bench.hello[4], SA_MOTORS);
  CHECK_EQUAL(sa_get_u32(bench.hello + 6), BENCH_BOOT_ID);
}

static void another_version_is_told_ours_and_stays_out(void) {
  bench_t bench;
  const uint8_t version = SA_PROTOCOL_VERSION + 1u;
  bench_steppers(&bench);
  bench_send(&bench, SA_HELLO, &version, 1);
  CHECK_EQUAL(bench.hello[0], SA_PROTOCOL_VERSION);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VERSION);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_BOOT);
}

static void nothing_is_set_before_the_handshake(void) {
  bench_t bench;
  bench_steppers(&bench);
  bench_configure(&bench, 0, 679, 3395, 17000, -10, 10);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_zero(&bench, 1, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_targets(&bench, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  CHECK_EQUAL(bench.coil_writes, 0);
}

static void frames_of_an_earlier_boot_are_worth_nothing(void) {
  bench_t bench;
  uint8_t bytes[SA_MAX_ENCODED];
  bench_armed_steppers(&bench, 679, 3395, 17000);
  const uint32_t acks = bench.acks;
  bench_send(&bench, SA_DISARM, NULL, 0);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_IDLE);
  const uint8_t count = sa_frame_encode(SA_ARM, 100, NULL, 0, BENCH_BOOT_ID - 1u, bytes);
  bench_bytes(&bench, bytes, count);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_IDLE);
  CHECK_EQUAL(bench.acks, acks + 1);
  CHECK_EQUAL(bench.stepper.link.counters.corrupt, 1);
}

static void a_stop_frame_stops_until_reset(void) {
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  bench_send(&bench, SA_STOP, NULL, 0);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_STOPPED);
  CHECK_EQUAL(bench.stepper.link.cause, SA_CAUSE_STOP_FRAME);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_targets(&bench, ZEROS);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_STATE);
  bench_send(&bench, SA_RESET, NULL, 0);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_IDLE);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_ARMED);
}

static void silence_stops_after_200_ms(void) {
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  bench_run(&bench, 199000);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_ARMED);
  bench_run(&bench, 1200);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_STOPPED);
  CHECK_EQUAL(bench.stepper.link.cause, SA_CAUSE_WATCHDOG);
}

static void only_valid_control_frames_feed_the_watchdog(void) {
  static const int32_t BEYOND[SA_MOTORS] = {20001};
  const uint8_t token[4] = {1, 2, 3, 4};
  for (int what = 0; what < 4; what++) {
    bench_t bench;
    bench_armed_steppers(&bench, 679, 3395, 17000);
    const uint8_t stale = (uint8_t)(bench.sequence - 1u);
    for (int i = 0; i < 10; i++) {
      bench_run(&bench, 25000);
      if (what == 0) {
        bench_send(&bench, SA_PING, token, 4);
      } else if (what == 1) {
        bench_targets(&bench, BEYOND);
      } else if (what == 2) {
        uint8_t payload[24] = {0};
        bench_send_sequence(&bench, SA_TARGETS, payload, 24, stale);
      } else {
        bench_targets(&bench, ZEROS);
      }
    }
    CHECK_EQUAL(bench.stepper.link.state, what == 3 ? SA_STATE_RUNNING : SA_STATE_STOPPED);
  }
}

static void a_handshake_while_armed_stops(void) {
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  bench_hello(&bench);
  CHECK_EQUAL(bench.stepper.link.state, SA_STATE_STOPPED);
  CHECK_EQUAL(bench.stepper.link.cause, SA_CAUSE_NEW_HOST);
}

static void gaps_repeats_and_nonsense_are_counted(void) {
  bench_t bench;
  bench_armed_steppers(&bench, 679, 3395, 17000);
  uint8_t payload[24] = {0};
  const uint8_t now = bench.sequence;
  bench_send_sequence(&bench, SA_TARGETS, payload, 24, (uint8_t)(now + 3u)); /* 3 lost */
  bench_send_sequence(&bench, SA_TARGETS, payload, 24, (uint8_t)(now + 3u)); /* repeat */
  bench_send_sequence(&bench, SA_TARGETS, payload, 24, (uint8_t)(now + 1u)); /* late */
  const uint8_t noise[] = {1, 2, 3, 4, 5, 0, 200, 1, 0};
  bench_bytes(&bench, noise, sizeof noise);
  bench_send_sequence(&bench, 0x66, NULL, 0, (uint8_t)(now + 4u));
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_TYPE);
  bench_send_sequence(&bench, SA_TARGETS, payload, 23, (uint8_t)(now + 5u));
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LENGTH);
  bench_send_sequence(&bench, SA_GET_COUNTERS, NULL, 0, (uint8_t)(now + 6u));
  const uint8_t *c = bench.counters;
  CHECK_EQUAL(sa_get_u32(c), 9 + 7 - 1); /* handshake, 6 limits, zero, arm; 6 here */
  CHECK_EQUAL(sa_get_u16(c + 4) + sa_get_u16(c + 6), 2);
  CHECK_EQUAL(sa_get_u16(c + 8), 3);
  CHECK_EQUAL(sa_get_u16(c + 10), 2);
  CHECK_EQUAL(sa_get_u16(c + 12), 2);
}

static void a_ping_brings_its_token_back(void) {
  bench_t bench;
  const uint8_t token[4] = {9, 8, 7, 6};
  bench_steppers(&bench);
  bench_send(&bench, SA_PING, token, 4);
  CHECK(memcmp(bench.pong, token, 4) == 0);
  CHECK_EQUAL(sa_get_u32(bench.pong + 4), bench.now_us);
}

static void states_come_at_their_rate_and_not_into_a_full_line(void) {
  bench_t bench;
  bench_steppers(&bench);
  bench_run(&bench, 1000000);
  CHECK(bench.states >= 99 && bench.states <= 101);
  const uint32_t states = bench.states;
  bench.room = 30;
  bench_run(&bench, 1000000);
  CHECK_EQUAL(bench.states, states);
  CHECK(bench.stepper.link.counters.skipped_states >= 99);
}

void run_link_tests(void) {
  RUN(hello_is_answered_with_version_kind_and_boot_id);
  RUN(another_version_is_told_ours_and_stays_out);
  RUN(nothing_is_set_before_the_handshake);
  RUN(frames_of_an_earlier_boot_are_worth_nothing);
  RUN(a_stop_frame_stops_until_reset);
  RUN(silence_stops_after_200_ms);
  RUN(only_valid_control_frames_feed_the_watchdog);
  RUN(a_handshake_while_armed_stops);
  RUN(gaps_repeats_and_nonsense_are_counted);
  RUN(a_ping_brings_its_token_back);
  RUN(states_come_at_their_rate_and_not_into_a_full_line);
}
