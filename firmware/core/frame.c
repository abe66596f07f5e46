#include "frame.h"

/* Nibble tables: 64 bytes of memory, a third of the time of the bitwise computation. */
static const uint16_t CCITT[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50A5, 0x60C6, 0x70E7,
    0x8108, 0x9129, 0xA14A, 0xB16B, 0xC18C, 0xD1AD, 0xE1CE, 0xF1EF,
};
static const uint16_t MODBUS[16] = {
    0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401,
    0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400,
};

uint16_t sa_crc_ccitt(uint16_t crc, const uint8_t *data, uint8_t count) {
  while (count-- > 0u) {
    const uint8_t byte = *data++;
    crc = (uint16_t)((crc << 4) ^ CCITT[(uint8_t)(crc >> 12) ^ (byte >> 4)]);
    crc = (uint16_t)((crc << 4) ^ CCITT[(uint8_t)(crc >> 12) ^ (byte & 0x0Fu)]);
  }
  return crc;
}

uint16_t sa_crc_modbus(uint16_t crc, const uint8_t *data, uint8_t count) {
  while (count-- > 0u) {
    const uint8_t byte = *data++;
    crc = (uint16_t)((crc >> 4) ^ MODBUS[(crc ^ byte) & 0x0Fu]);
    crc = (uint16_t)((crc >> 4) ^ MODBUS[(crc ^ (byte >> 4)) & 0x0Fu]);
  }
  return crc;
}

uint8_t sa_cobs_encode(const uint8_t *data, uint8_t count, uint8_t *out) {
  uint8_t *code = out;
  uint8_t *end = out + 1;
  *code = 1u;
  while (count-- > 0u) {
    const uint8_t byte = *data++;
    if (byte != 0u) {
      *end++ = byte;
      *code = (uint8_t)(*code + 1u);
    } else {
      code = end++;
      *code = 1u;
    }
  }
  return (uint8_t)(end - out);
}

int16_t sa_cobs_decode(uint8_t *data, uint8_t count) {
  uint8_t from = 0;
  uint8_t to = 0;
  if (count == 0u) {
    return -1;
  }
  while (from < count) {
    const uint8_t code = data[from++];
    uint8_t left = (uint8_t)(code - 1u);
    if (code == 0u || left > (uint8_t)(count - from)) {
      return -1;
    }
    while (left-- > 0u) {
      if (data[from] == 0u) {
        return -1;
      }
      data[to++] = data[from++];
    }
    /* Code 255 means 254 bytes without a zero; frames are too short to contain one. */
    if (from < count) {
      if (code == 0xFFu) {
        return -1;
      }
      data[to++] = 0u;
    }
  }
  return (int16_t)to;
}

static uint16_t seal(uint32_t key, const uint8_t *raw, uint8_t count) {
  uint8_t bytes[4];
  (void)sa_put_u32(bytes, key);
  return sa_crc_modbus(sa_crc_modbus(0xFFFFu, bytes, 4u), raw, count);
}

uint8_t sa_frame_encode(uint8_t type, uint8_t sequence, const uint8_t *payload, uint8_t count,
                        uint32_t key, uint8_t *out) {
  uint8_t raw[SA_MAX_RAW];
  uint8_t length = 2u;
  raw[0] = type;
  raw[1] = sequence;
  for (uint8_t i = 0; i < count && i < SA_MAX_PAYLOAD; i++) {
    raw[length++] = payload[i];
  }
  (void)sa_put_u16(raw + length, seal(key, raw, length));
  length = (uint8_t)(length + 2u);
  (void)sa_put_u16(raw + length, sa_crc_ccitt(0xFFFFu, raw, length));
  length = (uint8_t)(length + 2u);
  length = sa_cobs_encode(raw, length, out);
  out[length] = 0u;
  return (uint8_t)(length + 1u);
}

void sa_receiver_init(sa_receiver_t *receiver) {
  receiver->count = 0;
  receiver->overflow = false;
}

sa_rx_t sa_receiver_byte(sa_receiver_t *receiver, uint8_t byte, sa_key_of_t key_of,
                         const void *context, sa_frame_t *frame) {
  if (byte != 0u) {
    if (receiver->count < SA_MAX_ENCODED) {
      receiver->buffer[receiver->count++] = byte;
    } else {
      receiver->overflow = true;
    }
    return SA_RX_NOTHING;
  }
  const uint8_t encoded = receiver->count;
  const bool overflow = receiver->overflow;
  sa_receiver_init(receiver);
  if (encoded == 0u && !overflow) {
    return SA_RX_NOTHING; /* repeated delimiter: a host sends one first to end any garbage */
  }
  uint8_t *raw = receiver->buffer;
  const int16_t length = overflow ? -1 : sa_cobs_decode(raw, encoded);
  if (length < (int16_t)SA_FRAME_OVERHEAD || length > (int16_t)SA_MAX_RAW) {
    return SA_RX_MALFORMED;
  }
  const uint8_t body = (uint8_t)(length - 4);
  if (sa_get_u16(raw + body + 2) != sa_crc_ccitt(0xFFFFu, raw, (uint8_t)(body + 2u)) ||
      sa_get_u16(raw + body) != seal(key_of(context, raw[0]), raw, body)) {
    return SA_RX_CORRUPT;
  }
  frame->type = raw[0];
  frame->sequence = raw[1];
  frame->count = (uint8_t)(body - 2u);
  frame->payload = raw + 2;
  return SA_RX_FRAME;
}

uint16_t sa_get_u16(const uint8_t *at) { return (uint16_t)(at[0] | ((uint16_t)at[1] << 8)); }

uint32_t sa_get_u32(const uint8_t *at) {
  return (uint32_t)sa_get_u16(at) | ((uint32_t)sa_get_u16(at + 2) << 16);
}

int32_t sa_get_i32(const uint8_t *at) { return (int32_t)sa_get_u32(at); }

uint8_t *sa_put_u16(uint8_t *at, uint16_t value) {
  at[0] = (uint8_t)(value & 0xFFu);
  at[1] = (uint8_t)(value >> 8);
  return at + 2;
}

uint8_t *sa_put_u32(uint8_t *at, uint32_t value) {
  return sa_put_u16(sa_put_u16(at, (uint16_t)(value & 0xFFFFu)), (uint16_t)(value >> 16));
}
