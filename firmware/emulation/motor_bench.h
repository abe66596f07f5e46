/* Emulated hardware on the I2C bus: three PCA9685 with two bridges and two motors each. Registers
 * follow the data sheets of PCA9685 and TB6612; no code is shared with the firmware. */
#ifndef MOTOR_BENCH_H
#define MOTOR_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_SHIELDS 3
#define BENCH_MOTORS 6

typedef struct {
  uint8_t registers[256];
  uint8_t pointer;
  bool pointed; /* the first byte of this transaction has set the pointer */
  bool answers; /* false if unplugged or without power */
} pca9685_t;

typedef struct {
  double coil[2];  /* currents, -1..1 */
  int64_t shaft;   /* rotor position in sixteenths of a full step */
  uint64_t moved;  /* sum of all steps in both directions */
  uint32_t jumps;  /* changes of half a cycle, whose direction is undefined */
} bench_motor_t;

typedef struct {
  pca9685_t shields[BENCH_SHIELDS];
  bench_motor_t motors[BENCH_MOTORS];
  uint64_t transactions;
  uint64_t failed;
  bool changed; /* a shaft has moved since this was last cleared */
} motor_bench_t;

void motor_bench_init(motor_bench_t *bench);
/* Power-cycle a shield: registers reset, coils off; shafts keep their positions. */
void motor_bench_power_cycle(motor_bench_t *bench, int shield);
/* A transaction: start with a 7-bit address (false if no chip answers), bytes, stop. */
bool motor_bench_start(motor_bench_t *bench, uint8_t address);
void motor_bench_byte(motor_bench_t *bench, uint8_t address, uint8_t byte);
uint8_t motor_bench_read(motor_bench_t *bench, uint8_t address);
void motor_bench_stop(motor_bench_t *bench, uint8_t address);

#endif
