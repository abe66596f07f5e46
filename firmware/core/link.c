#include "link.h"

void sa_link_init(sa_link_t *link, const sa_board_t *board, uint8_t kind, uint8_t channels,
                  uint8_t reset_cause, uint32_t boot_id) {
  static const sa_counters_t none = {0};
  link->board = *board;
  link->kind = kind;
  link->channels = channels;
  link->reset_cause = reset_cause;
  link->boot_id = boot_id;
  sa_receiver_init(&link->receiver);
  link->state = SA_STATE_BOOT;
  link->cause = SA_CAUSE_NONE;
  link->tx_sequence = 0;
  link->rx_sequence = 0;
  link->rx_known = false;
  link->control_sequence = 0;
  link->control_us = 0;
  link->state_us = board->now_us(board->context);
  link->counters = none;
}

bool sa_link_active(const sa_link_t *link) {
  return link->state == SA_STATE_ARMED || link->state == SA_STATE_RUNNING;
}

static uint32_t key_of(const void *context, uint8_t type) {
  const sa_link_t *link = (const sa_link_t *)context;
  return type >= SA_FIRST_SEALED && type < 0x80u ? link->boot_id : 0u;
}

static void count(uint16_t *counter, uint8_t more) {
  *counter = (uint16_t)(*counter > 0xFFFFu - more ? 0xFFFFu : *counter + more);
}

bool sa_link_byte(sa_link_t *link, uint8_t byte, sa_frame_t *frame) {
  switch (sa_receiver_byte(&link->receiver, byte, key_of, link, frame)) {
    case SA_RX_MALFORMED:
      count(&link->counters.malformed, 1u);
      return false;
    case SA_RX_CORRUPT:
      count(&link->counters.corrupt, 1u);
      return false;
    case SA_RX_FRAME:
      break;
    default:
      return false;
  }
  link->counters.accepted++;
  if (link->rx_known && frame->type != SA_HELLO) {
    const uint8_t step = (uint8_t)(frame->sequence - link->rx_sequence);
    if (step >= 1u && step < 128u) {
      count(&link->counters.lost, (uint8_t)(step - 1u));
      link->rx_sequence = frame->sequence;
    }
  } else {
    link->rx_sequence = frame->sequence;
  }
  link->rx_known = true;
  return true;
}

void sa_link_send(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t length) {
  uint8_t bytes[SA_MAX_ENCODED];
  const uint8_t total = sa_frame_encode(type, link->tx_sequence, payload, length, 0u, bytes);
  link->tx_sequence++;
  link->board.send(link->board.context, bytes, total);
}

void sa_link_answer(sa_link_t *link, const sa_frame_t *frame, uint8_t result) {
  const uint8_t payload[3] = {frame->type, frame->sequence, result};
  if (result != SA_OK) {
    count(&link->counters.refused, 1u);
  }
  sa_link_send(link, SA_ACK, payload, 3u);
}

void sa_link_stop(sa_link_t *link, uint8_t state, uint8_t cause) {
  if (link->state == SA_STATE_BOOT || link->state == SA_STATE_FAULT) {
    return; /* in BOOT nothing moves; a fault is not overwritten */
  }
  if (link->state == SA_STATE_STOPPED && state == SA_STATE_STOPPED) {
    return; /* report the first cause */
  }
  link->state = state;
  link->cause = cause;
}

void sa_link_watchdog(sa_link_t *link) {
  if (sa_link_active(link) &&
      link->board.now_us(link->board.context) - link->control_us >= SA_WATCHDOG_US) {
    sa_link_stop(link, SA_STATE_STOPPED, SA_CAUSE_WATCHDOG);
  }
}

static uint8_t hello(sa_link_t *link, const sa_frame_t *frame) {
  if (sa_link_active(link)) {
    sa_link_stop(link, SA_STATE_STOPPED, SA_CAUSE_NEW_HOST);
  }
  if (frame->payload[0] != SA_PROTOCOL_VERSION) {
    return SA_ERROR_VERSION;
  }
  if (link->state == SA_STATE_BOOT) {
    link->state = SA_STATE_IDLE;
  }
  return SA_OK;
}

static void hello_reply(sa_link_t *link) {
  uint8_t payload[10] = {SA_PROTOCOL_VERSION, link->kind,     SA_FIRMWARE_MAJOR,
                         SA_FIRMWARE_MINOR,   link->channels, link->reset_cause};
  (void)sa_put_u32(payload + 6, link->boot_id);
  sa_link_send(link, SA_HELLO_REPLY, payload, 10u);
}

static void pong(sa_link_t *link, const sa_frame_t *frame) {
  uint8_t payload[8];
  uint8_t *end = sa_put_u32(payload, sa_get_u32(frame->payload));
  (void)sa_put_u32(end, link->board.now_us(link->board.context));
  sa_link_send(link, SA_PONG, payload, 8u);
}

static void counters(sa_link_t *link) {
  uint8_t payload[26];
  const sa_counters_t *c = &link->counters;
  uint8_t *at = sa_put_u32(payload, c->accepted);
  at = sa_put_u16(at, c->corrupt);
  at = sa_put_u16(at, c->malformed);
  at = sa_put_u16(at, c->lost);
  at = sa_put_u16(at, c->stale);
  at = sa_put_u16(at, c->refused);
  at = sa_put_u16(at, c->skipped_states);
  at = sa_put_u32(at, c->stalled);
  at = sa_put_u32(at, c->writes);
  (void)sa_put_u16(at, c->write_errors);
  sa_link_send(link, SA_COUNTERS, payload, 26u);
}

static uint8_t arm(sa_link_t *link, const sa_frame_t *frame, uint8_t arm_result) {
  if (link->state != SA_STATE_IDLE) {
    return SA_ERROR_STATE;
  }
  if (arm_result != SA_OK) {
    return arm_result;
  }
  link->state = SA_STATE_ARMED;
  link->cause = SA_CAUSE_NONE;
  link->control_sequence = frame->sequence; /* control frames sent before ARM are stale */
  link->control_us = link->board.now_us(link->board.context);
  return SA_OK;
}

bool sa_link_handle(sa_link_t *link, const sa_frame_t *frame, uint8_t arm_result) {
  const uint8_t wanted = frame->type == SA_HELLO ? 1u : frame->type == SA_PING ? 4u : 0u;
  uint8_t result = SA_OK;
  switch (frame->type) {
    case SA_HELLO:
    case SA_PING:
    case SA_GET_COUNTERS:
    case SA_STOP:
    case SA_DISARM:
    case SA_ARM:
    case SA_RESET:
      break;
    default:
      return false;
  }
  if (frame->type == SA_STOP) {
    /* A STOP frame is obeyed whatever its payload. */
    sa_link_stop(link, SA_STATE_STOPPED, SA_CAUSE_STOP_FRAME);
  } else if (frame->count != wanted) {
    result = SA_ERROR_LENGTH;
  } else if (frame->type == SA_HELLO) {
    result = hello(link, frame);
    hello_reply(link);
    if (result == SA_OK) {
      return true;
    }
  } else if (frame->type == SA_PING) {
    pong(link, frame);
    return true;
  } else if (frame->type == SA_GET_COUNTERS) {
    counters(link);
    return true;
  } else if (frame->type == SA_ARM) {
    result = arm(link, frame, arm_result);
  } else if (frame->type == SA_DISARM) {
    if (sa_link_active(link)) {
      link->state = SA_STATE_IDLE;
    } else if (link->state != SA_STATE_IDLE) {
      result = SA_ERROR_STATE;
    }
  } else if (link->state == SA_STATE_STOPPED || link->state == SA_STATE_FAULT) {
    link->state = SA_STATE_IDLE; /* SA_RESET */
    link->cause = SA_CAUSE_NONE;
  } else if (link->state != SA_STATE_IDLE) {
    result = SA_ERROR_STATE;
  }
  sa_link_answer(link, frame, result);
  return true;
}

uint8_t sa_link_control(sa_link_t *link, const sa_frame_t *frame, uint8_t length) {
  uint8_t result = SA_OK;
  if (frame->count != length) {
    result = SA_ERROR_LENGTH;
  } else if (!sa_link_active(link)) {
    result = SA_ERROR_STATE;
  } else {
    const uint8_t step = (uint8_t)(frame->sequence - link->control_sequence);
    if (step == 0u || step >= 128u) {
      count(&link->counters.stale, 1u);
      return SA_LINK_STALE;
    }
  }
  if (result != SA_OK) {
    sa_link_answer(link, frame, result);
  }
  return result;
}

void sa_link_control_accepted(sa_link_t *link, const sa_frame_t *frame) {
  link->control_sequence = frame->sequence;
  link->control_us = link->board.now_us(link->board.context);
  link->state = SA_STATE_RUNNING;
}

bool sa_link_state_due(sa_link_t *link, uint32_t period_us) {
  const uint32_t late = link->board.now_us(link->board.context) - link->state_us;
  if (late < period_us) {
    return false;
  }
  link->state_us += late < 2u * period_us ? period_us : late;
  return true;
}

void sa_link_send_state(sa_link_t *link, uint8_t type, const uint8_t *payload, uint8_t length) {
  if (link->board.room(link->board.context) < (uint8_t)(length + SA_FRAME_OVERHEAD + 2u)) {
    count(&link->counters.skipped_states, 1u);
    link->tx_sequence++; /* so that the host counts the frame as lost */
    return;
  }
  sa_link_send(link, type, payload, length);
}
