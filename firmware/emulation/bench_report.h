/* Lines of the control socket that tell of the motors; the same from either runner. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "host.h"
#include "motor_bench.h"

/* "C <us> <shaft of each motor>": to be called often, says so at most once a millisecond and only
 * if a shaft has moved. */
void report_shafts(control_t *control, motor_bench_t *bench, uint64_t now_us);
/* "S <us> shafts ... moved ... jumps ... transactions n failed n late <us>"; late: how far the board
 * was behind the wall clock at worst since the report before, lost time included. */
void report_status(control_t *control, const motor_bench_t *bench, uint64_t now_us,
                   uint64_t late_us);
/* "shield N off|on|power": the shield falls silent, answers again, loses its power for a moment.
 * Returns whether it was such an order. */
bool bench_order(motor_bench_t *bench, const char *order);

#endif
