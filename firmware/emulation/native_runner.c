/* Run either core, compiled for this computer, behind a pseudo-terminal.
 *
 *   native_runner --kind steppers|valves --port LINK [--control SOCKET] [--bus-us N]
 *                 [--reset-on-open 0|1]
 *
 * --bus-us: time to set a motor's coils (default 1100, as on the AVR). Control socket: see
 * firmware/emulation/README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/motor_shield.h"
#include "../core/stepper.h"
#include "../core/valves.h"
#include "bench_report.h"

typedef struct {
  port_t port;
  control_t control;
  motor_bench_t bench;
  sa_stepper_t stepper;
  sa_valves_t valves;
  bool has_valves;
  uint32_t bus_us;
  uint64_t bus_free_us; /* end of the last write on the coil bus */
  uint64_t start_us;
  uint64_t turn_us; /* start of the last iteration of the main loop */
  uint64_t late_us; /* longest iteration since the last report */
  uint32_t boots;
} board_t;

static uint32_t now_us(void *context) {
  return (uint32_t)(monotonic_us() - ((board_t *)context)->start_us);
}

static uint8_t room(void *context) {
  (void)context;
  return 255;
}

static void send(void *context, const uint8_t *bytes, uint8_t count) {
  port_write(&((board_t *)context)->port, bytes, count);
}

static bool transmit(board_t *board, uint8_t address, const uint8_t *bytes, uint8_t count) {
  if (!motor_bench_start(&board->bench, address)) {
    return false;
  }
  for (uint8_t i = 0; i < count; i++) {
    motor_bench_byte(&board->bench, address, bytes[i]);
  }
  motor_bench_stop(&board->bench, address);
  return true;
}

static bool begin_coils(void *context, uint8_t shield) {
  board_t *board = (board_t *)context;
  for (uint8_t step = 0; step < SA_SHIELD_WAKE_STEPS; step++) {
    uint8_t bytes[2];
    sa_shield_wake(step, bytes);
    if (!transmit(board, (uint8_t)(SA_SHIELD_ADDRESS + shield), bytes, 2)) {
      return false;
    }
  }
  return true;
}

static bool write_coils(void *context, uint8_t motor, int16_t coil_a, int16_t coil_b) {
  board_t *board = (board_t *)context;
  uint8_t bytes[SA_SHIELD_BYTES];
  /* Sleeps are inexact; later writes make up for a sleep that was too long. */
  const uint64_t now = monotonic_us();
  board->bus_free_us = (now - board->bus_free_us < 2000 ? board->bus_free_us : now) + board->bus_us;
  sa_shield_coils(motor, coil_a, coil_b, bytes);
  return transmit(board, sa_shield_address(motor), bytes, SA_SHIELD_BYTES);
}

static void write_valves(void *context, const uint8_t open[SA_VALVE_BYTES]) {
  board_t *board = (board_t *)context;
  uint64_t mask = 0;
  for (int i = SA_VALVE_BYTES; i-- > 0;) {
    mask = mask << 8 | open[i];
  }
  control_say(&board->control, "V %llu %016llx", (unsigned long long)monotonic_us(),
              (unsigned long long)mask);
}

static void boot(board_t *board, uint8_t cause) {
  const sa_board_t made = {board, now_us, room, send};
  const sa_coils_t coils = {board, begin_coils, write_coils};
  const sa_outputs_t outputs = {board, write_valves};
  const uint32_t boot_id = (uint32_t)(monotonic_us() + ++board->boots) * 2654435769u;
  board->start_us = monotonic_us();
  board->bus_free_us = 0;
  if (board->has_valves) {
    sa_valves_init(&board->valves, &made, &outputs, cause, boot_id);
  } else {
    sa_stepper_init(&board->stepper, &made, &coils, cause, boot_id);
  }
  control_say(&board->control, "R %llu %d", (unsigned long long)monotonic_us(), cause);
}

static void orders(board_t *board) {
  const char *order = control_order(&board->control);
  if (order == NULL) {
    return;
  }
  if (strcmp(order, "status") == 0) {
    report_status(&board->control, &board->bench, monotonic_us(), board->late_us);
    board->late_us = 0;
  } else if (strcmp(order, "reset") == 0) {
    boot(board, 2);
  } else if (strcmp(order, "brownout") == 0) {
    for (int shield = 0; shield < BENCH_SHIELDS; shield++) {
      motor_bench_power_cycle(&board->bench, shield);
    }
    boot(board, 3);
  } else if (strcmp(order, "quit") == 0) {
    host_ended = true;
  } else if (!bench_order(&board->bench, order) && !port_order(&board->port, order)) {
    control_say(&board->control, "? %s", order);
  }
}

static void run(board_t *board, bool reset_on_open) {
  uint8_t bytes[512];
  const int change = port_watch(&board->port);
  if (change > 0 && reset_on_open) {
    boot(board, 2);
  }
  const size_t count = port_read(&board->port, bytes, sizeof bytes);
  for (size_t i = 0; i < count; i++) {
    if (board->has_valves) {
      sa_valves_byte(&board->valves, bytes[i]);
    } else {
      sa_stepper_byte(&board->stepper, bytes[i]);
    }
  }
  if (board->has_valves) {
    sa_valves_poll(&board->valves);
    return;
  }
  /* The bus blocks the loop, as on the board. */
  for (int turns = 0; turns < (int)SA_MOTORS && monotonic_us() >= board->bus_free_us; turns++) {
    sa_stepper_poll(&board->stepper);
  }
  report_shafts(&board->control, &board->bench, monotonic_us());
}

int main(int argc, char **argv) {
  static board_t board;
  const char *kind = option(argc, argv, "--kind", "");
  const char *link = option(argc, argv, "--port", NULL);
  board.has_valves = strcmp(kind, "valves") == 0;
  if (link == NULL || (!board.has_valves && strcmp(kind, "steppers") != 0)) {
    fprintf(stderr, "usage: native_runner --kind steppers|valves --port LINK [--control SOCKET]"
                    " [--bus-us N] [--reset-on-open 0|1]\n");
    return 2;
  }
  board.bus_us = (uint32_t)atoi(option(argc, argv, "--bus-us", "1100"));
  const bool reset_on_open = atoi(option(argc, argv, "--reset-on-open", "0")) != 0;
  host_signals();
  motor_bench_init(&board.bench);
  port_create(&board.port, link);
  control_create(&board.control, option(argc, argv, "--control", NULL));
  boot(&board, 1);
  printf("ready\n");
  fflush(stdout);
  while (!host_ended && !host_orphaned()) {
    const uint64_t now = monotonic_us();
    const uint64_t turn = board.turn_us == 0 ? 0 : now - board.turn_us;
    board.late_us = turn > board.late_us ? turn : board.late_us;
    board.turn_us = now;
    orders(&board);
    run(&board, reset_on_open);
    sleep_us(board.has_valves ? 200 : 100);
  }
  port_remove(&board.port);
  control_remove(&board.control);
  return 0;
}
