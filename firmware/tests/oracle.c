#include "oracle.h"

static uint16_t ccitt_false(const uint8_t *data, size_t count) {
  uint16_t crc = 0xFFFF;
  for (size_t i = 0; i < 8 * count; i++) {
    const int feedback = (crc >> 15) ^ (data[i / 8] >> (7 - i % 8) & 1);
    crc = (uint16_t)((crc << 1) ^ (feedback ? 0x1021 : 0));
  }
  return crc;
}

static uint16_t modbus(uint16_t crc, const uint8_t *data, size_t count) {
  for (size_t i = 0; i < 8 * count; i++) {
    const int feedback = (crc & 1) ^ (data[i / 8] >> (i % 8) & 1);
    crc = (uint16_t)((crc >> 1) ^ (feedback ? 0xA001 : 0));
  }
  return crc;
}

bool oracle_valid(const uint8_t *encoded, size_t count, uint32_t boot_id, uint8_t *type) {
  uint8_t raw[256];
  size_t length = 0;
  if (count > 135) {
    return false;
  }
  for (size_t at = 0; at < count;) {
    const size_t code = encoded[at++];
    for (size_t i = 1; i < code; i++) {
      if (at >= count) {
        return false;
      }
      raw[length++] = encoded[at++];
    }
    if (at < count) {
      raw[length++] = 0;
    }
  }
  if (length < 6 || length > 134) {
    return false;
  }
  const uint32_t key = raw[0] >= 0x10 && raw[0] < 0x80 ? boot_id : 0;
  const uint8_t bytes[4] = {(uint8_t)key, (uint8_t)(key >> 8), (uint8_t)(key >> 16),
                            (uint8_t)(key >> 24)};
  const uint16_t seal = modbus(modbus(0xFFFF, bytes, 4), raw, length - 4);
  const uint16_t crc = ccitt_false(raw, length - 2);
  *type = raw[0];
  return raw[length - 4] == (seal & 0xFF) && raw[length - 3] == seal >> 8 &&
         raw[length - 2] == (crc & 0xFF) && raw[length - 1] == crc >> 8;
}
