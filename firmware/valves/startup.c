/* Interrupt vectors and start-up code. */
#include <stdint.h>

#include "outputs.h"

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;

int main(void);
void reset_handler(void);
void systick_handler(void);
void usart1_handler(void);

/* Any fault: close the valves and let the watchdog restart the board. */
static void fault_handler(void) {
  outputs_close();
  for (;;) {
  }
}

void reset_handler(void) {
  const uint32_t *from = &data_load;
  for (uint32_t *to = &data_start; to < &data_end;) {
    *to++ = *from++;
  }
  for (uint32_t *to = &bss_start; to < &bss_end;) {
    *to++ = 0;
  }
  (void)main();
  fault_handler();
}

typedef void (*vector_t)(void);

__attribute__((section(".vectors"), used)) static const vector_t VECTORS[16 + 82] = {
    [0] = (vector_t)(uintptr_t)&stack_top,
    [1] = reset_handler,
    [2] = fault_handler,
    [3] = fault_handler,
    [4] = fault_handler,
    [5] = fault_handler,
    [6] = fault_handler,
    [11] = fault_handler,
    [14] = fault_handler,
    [15] = systick_handler,
    [16 + 37] = usart1_handler,
};

/* The compiler generates calls of these functions. */
void *memcpy(void *to, const void *from, unsigned count) {
  uint8_t *at = to;
  for (const uint8_t *byte = from; count > 0; count--) {
    *at++ = *byte++;
  }
  return to;
}

void *memset(void *to, int value, unsigned count) {
  for (uint8_t *at = to; count > 0; count--) {
    *at++ = (uint8_t)value;
  }
  return to;
}
