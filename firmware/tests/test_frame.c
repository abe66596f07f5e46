/* Tests of the codec against the golden vectors and against itself. */
#include "tests.h"

#include <string.h>

#include "check.h"
#include "golden_vectors.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static uint32_t key_of(const void *context, uint8_t type) {
  (void)context;
  return type >= 0x10u && type < 0x80u ? GOLDEN_BOOT_ID : 0u;
}

static sa_rx_t feed(sa_receiver_t *receiver, const uint8_t *bytes, uint16_t count,
                    sa_frame_t *frame) {
  sa_rx_t last = SA_RX_NOTHING;
  for (uint16_t i = 0; i < count; i++) {
    CHECK_EQUAL(last, SA_RX_NOTHING);
    last = sa_receiver_byte(receiver, bytes[i], key_of, NULL, frame);
  }
  return last;
}

static void crcs_are_the_golden_ones(void) {
  for (size_t i = 0; i < COUNT(GOLDEN_CRC); i++) {
    const golden_crc_t *v = &GOLDEN_CRC[i];
    CHECK_EQUAL(sa_crc_ccitt(0xFFFFu, v->data, v->count), v->ccitt_false);
    CHECK_EQUAL(sa_crc_modbus(0xFFFFu, v->data, v->count), v->modbus);
  }
}

static void golden_frames_are_encoded(void) {
  for (size_t i = 0; i < COUNT(GOLDEN_FRAMES); i++) {
    const golden_frames_t *v = &GOLDEN_FRAMES[i];
    uint8_t out[SA_MAX_ENCODED];
    CHECK_EQUAL(sa_frame_encode(v->type, v->sequence, v->payload, v->count, v->key, out),
                v->encoded_count);
    CHECK(memcmp(out, v->encoded, v->encoded_count) == 0);
  }
}

static void golden_frames_are_received(void) {
  sa_receiver_t receiver;
  sa_receiver_init(&receiver);
  for (size_t i = 0; i < COUNT(GOLDEN_FRAMES); i++) {
    const golden_frames_t *v = &GOLDEN_FRAMES[i];
    sa_frame_t frame;
    CHECK_EQUAL(feed(&receiver, v->encoded, v->encoded_count, &frame), SA_RX_FRAME);
    CHECK_EQUAL(frame.type, v->type);
    CHECK_EQUAL(frame.sequence, v->sequence);
    CHECK_EQUAL(frame.count, v->count);
    CHECK(memcmp(frame.payload, v->payload, v->count) == 0);
  }
}

static void golden_nonsense_is_refused(void) {
  sa_receiver_t receiver;
  sa_receiver_init(&receiver);
  for (size_t i = 0; i < COUNT(GOLDEN_INVALID); i++) {
    const golden_invalid_t *v = &GOLDEN_INVALID[i];
    sa_frame_t frame;
    CHECK_EQUAL(feed(&receiver, v->bytes, v->count, &frame), SA_RX_NOTHING);
    CHECK_EQUAL(sa_receiver_byte(&receiver, 0, key_of, NULL, &frame), v->verdict);
    /* The next frame is received correctly. */
    const golden_frames_t *good = &GOLDEN_FRAMES[i % COUNT(GOLDEN_FRAMES)];
    CHECK_EQUAL(feed(&receiver, good->encoded, good->encoded_count, &frame), SA_RX_FRAME);
  }
}

static void cobs_of_all_lengths_comes_back(void) {
  uint32_t random = 1;
  for (uint16_t count = 0; count < 254; count++) {
    for (int zeros = 0; zeros < 4; zeros++) {
      uint8_t data[254];
      uint8_t coded[256];
      for (uint16_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = zeros == 3 || (random >> 30) < (uint32_t)zeros ? 0 : (uint8_t)(random >> 16);
      }
      const uint8_t length = sa_cobs_encode(data, (uint8_t)count, coded);
      CHECK_EQUAL(length, count + 1);
      CHECK(memchr(coded, 0, length) == NULL);
      CHECK_EQUAL(sa_cobs_decode(coded, length), count);
      CHECK(memcmp(coded, data, count) == 0);
    }
  }
}

static void every_single_and_double_bit_error_is_found(void) {
  const golden_frames_t *v = &GOLDEN_FRAMES[11]; /* targets */
  const uint16_t bits = (uint16_t)(8u * (v->encoded_count - 1u));
  for (uint16_t first = 0; first < bits; first++) {
    for (uint16_t second = first; second < bits; second++) {
      uint8_t bytes[SA_MAX_ENCODED];
      sa_receiver_t receiver;
      sa_frame_t frame;
      memcpy(bytes, v->encoded, v->encoded_count);
      bytes[first / 8] ^= (uint8_t)(1u << (first % 8));
      if (second != first) {
        bytes[second / 8] ^= (uint8_t)(1u << (second % 8));
      }
      sa_receiver_init(&receiver);
      for (uint8_t i = 0; i < v->encoded_count; i++) {
        CHECK(sa_receiver_byte(&receiver, bytes[i], key_of, NULL, &frame) != SA_RX_FRAME);
      }
    }
  }
}

void run_frame_tests(void) {
  RUN(crcs_are_the_golden_ones);
  RUN(golden_frames_are_encoded);
  RUN(golden_frames_are_received);
  RUN(golden_nonsense_is_refused);
  RUN(cobs_of_all_lengths_comes_back);
  RUN(every_single_and_double_bit_error_is_found);
}
