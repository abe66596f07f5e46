/* Tests of the valves: millisecond timing, interlock of each muscle, all closed on any doubt. */
#include "tests.h"

#include <string.h>

#include "bench.h"
#include "check.h"

static bool none_open(const bench_t *bench) {
  static const uint8_t NONE[SA_VALVE_BYTES] = {0};
  return memcmp(bench->open, NONE, sizeof NONE) == 0;
}

static void openings_last_as_long_as_told(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {0};
  bench_armed_valves(&bench, 500, 10);
  for (uint16_t m = 0; m < SA_VALVES / 2; m++) {
    open_ms[2 * m + m % 2] = (uint16_t)(1 + 5 * m);
  }
  bench_open(&bench, 1, open_ms);
  for (int i = 0; i < 30; i++) {
    bench_run(&bench, 10000);
    bench_keep(&bench, 1);
  }
  for (int i = 0; i < (int)SA_VALVES; i++) {
    CHECK_EQUAL(bench.open_us[i], 1000u * open_ms[i]);
  }
  CHECK(none_open(&bench));
  CHECK_EQUAL(bench.valves.link.state, SA_STATE_RUNNING);
}

static void a_repeat_does_not_start_the_time_anew(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {100};
  bench_armed_valves(&bench, 500, 10);
  for (int i = 0; i < 30; i++) {
    bench_open(&bench, 7, open_ms);
    bench_run(&bench, 10000);
  }
  CHECK_EQUAL(bench.open_us[0], 100000);
  bench_open(&bench, 8, open_ms);
  bench_run(&bench, 150000);
  CHECK_EQUAL(bench.open_us[0], 200000);
}

static void zero_closes_at_once(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {0};
  open_ms[59] = 400;
  bench_armed_valves(&bench, 500, 10);
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 50000);
  open_ms[59] = 0;
  bench_open(&bench, 2, open_ms);
  bench_run(&bench, 1100);
  CHECK(none_open(&bench));
}

static void both_valves_of_a_muscle_are_refused(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {0};
  bench_armed_valves(&bench, 500, 10);
  open_ms[20] = 5;
  open_ms[21] = 5;
  open_ms[30] = 5;
  bench_open(&bench, 1, open_ms);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_INTERLOCK);
  bench_run(&bench, 10000);
  CHECK(none_open(&bench)); /* the whole command was refused */
  CHECK_EQUAL(bench.open_us[30], 0);
}

static void the_other_valve_waits_for_the_dead_time(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {100};
  bench_armed_valves(&bench, 500, 20);
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 50000);
  open_ms[0] = 0;
  open_ms[1] = 100;
  bench_open(&bench, 2, open_ms);
  bench_run(&bench, 20000);
  CHECK(none_open(&bench));
  CHECK_EQUAL(bench.open_us[1], 0);
  bench_run(&bench, 3000);
  CHECK_EQUAL(bench.open[0], 2);
  for (int i = 0; i < 12; i++) {
    bench_keep(&bench, 2);
    bench_run(&bench, 10000);
  }
  CHECK_EQUAL(bench.open_us[1], 100000); /* the full time, after the dead time */
}

static void what_goes_on_keeps_its_time(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {100};
  bench_armed_valves(&bench, 500, 10);
  bench_open(&bench, 1, open_ms);
  for (uint16_t batch = 2; batch < 10; batch++) {
    bench_run(&bench, 17000);
    open_ms[0] = SA_GO_ON; /* its time ends during the sixth batch; it must not reopen */
    open_ms[7] = batch == 3 ? 60 : SA_GO_ON;
    bench_open(&bench, batch, open_ms);
  }
  bench_run(&bench, 50000);
  CHECK_EQUAL(bench.open_us[0], 100000);
  CHECK_EQUAL(bench.open_us[7], 60000);
  CHECK(none_open(&bench));
  open_ms[1] = 50; /* refused, as output 0 has SA_GO_ON, although it is closed */
  bench_open(&bench, 20, open_ms);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_INTERLOCK);
  bench_send(&bench, SA_DISARM, NULL, 0);
  bench_send(&bench, SA_ARM, NULL, 0);
  open_ms[1] = 0;
  bench_open(&bench, 21, open_ms);
  bench_run(&bench, 20000);
  CHECK(none_open(&bench)); /* commands from before arming are forgotten */
}

static void openings_beyond_the_cap_are_refused(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {0};
  bench_armed_valves(&bench, 500, 10);
  open_ms[4] = 501;
  bench_open(&bench, 1, open_ms);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_LIMIT);
  bench_run(&bench, 10000);
  CHECK(none_open(&bench));
}

static void silence_closes_all(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES];
  bench_armed_valves(&bench, 10000, 0);
  for (uint16_t i = 0; i < SA_VALVES; i++) {
    open_ms[i] = i % 2 == 0 ? 10000 : 0;
  }
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 195000);
  CHECK_EQUAL(bench.open[0], 0x55);
  bench_run(&bench, 5200);
  CHECK(none_open(&bench));
  CHECK_EQUAL(bench.valves.link.cause, SA_CAUSE_WATCHDOG);
  bench_run(&bench, 1000000);
  CHECK(none_open(&bench));
  bench_send(&bench, SA_RESET, NULL, 0);
  bench_send(&bench, SA_ARM, NULL, 0);
  bench_run(&bench, 100000);
  CHECK(none_open(&bench)); /* an old batch is not resumed */
  bench_keep(&bench, 1);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_BATCH);
}

static void a_stop_frame_closes_all_before_the_next_poll(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {400};
  bench_armed_valves(&bench, 500, 0);
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 5000);
  CHECK_EQUAL(bench.open[0], 1);
  bench_send(&bench, SA_STOP, NULL, 0);
  CHECK(none_open(&bench));
}

static void a_late_loop_does_not_lengthen_an_opening(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {30};
  bench_armed_valves(&bench, 500, 0);
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 5000);
  CHECK_EQUAL(bench.open[0], 1);
  bench.now_us += 100000u; /* the loop was delayed */
  sa_valves_poll(&bench.valves);
  CHECK(none_open(&bench));
}

static void a_late_loop_does_not_take_from_a_new_opening(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {30};
  bench_armed_valves(&bench, 500, 0);
  bench_open(&bench, 1, open_ms);
  bench_run(&bench, 5000);
  bench.now_us += 100000u; /* the loop was delayed, and a frame arrived meanwhile */
  open_ms[0] = SA_GO_ON;
  open_ms[2] = 40;
  bench_open(&bench, 2, open_ms);
  bench_run(&bench, 20000);
  CHECK_EQUAL(bench.open[0], 4); /* the first opening has ended, the second has not */
  bench_run(&bench, 40000);
  CHECK_EQUAL(bench.open_us[2], 40000);
  CHECK(none_open(&bench));
}

static void arming_needs_limits(void) {
  bench_t bench;
  uint8_t payload[4];
  bench_valves(&bench);
  bench_hello(&bench);
  CHECK_EQUAL(bench.hello[1], SA_KIND_VALVES);
  CHECK_EQUAL(bench.hello[4], SA_VALVES);
  bench_send(&bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_NOT_READY);
  (void)sa_put_u16(sa_put_u16(payload, SA_MOST_OPEN_MS + 1u), 0);
  bench_send(&bench, SA_VALVE_CONFIG, payload, 4);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
  (void)sa_put_u16(sa_put_u16(payload, 1), SA_MOST_DEAD_MS + 1u);
  bench_send(&bench, SA_VALVE_CONFIG, payload, 4);
  CHECK_EQUAL(bench.last_ack[2], SA_ERROR_VALUE);
}

static void states_say_what_is_open(void) {
  bench_t bench;
  uint16_t open_ms[SA_VALVES] = {0};
  bench_armed_valves(&bench, 500, 0);
  open_ms[3] = 100;
  open_ms[58] = 100;
  bench_open(&bench, 0x1234, open_ms);
  bench_run(&bench, 45000);
  CHECK_EQUAL(bench.state[4], SA_STATE_RUNNING);
  CHECK_EQUAL(sa_get_u16(bench.state + 7), 0x1234);
  CHECK_EQUAL(bench.state[9], 8);
  CHECK_EQUAL(bench.state[16], 4);
  CHECK(bench.states >= 2);
}

void run_valve_tests(void) {
  RUN(openings_last_as_long_as_told);
  RUN(a_repeat_does_not_start_the_time_anew);
  RUN(zero_closes_at_once);
  RUN(both_valves_of_a_muscle_are_refused);
  RUN(the_other_valve_waits_for_the_dead_time);
  RUN(what_goes_on_keeps_its_time);
  RUN(openings_beyond_the_cap_are_refused);
  RUN(silence_closes_all);
  RUN(a_stop_frame_closes_all_before_the_next_poll);
  RUN(a_late_loop_does_not_lengthen_an_opening);
  RUN(a_late_loop_does_not_take_from_a_new_opening);
  RUN(arming_needs_limits);
  RUN(states_say_what_is_open);
}
