/* Send a million random and mutated frames to each armed and running device; none may be accepted,
 * and nothing may move. `flood [frames] [seed]`; equal seeds give equal bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "check.h"
#include "oracle.h"

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)((random_state >> 32) * below >> 32);
}

/* Make a valid frame of a random type with the next sequence number. */
static uint16_t valid_frame(const bench_t *bench, bool valves, uint8_t *bytes) {
  static const uint8_t STEPPERS[][2] = {
      {SA_TARGETS, 24}, {SA_TARGETS, 24}, {SA_TARGETS, 24}, {SA_ZERO, 25},
      {SA_RELEASE, 0},  {SA_RESET, 0},    {SA_ARM, 0},      {SA_STEPPER_CONFIG, 19},
      {SA_HELLO, 1},    {SA_STOP, 0},     {SA_DISARM, 0},   {SA_PING, 4}};
  static const uint8_t VALVES[][2] = {
      {SA_OPEN, 122}, {SA_OPEN, 122}, {SA_KEEP, 2}, {SA_RESET, 0},  {SA_ARM, 0},
      {SA_HELLO, 1},  {SA_STOP, 0},   {SA_PING, 4}, {SA_DISARM, 0}, {SA_VALVE_CONFIG, 4}};
  const uint8_t *row = valves ? VALVES[draw(10)] : STEPPERS[draw(12)];
  uint8_t payload[SA_MAX_PAYLOAD] = {0};
  if (row[0] == SA_OPEN) {
    for (int m = 0; m < 30; m++) {
      payload[2 + 4 * m + 2 * (int)draw(2)] = (uint8_t)draw(256);
    }
  } else {
    for (uint8_t i = 0; i < row[1]; i++) {
      payload[i] = (uint8_t)draw(256);
    }
    for (uint8_t i = 0; row[0] == SA_TARGETS && i < 24; i += 4) {
      (void)sa_put_u32(payload + i, draw(20000));
    }
  }
  const uint32_t key = row[0] >= SA_FIRST_SEALED ? BENCH_BOOT_ID : 0u;
  return sa_frame_encode(row[0], bench->sequence, payload, row[1], key, bytes);
}

static uint16_t mutate(uint8_t *bytes, uint16_t count) {
  for (uint32_t times = 1 + draw(3); times > 0; times--) {
    const uint16_t at = (uint16_t)draw(count);
    switch (draw(7)) {
      case 0:
        for (uint32_t flips = 1 + draw(8); flips > 0; flips--) {
          bytes[draw(count)] ^= (uint8_t)(1u << draw(8));
        }
        break;
      case 1:
        bytes[at] = (uint8_t)draw(256);
        break;
      case 2: /* a burst */
        for (uint16_t i = at; i < count && i < at + 1u + draw(6); i++) {
          bytes[i] = (uint8_t)draw(256);
        }
        break;
      case 3: /* a byte lost */
        memmove(bytes + at, bytes + at + 1, (size_t)(count - at - 1));
        count = count > 2 ? (uint16_t)(count - 1) : count;
        break;
      case 4: /* an extra byte */
        memmove(bytes + at + 1, bytes + at, (size_t)(count - at));
        bytes[at] = (uint8_t)draw(256);
        count++;
        break;
      case 5: /* the end lost */
        count = at > 1 ? at : count;
        break;
      default: { /* two bytes swapped */
        const uint16_t other = (uint16_t)draw(count);
        const uint8_t byte = bytes[at];
        bytes[at] = bytes[other];
        bytes[other] = byte;
      }
    }
  }
  return count;
}

/* Return whether mutated or random bytes contain a valid frame by chance. */
static bool holds_valid_frame(const uint8_t *bytes, uint16_t count) {
  uint16_t start = 0;
  for (uint16_t i = 0; i <= count; i++) {
    uint8_t type;
    if (i == count || bytes[i] == 0) {
      if (i > start && oracle_valid(bytes + start, i - start, BENCH_BOOT_ID, &type)) {
        return true;
      }
      start = (uint16_t)(i + 1);
    }
  }
  return false;
}

static void flood(bool valves, uint32_t frames) {
  static const int32_t ZEROS[SA_MOTORS] = {0};
  static const uint16_t CLOSED[SA_VALVES] = {0};
  static bench_t bench;
  if (valves) {
    bench_armed_valves(&bench, 10000, 0);
  } else {
    bench_armed_steppers(&bench, 4000, 120000, 120000);
  }
  sa_link_t *link = valves ? &bench.valves.link : &bench.stepper.link;
  uint32_t accepted = link->counters.accepted;
  const uint32_t coil_writes = bench.coil_writes;
  const uint32_t valve_writes = bench.valve_writes;
  uint64_t total = 0;
  uint32_t still_valid = 0;
  uint64_t refused = 0;
  for (uint32_t i = 0; i < frames + still_valid; i++) {
    uint8_t bytes[SA_MAX_ENCODED + 64];
    uint16_t count;
    if (i % 2 == 0) {
      count = (uint16_t)(1 + draw(160));
      for (uint16_t k = 0; k < count; k++) {
        bytes[k] = (uint8_t)draw(256);
      }
    } else {
      count = mutate(bytes, (uint16_t)(valid_frame(&bench, valves, bytes) - 1u));
    }
    if (holds_valid_frame(bytes, count)) {
      still_valid++;
      continue;
    }
    bytes[count++] = 0;
    bench_bytes(&bench, bytes, count);
    total += count;
    refused += link->counters.corrupt + link->counters.malformed;
    link->counters.corrupt = 0;
    link->counters.malformed = 0;
    CHECK_EQUAL(link->counters.accepted, accepted);
    if (i % 8 == 0) {
      /* Between the bad frames, the host continues at 100 Hz. */
      if (valves) {
        bench_open(&bench, 1, CLOSED);
      } else {
        bench_targets(&bench, ZEROS);
      }
      accepted++;
      CHECK_EQUAL(link->counters.accepted, accepted);
      bench_run(&bench, 10000);
    }
  }
  CHECK_EQUAL(link->state, SA_STATE_RUNNING);
  CHECK_EQUAL(link->counters.lost, 0);
  CHECK_EQUAL(bench.coil_writes, coil_writes);
  CHECK_EQUAL(bench.valve_writes, valve_writes);
  printf("%s: %lu frames (%llu bytes; %lu unharmed ones left out), %llu pieces refused, 0 accepted, "
         "0 %s written\n",
         valves ? "valves" : "steppers", (unsigned long)frames,
         (unsigned long long)total, (unsigned long)still_valid, (unsigned long long)refused,
         valves ? "valves" : "coils");
}

int main(int argc, char **argv) {
  const uint32_t frames = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000u;
  random_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 20240229u;
  random_state = random_state * 2654435769u + 88172645463325252u;
  flood(false, frames);
  flood(true, frames);
  return 0;
}
