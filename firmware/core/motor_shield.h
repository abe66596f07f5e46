/* Adafruit Motor Shield V2: a PCA9685 whose 16 PWM channels drive two TB6612 bridges, and through
 * them two stepper motors. This module only composes the bytes; the caller sends them by I2C. */
#ifndef SA_MOTOR_SHIELD_H
#define SA_MOTOR_SHIELD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SA_SHIELD_ADDRESS 0x60u /* first shield; soldered jumpers select 0x61 and 0x62 */
#define SA_SHIELDS 3u
#define SA_SHIELD_BYTES 25u /* a register and six channels of four bytes */
#define SA_SHIELD_WAKE_STEPS 4u

/* Return the I2C address of a motor's shield. */
uint8_t sa_shield_address(uint8_t motor);
/* Compose the transaction that sets both coils of a motor; all six channels change at its end. */
void sa_shield_coils(uint8_t motor, int16_t coil_a, int16_t coil_b,
                     uint8_t bytes[SA_SHIELD_BYTES]);
/* Compose wake-up step `step` of a shield, {register, value}; wait 1 ms between steps. */
void sa_shield_wake(uint8_t step, uint8_t bytes[2]);

#ifdef __cplusplus
}
#endif

#endif
