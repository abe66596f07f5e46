// Six stepper motors on an Arduino Mega 2560 with up to three Adafruit Motor Shields V2.
//
// Only the hardware access is here; all decisions are made in src/core (portable C, tested on the
// host). The Arduino tools can open this folder, where src/core is a link to firmware/core;
// `make sketch` writes a folder with a copy instead.
#include <avr/eeprom.h>
#include <avr/sleep.h>

#include "i2c.h"
#include "src/core/motor_shield.h"
#include "src/core/stepper.h"

static const uint32_t BAUD = 250000;        // exact at 16 MHz; 115200 would be 2.1 % off
static uint32_t *const BOOTS = (uint32_t *)0;  // EEPROM address of the start counter

static sa_stepper_t stepper;

static uint32_t now_us(void *) { return micros(); }

static uint8_t room(void *) { return (uint8_t)Serial.availableForWrite(); }

static void send(void *, const uint8_t *bytes, uint8_t count) { Serial.write(bytes, count); }

static bool begin_coils(void *, uint8_t shield) {
  for (uint8_t step = 0; step < SA_SHIELD_WAKE_STEPS; step++) {
    uint8_t bytes[2];
    sa_shield_wake(step, bytes);
    if (!i2c_write(SA_SHIELD_ADDRESS + shield, bytes, sizeof bytes)) {
      return false;
    }
    delay(1);
  }
  return true;
}

static bool write_coils(void *, uint8_t motor, int16_t coil_a, int16_t coil_b) {
  uint8_t bytes[SA_SHIELD_BYTES];
  sa_shield_coils(motor, coil_a, coil_b, bytes);
  return i2c_write(sa_shield_address(motor), bytes, sizeof bytes);
}

// 1 power, 2 reset pin, 3 brown-out, 4 watchdog; 0 if the boot loader has cleared the flags.
static uint8_t reset_cause() {
  const uint8_t flags = MCUSR;
  MCUSR = 0;
  return flags & _BV(BORF) ? (flags & _BV(PORF) ? 1 : 3)
         : flags & _BV(WDRF) ? 4
         : flags & _BV(EXTRF) ? 2
         : flags & _BV(PORF) ? 1
                             : 0;
}

// Different at every start: the start counter, multiplied to spread it over all bits.
static uint32_t boot_id() {
  const uint32_t boots = eeprom_read_dword(BOOTS) + 1;
  eeprom_update_dword(BOOTS, boots);
  return boots * 2654435769UL;
}

void setup() {
  const uint8_t cause = reset_cause();
  Serial.begin(BAUD);
  i2c_begin();
  const sa_board_t board = {NULL, now_us, room, send};
  const sa_coils_t coils = {NULL, begin_coils, write_coils};
  sa_stepper_init(&stepper, &board, &coils, cause, boot_id());
}

void loop() {
  while (Serial.available() > 0) {
    sa_stepper_byte(&stepper, (uint8_t)Serial.read());
  }
  if (sa_stepper_poll(&stepper)) {
    return;
  }
  // Sleep until the next byte or the timer's next millisecond. A byte that arrives just before is
  // not missed, because the instruction after sei() executes before any interrupt.
  set_sleep_mode(SLEEP_MODE_IDLE);
  cli();
  if (Serial.available() == 0) {
    sleep_enable();
    sei();
    sleep_cpu();
    sleep_disable();
  }
  sei();
}
