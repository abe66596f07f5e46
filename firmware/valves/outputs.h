/* Pins of the sixty outputs:
 *
 *   outputs  0..15  PD0..PD15
 *   outputs 16..31  PE0..PE15
 *   outputs 32..45  PC0..PC13
 *   outputs 46, 47  PB0, PB1
 *   outputs 48..59  PB4..PB15
 *
 * Both valves of a muscle are on the same port. PA13 and PA14 are reserved for the debugger, PA9
 * and PA10 for the serial line. Compile with -DVALVES_ACTIVE_LOW for relay boards that switch on at 0 V.
 */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include <stdint.h>

void outputs_begin(void); /* close all, then make the pins outputs */
void outputs_close(void);
void outputs_write(const uint8_t open[8]);

#endif
