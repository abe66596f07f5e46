/* Control socket lines about the motors, common to the runners of stepper boards. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "host.h"
#include "motor_bench.h"

/* Report "C <us> <shaft of each motor>" if a shaft has moved, at most once per millisecond. Call
 * often. */
void report_shafts(control_t *control, motor_bench_t *bench, uint64_t now_us);
/* Report "S <us> shafts ... moved ... jumps ... transactions n failed n late <us>". `late` is the
 * largest delay of the board behind the wall clock since the last report, including lost time. */
void report_status(control_t *control, const motor_bench_t *bench, uint64_t now_us,
                   uint64_t late_us);
/* Handle "shield N off|on|power": the shield stops answering, answers again, or is power-cycled.
 * Return whether the order was of this kind. */
bool bench_order(motor_bench_t *bench, const char *order);

#endif
