#include "motor_bench.h"

#include <math.h>
#include <string.h>

#define MODE1 0x00
#define LED0 0x06
#define ALL_LED 0xFA
#define PRESCALE 0xFE
#define SLEEP 0x10
#define AUTO_INCREMENT 0x20
#define FULL 0x10
#define CYCLE 64

static void power_on(pca9685_t *chip) {
  memset(chip->registers, 0, sizeof chip->registers);
  chip->registers[MODE1] = SLEEP | 0x01; /* asleep, answers the all-call address */
  chip->registers[0x01] = 0x04;
  for (int channel = 0; channel < 16; channel++) {
    chip->registers[LED0 + 4 * channel + 3] = FULL;
  }
  chip->registers[PRESCALE] = 0x1E;
}

void motor_bench_init(motor_bench_t *bench) {
  memset(bench, 0, sizeof *bench);
  for (int i = 0; i < BENCH_SHIELDS; i++) {
    power_on(&bench->shields[i]);
    bench->shields[i].answers = true;
  }
}

static pca9685_t *shield_at(motor_bench_t *bench, uint8_t address) {
  const int index = address - 0x60;
  return index >= 0 && index < BENCH_SHIELDS ? &bench->shields[index] : NULL;
}

bool motor_bench_start(motor_bench_t *bench, uint8_t address) {
  pca9685_t *chip = shield_at(bench, address);
  if (chip == NULL || !chip->answers) {
    bench->failed++;
    return false;
  }
  chip->pointed = false;
  return true;
}

static void write_register(pca9685_t *chip, uint8_t at, uint8_t value) {
  if (at == PRESCALE && (chip->registers[MODE1] & SLEEP) == 0) {
    return; /* not writable while awake */
  }
  if (at >= ALL_LED && at < ALL_LED + 4) {
    for (int channel = 0; channel < 16; channel++) {
      chip->registers[LED0 + 4 * channel + at - ALL_LED] = value;
    }
    return;
  }
  chip->registers[at] = value;
}

void motor_bench_byte(motor_bench_t *bench, uint8_t address, uint8_t byte) {
  pca9685_t *chip = shield_at(bench, address);
  if (chip == NULL) {
    return;
  }
  if (!chip->pointed) {
    chip->pointed = true;
    chip->pointer = byte;
    return;
  }
  write_register(chip, chip->pointer, byte);
  if ((chip->registers[MODE1] & AUTO_INCREMENT) != 0) {
    chip->pointer = (uint8_t)(chip->pointer == 0x45 ? 0 : chip->pointer + 1);
  }
}

uint8_t motor_bench_read(motor_bench_t *bench, uint8_t address) {
  pca9685_t *chip = shield_at(bench, address);
  return chip == NULL ? 0xFF : chip->registers[chip->pointer];
}

/* Return the duty of a channel, 0..1. */
static double level(const pca9685_t *chip, int channel) {
  const uint8_t *r = chip->registers + LED0 + 4 * channel;
  if ((chip->registers[MODE1] & SLEEP) != 0 || (r[3] & FULL) != 0) {
    return 0.0;
  }
  if ((r[1] & FULL) != 0) {
    return 1.0;
  }
  const int on = r[0] | (r[1] & 0x0F) << 8;
  const int off = r[2] | (r[3] & 0x0F) << 8;
  return (off - on + 4096) % 4096 / 4096.0;
}

/* A TB6612 bridge: PWM enables it, IN1 and IN2 select the direction; both high brake. */
static double bridge(const pca9685_t *chip, int pwm, int in1, int in2) {
  return level(chip, pwm) * (level(chip, in1) - level(chip, in2));
}

static long angle_of(const double coil[2]) {
  return lround(atan2(coil[1], coil[0]) * CYCLE / (2.0 * acos(-1.0)));
}

/* Turn the rotor to the field in the shorter direction; without a field it stays. */
static void turn(motor_bench_t *bench, bench_motor_t *motor, const double coil[2]) {
  memcpy(motor->coil, coil, sizeof motor->coil);
  if (hypot(coil[0], coil[1]) < 0.1) {
    return;
  }
  const int64_t behind = (angle_of(coil) - motor->shaft) % CYCLE;
  const int64_t steps = (behind + CYCLE + CYCLE / 2) % CYCLE - CYCLE / 2;
  if (steps == 0) {
    return;
  }
  motor->jumps += steps == -CYCLE / 2;
  motor->shaft += steps;
  motor->moved += (uint64_t)(steps < 0 ? -steps : steps);
  bench->changed = true;
}

static void outputs(motor_bench_t *bench, int shield) {
  /* M1 and M2: PWMA 8, AIN2 9, AIN1 10, BIN1 11, BIN2 12, PWMB 13; M3 and M4 likewise from 2 to 7. */
  static const int FIRST[2] = {8, 2};
  const pca9685_t *chip = &bench->shields[shield];
  for (int port = 0; port < 2; port++) {
    const int c = FIRST[port];
    const double coil[2] = {bridge(chip, c, c + 2, c + 1), bridge(chip, c + 5, c + 3, c + 4)};
    turn(bench, &bench->motors[2 * shield + port], coil);
  }
}

void motor_bench_stop(motor_bench_t *bench, uint8_t address) {
  pca9685_t *chip = shield_at(bench, address);
  if (chip != NULL) {
    bench->transactions++;
    outputs(bench, address - 0x60);
  }
}

void motor_bench_power_cycle(motor_bench_t *bench, int shield) {
  power_on(&bench->shields[shield]);
  outputs(bench, shield);
}
