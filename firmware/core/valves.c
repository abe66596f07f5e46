#include "valves.h"

#define TICK_US 1000u

static bool is_open(const sa_valves_t *valves, uint8_t output) {
  return ((valves->open[output / 8u] >> (output % 8u)) & 1u) != 0u;
}

static void write(sa_valves_t *valves) {
  valves->link.counters.writes++;
  valves->outputs.write(valves->outputs.context, valves->open);
}

void sa_valves_init(sa_valves_t *valves, const sa_board_t *board, const sa_outputs_t *outputs,
                    uint8_t reset_cause, uint32_t boot_id) {
  sa_link_init(&valves->link, board, SA_KIND_VALVES, SA_VALVES, reset_cause, boot_id);
  valves->outputs = *outputs;
  valves->cap_ms = 0;
  valves->dead_ms = 0;
  valves->configured = false;
  valves->has_batch = false;
  valves->batch = 0;
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    valves->left_ms[i] = 0;
    valves->closed_ms[i] = SA_MOST_DEAD_MS;
  }
  for (uint8_t i = 0; i < SA_VALVE_BYTES; i++) {
    valves->open[i] = 0;
  }
  valves->tick_us = board->now_us(board->context);
  write(valves);
}

/* Set the outputs according to the timers: first close valves, then open others. */
static void update(sa_valves_t *valves) {
  bool changed = false;
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    if (is_open(valves, i) && valves->left_ms[i] == 0u) {
      valves->open[i / 8u] &= (uint8_t)~(1u << (i % 8u));
      valves->closed_ms[i] = 0;
      changed = true;
    }
  }
  if (changed) {
    write(valves);
    changed = false;
  }
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    const uint8_t other = i ^ 1u;
    if (valves->left_ms[i] > 0u && !is_open(valves, i) && !is_open(valves, other) &&
        valves->closed_ms[other] >= valves->dead_ms) {
      valves->open[i / 8u] |= (uint8_t)(1u << (i % 8u));
      changed = true;
    }
  }
  if (changed) {
    write(valves);
  }
}

static void tick(sa_valves_t *valves) {
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    if (is_open(valves, i)) {
      if (valves->left_ms[i] > 0u) {
        valves->left_ms[i]--;
      }
    } else if (valves->closed_ms[i] < SA_MOST_DEAD_MS) {
      valves->closed_ms[i]++;
    }
  }
}

/* Advance the timers to the present. A late loop makes up for all missed ticks, so that no valve
 * stays open too long. */
static void catch_up(sa_valves_t *valves) {
  const sa_board_t *board = &valves->link.board;
  while (board->now_us(board->context) - valves->tick_us >= TICK_US) {
    valves->tick_us += TICK_US;
    tick(valves);
    update(valves);
  }
}

static void close_all(sa_valves_t *valves) {
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    valves->left_ms[i] = 0;
  }
  valves->has_batch = false;
  update(valves);
}

static uint8_t configure(sa_valves_t *valves, const sa_frame_t *frame) {
  if (frame->count != 4u) {
    return SA_ERROR_LENGTH;
  }
  if (valves->link.state != SA_STATE_IDLE) {
    return SA_ERROR_STATE;
  }
  const uint16_t cap_ms = sa_get_u16(frame->payload);
  const uint16_t dead_ms = sa_get_u16(frame->payload + 2);
  if (cap_ms == 0u || cap_ms > SA_MOST_OPEN_MS || dead_ms > SA_MOST_DEAD_MS) {
    return SA_ERROR_VALUE;
  }
  valves->cap_ms = cap_ms;
  valves->dead_ms = (uint8_t)dead_ms;
  valves->configured = true;
  return SA_OK;
}

static void open(sa_valves_t *valves, const sa_frame_t *frame) {
  if (sa_link_control(&valves->link, frame, 2u + 2u * SA_VALVES) != SA_OK) {
    return;
  }
  const uint8_t *times = frame->payload + 2;
  for (uint8_t i = 0; i < SA_VALVES; i++) {
    const uint16_t time_ms = sa_get_u16(times + 2u * i);
    if (time_ms > valves->cap_ms && time_ms != SA_GO_ON) {
      sa_link_answer(&valves->link, frame, SA_ERROR_LIMIT);
      return;
    }
    if (time_ms > 0u && sa_get_u16(times + 2u * (i ^ 1u)) > 0u) {
      sa_link_answer(&valves->link, frame, SA_ERROR_INTERLOCK);
      return;
    }
  }
  const uint16_t batch = sa_get_u16(frame->payload);
  if (!valves->has_batch || batch != valves->batch) {
    catch_up(valves); /* elapsed time counts for the old times; the new times begin now */
    for (uint8_t i = 0; i < SA_VALVES; i++) {
      const uint16_t time_ms = sa_get_u16(times + 2u * i);
      if (time_ms != SA_GO_ON) {
        valves->left_ms[i] = time_ms;
      }
    }
    valves->batch = batch;
    valves->has_batch = true; /* outputs change at the next tick, so times are whole ticks */
  }
  sa_link_control_accepted(&valves->link, frame);
}

static void keep(sa_valves_t *valves, const sa_frame_t *frame) {
  if (sa_link_control(&valves->link, frame, 2u) != SA_OK) {
    return;
  }
  if (!valves->has_batch || sa_get_u16(frame->payload) != valves->batch) {
    sa_link_answer(&valves->link, frame, SA_ERROR_BATCH);
    return;
  }
  sa_link_control_accepted(&valves->link, frame);
}

void sa_valves_byte(sa_valves_t *valves, uint8_t byte) {
  sa_frame_t frame;
  if (!sa_link_byte(&valves->link, byte, &frame)) {
    return;
  }
  switch (frame.type) {
    case SA_OPEN:
      open(valves, &frame);
      return;
    case SA_KEEP:
      keep(valves, &frame);
      return;
    case SA_VALVE_CONFIG:
      sa_link_answer(&valves->link, &frame, configure(valves, &frame));
      return;
    default:
      break;
  }
  if (!sa_link_handle(&valves->link, &frame,
                      valves->configured ? SA_OK : SA_ERROR_NOT_READY)) {
    sa_link_answer(&valves->link, &frame, SA_ERROR_TYPE);
  }
  if (!sa_link_active(&valves->link)) {
    close_all(valves);
  }
}

static void send_state(sa_valves_t *valves) {
  uint8_t payload[9u + SA_VALVE_BYTES];
  sa_link_t *link = &valves->link;
  uint8_t *at = sa_put_u32(payload, link->board.now_us(link->board.context));
  *at++ = link->state;
  *at++ = link->cause;
  *at++ = link->control_sequence;
  at = sa_put_u16(at, valves->batch);
  for (uint8_t i = 0; i < SA_VALVE_BYTES; i++) {
    *at++ = valves->open[i];
  }
  sa_link_send_state(link, SA_VALVE_STATE, payload, (uint8_t)sizeof payload);
}

void sa_valves_poll(sa_valves_t *valves) {
  sa_link_watchdog(&valves->link);
  if (!sa_link_active(&valves->link)) {
    close_all(valves);
  }
  catch_up(valves);
  if (sa_link_state_due(&valves->link, SA_VALVE_STATE_US)) {
    send_state(valves);
  }
}
