#include "bench.h"

#include <math.h>
#include <string.h>

#include "check.h"

static uint32_t now_us(void *context) { return ((bench_t *)context)->now_us; }

static uint8_t room(void *context) { return ((bench_t *)context)->room; }

static uint32_t key_zero(const void *context, uint8_t type) {
  (void)context;
  (void)type;
  return 0;
}

static void send(void *context, const uint8_t *bytes, uint8_t count) {
  bench_t *bench = (bench_t *)context;
  for (uint8_t i = 0; i < count; i++) {
    sa_frame_t frame;
    const sa_rx_t got = sa_receiver_byte(&bench->line, bytes[i], key_zero, NULL, &frame);
    CHECK(got == SA_RX_NOTHING || got == SA_RX_FRAME);
    if (got != SA_RX_FRAME) {
      continue;
    }
    bench->frames++;
    bench->device_sequence = frame.sequence;
    switch (frame.type) {
      case SA_ACK:
        CHECK_EQUAL(frame.count, 3);
        memcpy(bench->last_ack, frame.payload, 3);
        bench->acks++;
        break;
      case SA_HELLO_REPLY:
        CHECK_EQUAL(frame.count, 10);
        memcpy(bench->hello, frame.payload, 10);
        break;
      case SA_PONG:
        CHECK_EQUAL(frame.count, 8);
        memcpy(bench->pong, frame.payload, 8);
        break;
      case SA_COUNTERS:
        CHECK_EQUAL(frame.count, 26);
        memcpy(bench->counters, frame.payload, 26);
        break;
      default:
        CHECK(frame.type == SA_STEPPER_STATE || frame.type == SA_VALVE_STATE);
        CHECK_EQUAL(frame.count, frame.type == SA_STEPPER_STATE ? 34 : 17);
        memcpy(bench->state, frame.payload, frame.count);
        bench->states++;
    }
  }
}

int32_t bench_microsteps(const int16_t from[2], const int16_t to[2]) {
  const double turn = 2.0 * acos(-1.0);
  const double angle = atan2(to[1], to[0]) - atan2(from[1], from[0]);
  const long steps = lround(angle / turn * SA_ELECTRICAL_CYCLE);
  return (int32_t)(((steps + 96) % 64) - 32);
}

static bool begin(void *context, uint8_t shield) {
  bench_t *bench = (bench_t *)context;
  bench->begun++;
  CHECK(shield < 3);
  return (bench->shields_answer >> shield & 1) != 0;
}

static bool write_coils(void *context, uint8_t motor, int16_t coil_a, int16_t coil_b) {
  bench_t *bench = (bench_t *)context;
  const int16_t to[2] = {coil_a, coil_b};
  bench->now_us += bench->write_us;
  if ((bench->shields_answer >> (motor / 2) & 1) == 0) {
    return false;
  }
  CHECK(motor < SA_MOTORS);
  CHECK(coil_a >= -SA_COIL_FULL && coil_a <= SA_COIL_FULL);
  CHECK(coil_b >= -SA_COIL_FULL && coil_b <= SA_COIL_FULL);
  bench->coil_writes++;
  int16_t *from = bench->currents[motor];
  if ((from[0] != 0 || from[1] != 0) && (coil_a != 0 || coil_b != 0)) {
    const int32_t steps = bench_microsteps(from, to);
    CHECK(steps > -32 && steps < 32); /* half a cycle has no direction */
    bench->executed[motor] += steps;
  }
  memcpy(from, to, sizeof to);
  return true;
}

static void write_valves(void *context, const uint8_t open[SA_VALVE_BYTES]) {
  bench_t *bench = (bench_t *)context;
  for (uint8_t i = 0; i < SA_VALVE_BYTES; i++) {
    CHECK_EQUAL(open[i] & (open[i] >> 1) & 0x55, 0); /* the interlock, at every write */
  }
  CHECK_EQUAL(open[7] >> 4, 0);
  memcpy(bench->open, open, SA_VALVE_BYTES);
  bench->valve_writes++;
}

static sa_board_t board(bench_t *bench) {
  memset(bench, 0, sizeof *bench);
  bench->room = 255;
  bench->shields_answer = 7;
  bench->now_us = 0xFFF00000u; /* the clock wraps a second later */
  const sa_board_t made = {bench, now_us, room, send};
  return made;
}

void bench_steppers(bench_t *bench) {
  const sa_board_t made = board(bench);
  const sa_coils_t coils = {bench, begin, write_coils};
  sa_stepper_init(&bench->stepper, &made, &coils, 1, BENCH_BOOT_ID);
}

void bench_valves(bench_t *bench) {
  const sa_board_t made = board(bench);
  const sa_outputs_t outputs = {bench, write_valves};
  sa_valves_init(&bench->valves, &made, &outputs, 1, BENCH_BOOT_ID);
}

static bool has_valves(const bench_t *bench) { return bench->valves.link.kind == SA_KIND_VALVES; }

void bench_bytes(bench_t *bench, const uint8_t *bytes, uint16_t count) {
  for (uint16_t i = 0; i < count; i++) {
    if (has_valves(bench)) {
      sa_valves_byte(&bench->valves, bytes[i]);
    } else {
      sa_stepper_byte(&bench->stepper, bytes[i]);
    }
  }
}

void bench_send_sequence(bench_t *bench, uint8_t type, const uint8_t *payload, uint8_t count,
                         uint8_t sequence) {
  uint8_t bytes[SA_MAX_ENCODED];
  const uint32_t key = type >= SA_FIRST_SEALED ? BENCH_BOOT_ID : 0u;
  bench_bytes(bench, bytes, sa_frame_encode(type, sequence, payload, count, key, bytes));
}

void bench_send(bench_t *bench, uint8_t type, const uint8_t *payload, uint8_t count) {
  bench_send_sequence(bench, type, payload, count, bench->sequence++);
}

void bench_run(bench_t *bench, uint32_t us) {
  const uint32_t start = bench->now_us;
  while (bench->now_us - start < us) {
    const uint32_t before = bench->now_us;
    bench->now_us += 100u;
    if (has_valves(bench)) {
      uint8_t open[SA_VALVE_BYTES];
      memcpy(open, bench->open, sizeof open);
      sa_valves_poll(&bench->valves);
      for (uint8_t i = 0; i < SA_VALVES; i++) {
        bench->open_us[i] += (open[i / 8] >> (i % 8) & 1) != 0 ? bench->now_us - before : 0u;
      }
    } else {
      sa_stepper_poll(&bench->stepper);
    }
  }
}

void bench_hello(bench_t *bench) {
  const uint8_t version = SA_PROTOCOL_VERSION;
  bench_send(bench, SA_HELLO, &version, 1);
}

void bench_configure(bench_t *bench, uint8_t motor, uint16_t speed, uint32_t acceleration,
                     uint32_t braking, int32_t minimum, int32_t maximum) {
  uint8_t payload[19] = {motor};
  uint8_t *at = sa_put_u16(payload + 1, speed);
  at = sa_put_u32(at, acceleration);
  at = sa_put_u32(at, braking);
  at = sa_put_u32(at, (uint32_t)minimum);
  (void)sa_put_u32(at, (uint32_t)maximum);
  bench_send(bench, SA_STEPPER_CONFIG, payload, 19);
}

static void put_positions(uint8_t *at, const int32_t *positions) {
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    at = sa_put_u32(at, (uint32_t)positions[m]);
  }
}

void bench_zero(bench_t *bench, uint8_t mask, const int32_t *positions) {
  uint8_t payload[25] = {mask};
  put_positions(payload + 1, positions);
  bench_send(bench, SA_ZERO, payload, 25);
}

void bench_targets(bench_t *bench, const int32_t *targets) {
  uint8_t payload[24];
  put_positions(payload, targets);
  bench_send(bench, SA_TARGETS, payload, 24);
}

void bench_open(bench_t *bench, uint16_t batch, const uint16_t *open_ms) {
  uint8_t payload[2 + 2 * SA_VALVES];
  uint8_t *at = sa_put_u16(payload, batch);
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    at = sa_put_u16(at, open_ms[i]);
  }
  bench_send(bench, SA_OPEN, payload, sizeof payload);
}

void bench_keep(bench_t *bench, uint16_t batch) {
  uint8_t payload[2];
  (void)sa_put_u16(payload, batch);
  bench_send(bench, SA_KEEP, payload, 2);
}

void bench_armed_steppers(bench_t *bench, uint16_t speed, uint32_t acceleration,
                          uint32_t braking) {
  static const int32_t zeros[SA_MOTORS] = {0};
  bench_steppers(bench);
  bench_hello(bench);
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    bench_configure(bench, m, speed, acceleration, braking, -20000, 20000);
    CHECK_EQUAL(bench->last_ack[2], SA_OK);
  }
  bench_zero(bench, 0x3F, zeros);
  CHECK_EQUAL(bench->last_ack[2], SA_OK);
  bench_send(bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench->last_ack[2], SA_OK);
  CHECK_EQUAL(bench->stepper.link.state, SA_STATE_ARMED);
}

void bench_armed_valves(bench_t *bench, uint16_t cap_ms, uint16_t dead_ms) {
  uint8_t payload[4];
  bench_valves(bench);
  bench_hello(bench);
  (void)sa_put_u16(sa_put_u16(payload, cap_ms), dead_ms);
  bench_send(bench, SA_VALVE_CONFIG, payload, 4);
  CHECK_EQUAL(bench->last_ack[2], SA_OK);
  bench_send(bench, SA_ARM, NULL, 0);
  CHECK_EQUAL(bench->last_ack[2], SA_OK);
}
