/* A test bench for either device: a clock, a line that stores the last answers, and recording coils
 * and valves. Host frames are encoded by the codec under test, which golden vectors verify. */
#ifndef BENCH_H
#define BENCH_H

#include "../core/stepper.h"
#include "../core/valves.h"

#define BENCH_BOOT_ID 0xC0FFEE42u

typedef struct {
  uint32_t now_us;
  uint8_t room;
  uint8_t sequence; /* of the next frame to the device */
  /* from the device */
  sa_receiver_t line;
  uint32_t frames;
  uint32_t states;
  uint8_t last_ack[3];
  uint32_t acks;
  uint8_t hello[10];
  uint8_t pong[8];
  uint8_t counters[26];
  uint8_t state[40];
  uint8_t device_sequence;
  /* steppers */
  sa_stepper_t stepper;
  uint32_t coil_writes;
  uint32_t begun;
  uint32_t write_us; /* duration of a coil write */
  uint8_t shields_answer; /* bit mask of answering shields */
  int32_t executed[SA_MOTORS]; /* counted from the currents */
  int16_t currents[SA_MOTORS][2];
  /* valves */
  sa_valves_t valves;
  uint32_t valve_writes;
  uint8_t open[SA_VALVE_BYTES];
  uint32_t open_us[SA_VALVES]; /* total open time of each output */
} bench_t;

void bench_steppers(bench_t *bench);
void bench_valves(bench_t *bench);
void bench_send(bench_t *bench, uint8_t type, const uint8_t *payload, uint8_t count);
void bench_send_sequence(bench_t *bench, uint8_t type, const uint8_t *payload, uint8_t count,
                         uint8_t sequence);
void bench_bytes(bench_t *bench, const uint8_t *bytes, uint16_t count);
/* Run the device; the clock advances by 100 us per poll. */
void bench_run(bench_t *bench, uint32_t us);
void bench_hello(bench_t *bench);
/* Handshake, limits, zero, arm. Speeds in microsteps/s. */
void bench_armed_steppers(bench_t *bench, uint16_t speed, uint32_t acceleration,
                          uint32_t braking);
void bench_armed_valves(bench_t *bench, uint16_t cap_ms, uint16_t dead_ms);
void bench_configure(bench_t *bench, uint8_t motor, uint16_t speed, uint32_t acceleration,
                     uint32_t braking, int32_t minimum, int32_t maximum);
void bench_zero(bench_t *bench, uint8_t mask, const int32_t *positions);
void bench_targets(bench_t *bench, const int32_t *targets);
void bench_open(bench_t *bench, uint16_t batch, const uint16_t *open_ms);
void bench_keep(bench_t *bench, uint16_t batch);
/* Return the microsteps from one pair of currents to another, -32..31. */
int32_t bench_microsteps(const int16_t from[2], const int16_t to[2]);

#endif
