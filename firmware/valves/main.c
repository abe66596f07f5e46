/* Sixty valves on an STM32F405: clock, serial line, watchdog; all decisions are made in ../core.
 *
 * All waits are bounded, and no register is read back after a write: the same binary runs in QEMU,
 * where most peripherals read as zero.
 */
#include "../core/valves.h"
#include "outputs.h"
#include "stm32f405.h"

#define BAUD 115200u
#define PATIENCE 100000u      /* iterations of a loop that waits for a ready bit */
#define QUEUE 256u            /* bytes; 8-bit indices wrap by themselves */
#define WATCHDOG_FEED_US 10000u /* the watchdog resets the board after 100 ms */

static volatile uint8_t received[QUEUE];
static volatile uint8_t received_head;
static uint8_t received_tail;
static uint8_t sending[QUEUE];
static uint8_t sending_head;
static uint8_t sending_tail;
static sa_valves_t valves;
/* [0] may be set by an emulator, [1] counts starts. A reset clears neither; after power-on both
 * hold the random contents of the memory. */
__attribute__((section(".kept"), used)) static volatile uint32_t kept[2];

void systick_handler(void) {} /* only ends a wait for interrupt */

void usart1_handler(void) {
  const uint32_t status = USART1_SR;
  const uint8_t byte = (uint8_t)USART1_DR; /* the two reads also clear an overrun */
  if ((status & USART_RXNE) != 0u) {
    received[received_head++] = byte;
  }
}

static int ready(volatile uint32_t *at, uint32_t mask, uint32_t value) {
  for (uint32_t i = 0; i < PATIENCE; i++) {
    if ((*at & mask) == value) {
      return 1;
    }
  }
  return 0;
}

typedef struct {
  uint32_t core_mhz;
  uint32_t serial_mhz; /* of USART1 */
  uint32_t timer_mhz;  /* of TIM2 */
} clocks_t;

/* Select 168 MHz by the PLL, or the internal oscillator itself if the PLL does not start. */
static clocks_t clock_begin(void) {
  static const clocks_t SLOW = {16u, 16u, 16u};
  static const clocks_t FAST = {168u, 84u, 84u};
  /* Timer rates of QEMU's board, which has no clock control: its RCC_CR reads as zero, while a real
   * board shows its running oscillator there. */
  static const clocks_t EMULATED = {168u, 84u, 1000u};
  if (RCC_CR == 0u) {
    return EMULATED;
  }
  RCC_PLLCFGR = 8u | 168u << 6 | 0u << 16 | 7u << 24; /* 16 MHz / 8 * 168 / 2; 48 MHz for RNG */
  RCC_CR |= 1u << 24;
  if (!ready(&RCC_CR, 1u << 25, 1u << 25)) {
    return SLOW;
  }
  FLASH_ACR = 5u | 7u << 8;       /* wait states, caches */
  RCC_CFGR = 5u << 10 | 4u << 13; /* APB1 / 4, APB2 / 2 */
  RCC_CFGR = 2u | 5u << 10 | 4u << 13;
  if (ready(&RCC_CFGR, 3u << 2, 2u << 2)) {
    return FAST;
  }
  RCC_CFGR = 0;
  return SLOW;
}

static uint8_t reset_cause(void) {
  const uint32_t flags = RCC_CSR;
  RCC_CSR = 1u << 24;
  return (flags & 1u << 29) != 0u   ? 4u
         : (flags & 1u << 28) != 0u ? 5u
         : (flags & 1u << 27) != 0u ? 1u
         : (flags & 1u << 25) != 0u ? 3u
         : (flags & 1u << 26) != 0u ? 2u
                                    : 0u;
}

/* Different at every start: a random number mixed with the start counter and the kept memory. */
static uint32_t boot_id(void) {
  uint32_t random = 0;
  RNG_CR = 1u << 2;
  if (ready(&RNG_SR, 0x67u, 1u)) { /* ready, and no error */
    random = RNG_DR;
  }
  RNG_CR = 0;
  kept[1]++;
  return random ^ kept[0] ^ kept[1] * 2654435769u;
}

static void watchdog_begin(void) {
  IWDG_KR = 0xCCCCu;
  IWDG_KR = 0x5555u;
  IWDG_PR = 0;    /* 32 kHz / 4 */
  IWDG_RLR = 800u; /* 100 ms */
  (void)ready(&IWDG_SR, 3u, 0u);
  IWDG_KR = 0xAAAAu;
}

/* A hardware microsecond counter: counting interrupts could lose a late one. */
static uint32_t now_us(void *context) {
  (void)context;
  return TIM2_CNT;
}

static uint8_t room(void *context) {
  (void)context;
  return (uint8_t)(sending_tail - sending_head - 1u);
}

static void send(void *context, const uint8_t *bytes, uint8_t count) {
  if (count > room(context)) {
    return; /* the host detects the gap in the sequence */
  }
  for (uint8_t i = 0; i < count; i++) {
    sending[sending_head++] = bytes[i];
  }
}

static void write_valves(void *context, const uint8_t open[SA_VALVE_BYTES]) {
  (void)context;
  outputs_write(open);
}

/* Send a byte only when the line is free, so that the loop never waits and valves keep time. */
static void pump(void) {
  if (sending_tail != sending_head && (USART1_SR & USART_TXE) != 0u) {
    USART1_DR = sending[sending_tail++];
  }
}

int main(void) {
  RCC_AHB1ENR = 0x0010001Fu; /* ports A to E; bit 20 keeps its reset value */
  outputs_begin();
  const uint8_t cause = reset_cause();
  const clocks_t clocks = clock_begin();
  RCC_AHB2ENR = 1u << 6; /* random number generator */
  RCC_APB2ENR = 1u << 4; /* USART1 */
  RCC_APB1ENR = 1u;      /* TIM2 */
  TIM2_PSC = clocks.timer_mhz - 1u;
  TIM2_ARR = 0xFFFFFFFFu;
  TIM2_EGR = 1u; /* load the prescaler */
  TIM2_CR1 = 1u;
  SYSTICK_LOAD = clocks.core_mhz * 1000u - 1u; /* wake the loop every millisecond */
  SYSTICK_VAL = 0;
  SYSTICK_CTRL = 7;
  GPIO_PUPDR(0) = 0x64000000u | 1u << 20;              /* pull up PA10, so that an open line is idle */
  GPIO_AFRH(0) = 0x00000770u;                          /* PA9, PA10 */
  GPIO_MODER(0) = 0xA8000000u | 2u << 18 | 2u << 20;
  USART1_BRR = (clocks.serial_mhz * 1000000u + BAUD / 2u) / BAUD;
  USART1_CR1 = 1u << 13 | 1u << 5 | 1u << 3 | 1u << 2; /* enable, receive interrupt, transmitter, receiver */
  NVIC_ISER1 = 1u << (USART1_IRQ - 32u);
  const sa_board_t board = {0, now_us, room, send};
  const sa_outputs_t outputs = {0, write_valves};
  sa_valves_init(&valves, &board, &outputs, cause, boot_id());
  watchdog_begin();
  uint32_t fed_us = TIM2_CNT;
  for (;;) {
    while (received_tail != received_head) {
      sa_valves_byte(&valves, received[received_tail++]);
    }
    sa_valves_poll(&valves);
    pump();
    if (TIM2_CNT - fed_us >= WATCHDOG_FEED_US) {
      fed_us = TIM2_CNT;
      IWDG_KR = 0xAAAAu;
    }
    if (sending_tail == sending_head) {
      /* Wait for a byte or the next millisecond; a pending interrupt ends the wait at once. */
      __asm volatile("cpsid i" ::: "memory");
      if (received_tail == received_head) {
        __asm volatile("wfi");
      }
      __asm volatile("cpsie i" ::: "memory");
    }
  }
}
