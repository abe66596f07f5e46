/* libFuzzer target. The first byte of the input selects the device and the mode: raw bytes on the
 * line, or valid frames with types, sequences, payloads and pauses from the input, which pass the
 * checksums. */
#include <stdlib.h>

#include "bench.h"
#include "check.h"
#include "oracle.h"

static bool moved(const bench_t *bench, uint32_t coil_writes, uint32_t valve_writes) {
  return bench->coil_writes != coil_writes || bench->valve_writes != valve_writes;
}

static void raw(bench_t *bench, const sa_link_t *link, const uint8_t *data, size_t size) {
  const uint32_t before = link->counters.accepted;
  const uint32_t coil_writes = bench->coil_writes;
  const uint32_t valve_writes = bench->valve_writes;
  uint32_t valid = 0;
  bool obeyed = false;
  size_t start = 0;
  for (size_t i = 0; i < size; i++) {
    bench_bytes(bench, data + i, 1);
    if (data[i] == 0) {
      uint8_t type;
      if (i > start && oracle_valid(data + start, i - start, BENCH_BOOT_ID, &type)) {
        valid++;
        obeyed = obeyed || type >= SA_FIRST_SEALED || type == SA_STOP || type == SA_DISARM ||
                 type == SA_HELLO;
      }
      start = i + 1;
    }
  }
  CHECK_EQUAL(link->counters.accepted - before, valid);
  bench_run(bench, 50000);
  CHECK(obeyed || !moved(bench, coil_writes, valve_writes));
}

static void valid_frames(bench_t *bench, const uint8_t *data, size_t size) {
  while (size >= 3) {
    uint8_t count = data[1] % (SA_MAX_PAYLOAD + 1u);
    const uint8_t pause = data[2];
    const uint8_t type = data[0];
    data += 3;
    size -= 3;
    count = (uint8_t)(count > size ? size : count);
    bench_send(bench, type < 0x80 ? type : SA_TARGETS, data, count);
    data += count;
    size -= count;
    bench_run(bench, 400u * pause);
    for (int m = 0; m < 6; m++) {
      const sa_motor_t *motor = &bench->stepper.motors[m];
      if (bench->valves.link.kind != SA_KIND_VALVES && (bench->stepper.zeroed >> m & 1) != 0) {
        /* Only braking at a stop, or limits lowered later, may exceed the limits. */
        CHECK(motor->ramp.velocity != 0 || (motor->coil >= motor->minimum - 100 &&
                                            motor->coil <= motor->maximum + 100));
      }
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bench_t bench;
  if (size < 1) {
    return 0;
  }
  const bool valves = (data[0] & 1) != 0;
  if (valves) {
    bench_armed_valves(&bench, 500, 5);
  } else {
    bench_armed_steppers(&bench, 1500, 6000, 60000);
  }
  if ((data[0] & 2) != 0) {
    valid_frames(&bench, data + 1, size - 1);
  } else {
    raw(&bench, valves ? &bench.valves.link : &bench.stepper.link, data + 1, size - 1);
  }
  return 0;
}
