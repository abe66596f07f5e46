#include "stepper.h"

/* A late loop makes up for at most MAX_LATE_TICKS ticks; further ticks are dropped, which slows the
 * motion. At most TICKS_A_POLL run in one poll, because a long poll loses bytes of the line. */
#define MAX_LATE_TICKS 5u
#define TICKS_A_POLL 2u

static const int16_t QUARTER_SINE[17] = {0,    401,  799,  1189, 1567, 1930, 2275, 2598, 2896,
                                         3166, 3405, 3612, 3784, 3919, 4016, 4075, 4095};

static int16_t sine(uint8_t angle) {
  const uint8_t within = angle & 15u;
  switch ((angle >> 4) & 3u) {
    case 0:
      return QUARTER_SINE[within];
    case 1:
      return QUARTER_SINE[16u - within];
    case 2:
      return (int16_t)-QUARTER_SINE[within];
    default:
      return (int16_t)-QUARTER_SINE[16u - within];
  }
}

void sa_stepper_currents(int32_t position, int16_t *coil_a, int16_t *coil_b) {
  const uint8_t angle = (uint8_t)((uint32_t)position & (SA_ELECTRICAL_CYCLE - 1));
  *coil_a = sine((uint8_t)(angle + 16u)); /* cosine */
  *coil_b = sine(angle);
}

void sa_stepper_init(sa_stepper_t *stepper, const sa_board_t *board, const sa_coils_t *coils,
                     uint8_t reset_cause, uint32_t boot_id) {
  static const sa_motor_t none = {0};
  sa_link_init(&stepper->link, board, SA_KIND_STEPPERS, SA_MOTORS, reset_cause, boot_id);
  stepper->coils = *coils;
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    stepper->motors[m] = none;
  }
  stepper->configured = 0;
  stepper->zeroed = 0;
  stepper->energised = 0;
  stepper->stalled = 0;
  stepper->next = 0;
  stepper->awake = 0;
  stepper->tick_us = board->now_us(board->context);
}

static bool has(uint8_t mask, uint8_t motor) { return ((mask >> motor) & 1u) != 0u; }

static bool moving(const sa_motor_t *motor) {
  return motor->ramp.velocity != 0 || motor->coil != motor->ramp.position;
}

static uint8_t moving_mask(const sa_stepper_t *stepper) {
  uint8_t mask = 0;
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    mask |= (uint8_t)(moving(&stepper->motors[m]) ? 1u << m : 0u);
  }
  return mask;
}

static bool write_coils(sa_stepper_t *stepper, uint8_t m, int32_t position) {
  int16_t coil_a;
  int16_t coil_b;
  sa_stepper_currents(position + stepper->motors[m].phase, &coil_a, &coil_b);
  stepper->link.counters.writes++;
  if (stepper->coils.write(stepper->coils.context, m, coil_a, coil_b)) {
    stepper->motors[m].coil = position;
    stepper->motors[m].failures = 0;
    return true;
  }
  stepper->link.counters.write_errors++;
  stepper->motors[m].failures++;
  return false;
}

static uint8_t configure(sa_stepper_t *stepper, const sa_frame_t *frame) {
  const uint8_t *p = frame->payload;
  sa_ramp_limits_t limits;
  if (frame->count != 19u) {
    return SA_ERROR_LENGTH;
  }
  if (stepper->link.state != SA_STATE_IDLE) {
    return SA_ERROR_STATE;
  }
  const uint8_t m = p[0];
  const int32_t minimum = sa_get_i32(p + 11);
  const int32_t maximum = sa_get_i32(p + 15);
  const int32_t most = 1l << 28;
  if (m >= SA_MOTORS || minimum >= maximum || minimum < -most || maximum > most ||
      !sa_ramp_limits(&limits, sa_get_u16(p + 1), sa_get_u32(p + 3), sa_get_u32(p + 7))) {
    return SA_ERROR_VALUE;
  }
  sa_motor_t *motor = &stepper->motors[m];
  if (moving(motor)) {
    return SA_ERROR_MOVING;
  }
  if (has(stepper->zeroed, m) && (motor->coil < minimum || motor->coil > maximum)) {
    return SA_ERROR_LIMIT;
  }
  motor->limits = limits;
  motor->minimum = minimum;
  motor->maximum = maximum;
  stepper->configured |= (uint8_t)(1u << m);
  return SA_OK;
}

static bool wake(sa_stepper_t *stepper, uint8_t shield) {
  if (!has(stepper->awake, shield)) {
    stepper->energised &= (uint8_t)~(3u << (2u * shield));
    if (!stepper->coils.begin(stepper->coils.context, shield)) {
      stepper->link.counters.write_errors++;
      return false;
    }
    stepper->awake |= (uint8_t)(1u << shield);
  }
  return true;
}

/* Define the present place of a motor as `position`. An energised motor keeps its coil currents. */
static bool set_zero(sa_stepper_t *stepper, uint8_t m, int32_t position) {
  sa_motor_t *motor = &stepper->motors[m];
  const uint8_t bit = (uint8_t)(1u << m);
  stepper->zeroed &= (uint8_t)~bit;
  if (!wake(stepper, SA_SHIELD_OF(m))) {
    return false;
  }
  const uint8_t phase = motor->phase;
  const uint32_t angle = (uint32_t)motor->coil + phase;
  motor->phase = has(stepper->energised, m)
                     ? (uint8_t)((angle - (uint32_t)position) & (SA_ELECTRICAL_CYCLE - 1))
                     : 0u;
  if (!write_coils(stepper, m, position)) {
    motor->phase = phase; /* the coils keep their currents */
    return false;
  }
  sa_ramp_init(&motor->ramp, position);
  motor->target = position;
  stepper->energised |= bit;
  stepper->zeroed |= bit;
  return true;
}

static uint8_t zero(sa_stepper_t *stepper, const sa_frame_t *frame) {
  if (frame->count != 1u + 4u * SA_MOTORS) {
    return SA_ERROR_LENGTH;
  }
  if (stepper->link.state != SA_STATE_IDLE) {
    return SA_ERROR_STATE;
  }
  const uint8_t mask = frame->payload[0];
  if (mask == 0u || (mask >> SA_MOTORS) != 0u) {
    return SA_ERROR_VALUE;
  }
  if ((mask & (uint8_t)~stepper->configured) != 0u) {
    return SA_ERROR_NOT_READY;
  }
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    const sa_motor_t *motor = &stepper->motors[m];
    const int32_t position = sa_get_i32(frame->payload + 1u + 4u * m);
    if (has(mask, m) && moving(motor)) {
      return SA_ERROR_MOVING;
    }
    if (has(mask, m) && (position < motor->minimum || position > motor->maximum)) {
      return SA_ERROR_LIMIT;
    }
  }
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    if (has(mask, m) && !set_zero(stepper, m, sa_get_i32(frame->payload + 1u + 4u * m))) {
      return SA_ERROR_COIL_BUS;
    }
  }
  return SA_OK;
}

static uint8_t release(sa_stepper_t *stepper, const sa_frame_t *frame) {
  if (frame->count != 0u) {
    return SA_ERROR_LENGTH;
  }
  if (sa_link_active(&stepper->link) || stepper->link.state == SA_STATE_BOOT) {
    return SA_ERROR_STATE;
  }
  if (moving_mask(stepper) != 0u) {
    return SA_ERROR_MOVING;
  }
  stepper->zeroed = 0; /* a free shaft may turn */
  uint8_t result = SA_OK;
  stepper->energised = 0;
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    if (!has(stepper->awake, SA_SHIELD_OF(m))) {
      continue;
    }
    stepper->link.counters.writes++;
    if (!stepper->coils.write(stepper->coils.context, m, 0, 0)) {
      stepper->link.counters.write_errors++;
      result = SA_ERROR_COIL_BUS; /* continue: release the other motors */
    }
  }
  return result;
}

static void follow(sa_stepper_t *stepper, const sa_frame_t *frame) {
  if (sa_link_control(&stepper->link, frame, 4u * SA_MOTORS) != SA_OK) {
    return;
  }
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    const int32_t target = sa_get_i32(frame->payload + 4u * m);
    const sa_motor_t *motor = &stepper->motors[m];
    /* An unconfigured motor accepts only the target 0. */
    const bool allowed = has(stepper->configured, m)
                             ? target >= motor->minimum && target <= motor->maximum
                             : target == 0;
    if (!allowed) {
      sa_link_answer(&stepper->link, frame, SA_ERROR_LIMIT);
      return;
    }
  }
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    stepper->motors[m].target = sa_get_i32(frame->payload + 4u * m);
  }
  sa_link_control_accepted(&stepper->link, frame);
}

static uint8_t ready(const sa_stepper_t *stepper) {
  if (stepper->configured == 0u || stepper->zeroed != stepper->configured) {
    return SA_ERROR_NOT_READY;
  }
  return moving_mask(stepper) != 0u ? SA_ERROR_MOVING : SA_OK;
}

void sa_stepper_byte(sa_stepper_t *stepper, uint8_t byte) {
  sa_frame_t frame;
  if (!sa_link_byte(&stepper->link, byte, &frame)) {
    return;
  }
  switch (frame.type) {
    case SA_TARGETS:
      follow(stepper, &frame);
      return;
    case SA_STEPPER_CONFIG:
      sa_link_answer(&stepper->link, &frame, configure(stepper, &frame));
      return;
    case SA_ZERO:
      sa_link_answer(&stepper->link, &frame, zero(stepper, &frame));
      return;
    case SA_RELEASE:
      sa_link_answer(&stepper->link, &frame, release(stepper, &frame));
      return;
    default:
      break;
  }
  const bool was_active = sa_link_active(&stepper->link);
  if (!sa_link_handle(&stepper->link, &frame, ready(stepper))) {
    sa_link_answer(&stepper->link, &frame, SA_ERROR_TYPE);
  }
  if (!was_active && sa_link_active(&stepper->link)) {
    for (uint8_t m = 0; m < SA_MOTORS; m++) {
      stepper->motors[m].target = stepper->motors[m].coil;
    }
  }
}

static void tick(sa_stepper_t *stepper) {
  const bool active = sa_link_active(&stepper->link);
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    sa_motor_t *motor = &stepper->motors[m];
    if (!has(stepper->zeroed, m)) {
      continue;
    }
    const int32_t lag = motor->ramp.position - motor->coil;
    const bool held = lag >= SA_MAX_LAG || lag <= -SA_MAX_LAG;
    if (held) {
      stepper->stalled |= (uint8_t)(1u << m);
      stepper->link.counters.stalled++;
    }
    if (!active) {
      sa_ramp_brake(&motor->ramp, &motor->limits, held); /* a slow bus must not prolong a stop */
    } else if (!held) {
      sa_ramp_tick(&motor->ramp, &motor->limits, motor->target);
    }
  }
}

/* Enter FAULT: the motor positions are no longer known, so all ramps end at the coil positions.
 * The other shields keep holding their motors. */
static void fail(sa_stepper_t *stepper, uint8_t shield) {
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    sa_ramp_init(&stepper->motors[m].ramp, stepper->motors[m].coil);
    stepper->motors[m].failures = 0;
  }
  stepper->zeroed = 0;
  stepper->awake &= (uint8_t)~(1u << shield);
  sa_link_stop(&stepper->link, SA_STATE_FAULT, SA_CAUSE_COIL_BUS);
}

static void write_next(sa_stepper_t *stepper) {
  for (uint8_t i = 0; i < SA_MOTORS; i++) {
    const uint8_t m = stepper->next;
    stepper->next = (uint8_t)(m + 1u < SA_MOTORS ? m + 1u : 0u);
    const sa_motor_t *motor = &stepper->motors[m];
    if (!has(stepper->zeroed, m) || motor->coil == motor->ramp.position) {
      continue;
    }
    if (!write_coils(stepper, m, motor->ramp.position) && motor->failures >= SA_BUS_TRIES) {
      fail(stepper, SA_SHIELD_OF(m));
    }
    return;
  }
}

static void send_state(sa_stepper_t *stepper) {
  uint8_t payload[10u + 4u * SA_MOTORS];
  sa_link_t *link = &stepper->link;
  uint8_t *at = sa_put_u32(payload, link->board.now_us(link->board.context));
  *at++ = link->state;
  *at++ = link->cause;
  *at++ = link->control_sequence;
  *at++ = moving_mask(stepper);
  *at++ = stepper->zeroed;
  *at++ = stepper->stalled;
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    at = sa_put_u32(at, (uint32_t)stepper->motors[m].coil);
  }
  stepper->stalled = 0;
  sa_link_send_state(link, SA_STEPPER_STATE, payload, (uint8_t)sizeof payload);
}

bool sa_stepper_poll(sa_stepper_t *stepper) {
  const sa_board_t *board = &stepper->link.board;
  sa_link_watchdog(&stepper->link);
  uint32_t late_us = board->now_us(board->context) - stepper->tick_us;
  if (late_us > MAX_LATE_TICKS * SA_TICK_US) {
    stepper->tick_us += late_us - SA_TICK_US;
    late_us = SA_TICK_US;
  }
  for (uint8_t i = 0; i < TICKS_A_POLL && late_us >= SA_TICK_US; i++) {
    late_us -= SA_TICK_US;
    stepper->tick_us += SA_TICK_US;
    tick(stepper);
  }
  write_next(stepper);
  if (sa_link_state_due(&stepper->link, SA_STEPPER_STATE_US)) {
    send_state(stepper);
  }
  if (late_us >= SA_TICK_US) {
    return true;
  }
  for (uint8_t m = 0; m < SA_MOTORS; m++) {
    if (stepper->motors[m].coil != stepper->motors[m].ramp.position) {
      return true;
    }
  }
  return false;
}
