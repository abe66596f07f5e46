#include "motor_shield.h"

/* PCA9685 registers. */
#define MODE1 0x00u
#define LED0 0x06u
#define ALL_OFF_HIGH 0xFDu
#define PRESCALE 0xFEu
#define SLEEP 0x10u
#define AUTO_INCREMENT 0x20u
#define FULLY 0x10u /* in the high byte of ON or OFF: permanently on or off */

/* First of the six consecutive channels of a stepper port. */
#define FIRST_CHANNEL_M1_M2 8u /* PWMA AIN2 AIN1 BIN1 BIN2 PWMB */
#define FIRST_CHANNEL_M3_M4 2u /* PWMA AIN2 AIN1 BIN1 BIN2 PWMB */

uint8_t sa_shield_address(uint8_t motor) { return (uint8_t)(SA_SHIELD_ADDRESS + motor / 2u); }

/* Set a channel to `duty` of 4095: on at 0, off at `duty`; 0 and 4095 use the FULLY bits. */
static uint8_t *channel(uint8_t *at, uint16_t duty) {
  at[0] = 0u;
  at[1] = duty >= 4095u ? FULLY : 0u;
  at[2] = (uint8_t)(duty >= 4095u ? 0u : duty & 0xFFu);
  at[3] = (uint8_t)(duty >= 4095u ? 0u : duty == 0u ? FULLY : duty >> 8);
  return at + 4;
}

static uint8_t *pin(uint8_t *at, int high) { return channel(at, high ? 4095u : 0u); }

void sa_shield_coils(uint8_t motor, int16_t coil_a, int16_t coil_b,
                     uint8_t bytes[SA_SHIELD_BYTES]) {
  const uint8_t first = motor % 2u == 0u ? FIRST_CHANNEL_M1_M2 : FIRST_CHANNEL_M3_M4;
  uint8_t *at = bytes;
  *at++ = (uint8_t)(LED0 + 4u * first);
  at = channel(at, (uint16_t)(coil_a < 0 ? -coil_a : coil_a));
  at = pin(at, coil_a < 0);
  at = pin(at, coil_a > 0);
  at = pin(at, coil_b > 0);
  at = pin(at, coil_b < 0);
  (void)channel(at, (uint16_t)(coil_b < 0 ? -coil_b : coil_b));
}

void sa_shield_wake(uint8_t step, uint8_t bytes[2]) {
  static const uint8_t STEPS[SA_SHIELD_WAKE_STEPS][2] = {
      {ALL_OFF_HIGH, FULLY},
      {MODE1, SLEEP | AUTO_INCREMENT}, /* the prescaler is writable only in sleep */
      {PRESCALE, 3u},                  /* 25 MHz / 4096 / (3 + 1) = 1.5 kHz, the fastest */
      {MODE1, AUTO_INCREMENT},
  };
  bytes[0] = STEPS[step][0];
  bytes[1] = STEPS[step][1];
}
