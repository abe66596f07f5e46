#include "outputs.h"

#include "stm32f405.h"

#define PORTS 4u
enum { PORT_B = 1, PORT_C = 2, PORT_D = 3, PORT_E = 4 };

static const uint8_t PORT[PORTS] = {PORT_D, PORT_E, PORT_C, PORT_B};
static const uint32_t PINS[PORTS] = {0xFFFFu, 0xFFFFu, 0x3FFFu, 0xFFF3u};

/* Write the set/reset register only: it changes just the named pins and needs no read. */
static void drive(uint8_t index, uint32_t open) {
  const uint32_t pins = PINS[index];
#ifdef VALVES_ACTIVE_LOW
  const uint32_t high = ~open & pins;
#else
  const uint32_t high = open & pins;
#endif
  GPIO_BSRR(PORT[index]) = high | (~high & pins) << 16;
}

void outputs_close(void) {
  for (uint8_t i = 0; i < PORTS; i++) {
    drive(i, 0);
  }
}

void outputs_write(const uint8_t open[8]) {
  const uint32_t last = open[5] >> 6 | (uint32_t)open[6] << 2 | (uint32_t)open[7] << 10;
  drive(0, open[0] | (uint32_t)open[1] << 8);
  drive(1, open[2] | (uint32_t)open[3] << 8);
  drive(2, open[4] | ((uint32_t)open[5] & 0x3Fu) << 8);
  drive(3, (last & 3u) | (last >> 2) << 4); /* skip PB2 and PB3 */
}

void outputs_begin(void) {
  outputs_close();
  GPIO_MODER(PORT_D) = 0x55555555u;
  GPIO_MODER(PORT_E) = 0x55555555u;
  GPIO_MODER(PORT_C) = 0x05555555u;
  GPIO_MODER(PORT_B) = 0x55555505u | 0x00000080u; /* PB3 remains with the debugger */
}
