#include "i2c.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/delay.h>
#include <util/twi.h>

#define FREQUENCY 400000UL
#define PATIENCE 500u /* of 10 us */
#define SCL 0         /* bits of port D; pins 21 and 20 of a Mega */
#define SDA 1

#define GO_ON (_BV(TWINT) | _BV(TWEN) | _BV(TWIE))
#define STOP (_BV(TWINT) | _BV(TWEN) | _BV(TWSTO))

enum { BUSY, DONE, FAILED };

static const uint8_t *volatile next;
static volatile uint8_t left;
static volatile uint8_t address_byte;
static volatile uint8_t outcome;

void i2c_begin(void) {
  /* A chip that was interrupted within a byte by a reset holds the data line low until it has
   * received the remaining clock pulses. */
  PORTD &= (uint8_t)~(_BV(SCL) | _BV(SDA));
  for (uint8_t i = 0; i < 9; i++) {
    DDRD |= _BV(SCL);
    _delay_us(5);
    DDRD &= (uint8_t)~_BV(SCL);
    _delay_us(5);
  }
  PORTD |= _BV(SCL) | _BV(SDA); /* weak pull-ups in addition to those of the shields */
  TWSR = 0;
  TWBR = (F_CPU / FREQUENCY - 16) / 2;
  TWCR = _BV(TWEN);
}

ISR(TWI_vect) {
  switch (TW_STATUS) {
    case TW_START:
    case TW_REP_START:
      TWDR = address_byte;
      TWCR = GO_ON;
      break;
    case TW_MT_SLA_ACK:
    case TW_MT_DATA_ACK:
      if (left > 0) {
        left--;
        TWDR = *next++;
        TWCR = GO_ON;
      } else {
        TWCR = STOP;
        outcome = DONE;
      }
      break;
    default:
      TWCR = STOP;
      outcome = FAILED;
  }
}

bool i2c_write(uint8_t address, const uint8_t *bytes, uint8_t count) {
  uint16_t patience = PATIENCE;
  next = bytes;
  left = count;
  address_byte = (uint8_t)(address << 1) | TW_WRITE;
  outcome = BUSY;
  TWCR = GO_ON | _BV(TWSTA);
  while ((outcome == BUSY || (TWCR & _BV(TWSTO)) != 0) && patience > 0) {
    _delay_us(10);
    patience--;
  }
  if (patience == 0) {
    TWCR = 0; /* release the lines */
    TWCR = _BV(TWEN);
    return false;
  }
  return outcome == DONE;
}
