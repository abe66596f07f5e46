#include "bench_report.h"

#include <stdio.h>
#include <string.h>

static const char *join(char *out, size_t size, const motor_bench_t *bench,
                        long long (*of)(const bench_motor_t *)) {
  size_t used = 0;
  for (int m = 0; m < BENCH_MOTORS; m++) {
    used += (size_t)snprintf(out + used, size - used, " %lld", of(&bench->motors[m]));
  }
  return out;
}

static long long shaft(const bench_motor_t *motor) { return motor->shaft; }
static long long moved(const bench_motor_t *motor) { return (long long)motor->moved; }
static long long jumps(const bench_motor_t *motor) { return motor->jumps; }

void report_shafts(control_t *control, motor_bench_t *bench, uint64_t now_us) {
  static uint64_t last_us = 0;
  char text[160];
  if (!bench->changed || now_us - last_us < 1000) {
    return;
  }
  last_us = now_us;
  bench->changed = false;
  control_say(control, "C %llu%s", (unsigned long long)now_us,
              join(text, sizeof text, bench, shaft));
}

void report_status(control_t *control, const motor_bench_t *bench, uint64_t now_us,
                   uint64_t late_us) {
  char shafts[160];
  char ways[160];
  char lucks[160];
  control_say(control, "S %llu shafts%s moved%s jumps%s transactions %llu failed %llu late %llu",
              (unsigned long long)now_us, join(shafts, sizeof shafts, bench, shaft),
              join(ways, sizeof ways, bench, moved), join(lucks, sizeof lucks, bench, jumps),
              (unsigned long long)bench->transactions, (unsigned long long)bench->failed,
              (unsigned long long)late_us);
}

bool bench_order(motor_bench_t *bench, const char *order) {
  int shield;
  char what[8];
  if (sscanf(order, "shield %d %7s", &shield, what) != 2 || shield < 0 ||
      shield >= BENCH_SHIELDS) {
    return false;
  }
  if (strcmp(what, "power") == 0) {
    motor_bench_power_cycle(bench, shield);
  } else {
    bench->shields[shield].answers = strcmp(what, "on") == 0;
  }
  return true;
}
