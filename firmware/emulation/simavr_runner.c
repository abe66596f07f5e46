/* Run the AVR binary in simavr at wall clock speed, with UART0 on a pseudo-terminal and three motor
 * shields on I2C.
 *
 *   simavr_runner --elf FILE --port LINK [--control SOCKET] [--seed N] [--reset-on-open 0|1]
 *
 * --seed: EEPROM contents for the firmware's boot id; default: the time. Control socket: see
 * firmware/emulation/README.md.
 */
#include <simavr/avr_eeprom.h>
#include <simavr/avr_twi.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_regbit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"

#define FREQUENCY 16000000u
#define TWBR 0xB8 /* data addresses of an ATmega2560 */
#define TWSR 0xB9
#define SLICE_US 200u         /* sleep when ahead of the wall clock */
/* A kernel thread of ordinary priority moves the bytes of a pseudo-terminal. A board that lags
 * behind would run continuously at real-time priority; without pauses no command would reach it. */
#define BREATH_US 100u
#define BREATH_EVERY_US 2000u
#define MOST_BEHIND_US 50000u /* a larger lag is not made up for: that time is lost */

typedef struct {
  avr_t *avr;
  port_t port;
  control_t control;
  motor_bench_t bench;
  avr_irq_t *uart_input;
  avr_irq_t *twi_input;
  bool uart_ready; /* the UART queue has room */
  uint8_t received[512]; /* from the port, not yet in the UART queue */
  size_t received_count;
  uint8_t sent[512];
  size_t sent_count;
  uint8_t selected; /* address byte of the current I2C transaction, 0 if none */
  avr_cycle_count_t bus_free; /* end of the current byte on the I2C bus */
  uint64_t lost_us;        /* lost time since the start ... */
  uint64_t lost_before_us; /* ... and until the last report */
  uint64_t slept_us;       /* end of the last sleep */
  uint64_t late_us;        /* largest lag behind the wall clock since the last report */
} machine_t;

static void uart_output(avr_irq_t *irq, uint32_t value, void *context) {
  machine_t *machine = (machine_t *)context;
  (void)irq;
  if (machine->sent_count < sizeof machine->sent) {
    machine->sent[machine->sent_count++] = (uint8_t)value;
  }
}

/* avr_raise_irq in feed_uart may also call uart_on and uart_off. */
static void uart_on(avr_irq_t *irq, uint32_t value, void *context) {
  (void)irq;
  (void)value;
  ((machine_t *)context)->uart_ready = true;
}

static void uart_off(avr_irq_t *irq, uint32_t value, void *context) {
  (void)irq;
  (void)value;
  ((machine_t *)context)->uart_ready = false;
}

static void feed_uart(machine_t *machine) {
  size_t fed = 0;
  while (machine->uart_ready && fed < machine->received_count) {
    avr_raise_irq(machine->uart_input, machine->received[fed++]);
  }
  machine->received_count -= fed;
  memmove(machine->received, machine->received + fed, machine->received_count);
}

static void acknowledge(const machine_t *machine) {
  avr_raise_irq(machine->twi_input, avr_twi_irq_msg(TWI_COND_ACK, machine->selected, 1));
}

/* simavr transfers an I2C byte in 9 us at any bus clock. As the firmware waits for the byte anyway,
 * the missing time is added at once. */
static void occupy_bus(machine_t *machine) {
  const uint32_t prescaler = 1u << 2 * (machine->avr->data[TWSR] & 3u);
  machine->bus_free =
      machine->avr->cycle + 9u * (16u + 2u * machine->avr->data[TWBR] * prescaler);
}

static void twi_status(avr_irq_t *irq, uint32_t value, void *context) {
  machine_t *machine = (machine_t *)context;
  (void)irq;
  (void)value;
  if (machine->avr->cycle < machine->bus_free) {
    machine->avr->cycle = machine->bus_free;
  }
}

static void twi_output(avr_irq_t *irq, uint32_t value, void *context) {
  machine_t *machine = (machine_t *)context;
  const avr_twi_msg_irq_t message = {.u.v = value};
  const uint8_t what = message.u.twi.msg;
  (void)irq;
  if ((what & TWI_COND_STOP) != 0 && machine->selected != 0) {
    motor_bench_stop(&machine->bench, machine->selected >> 1);
    machine->selected = 0;
  }
  if ((what & TWI_COND_START) != 0) {
    machine->selected = 0;
    occupy_bus(machine);
    if (motor_bench_start(&machine->bench, message.u.twi.addr >> 1)) {
      machine->selected = message.u.twi.addr;
      acknowledge(machine);
    }
  }
  if (machine->selected == 0) {
    return;
  }
  if ((what & TWI_COND_WRITE) != 0) {
    occupy_bus(machine);
    acknowledge(machine);
    motor_bench_byte(&machine->bench, machine->selected >> 1, message.u.twi.data);
  }
  if ((what & TWI_COND_READ) != 0) {
    const uint8_t data = motor_bench_read(&machine->bench, machine->selected >> 1);
    avr_raise_irq(machine->twi_input, avr_twi_irq_msg(TWI_COND_READ, machine->selected, data));
  }
}

static void connect(machine_t *machine) {
  avr_t *avr = machine->avr;
  uint32_t flags = 0;
  avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags); /* no sleeping or printing by simavr */
  machine->uart_input = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
  machine->twi_input = avr_io_getirq(avr, AVR_IOCTL_TWI_GETIRQ(0), TWI_IRQ_INPUT);
  avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT),
                          uart_output, machine);
  avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON),
                          uart_on, machine);
  avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF),
                          uart_off, machine);
  avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_TWI_GETIRQ(0), TWI_IRQ_OUTPUT), twi_output,
                          machine);
  avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_TWI_GETIRQ(0), TWI_IRQ_STATUS), twi_status,
                          machine);
}

static void reset(machine_t *machine, avr_regbit_t why, int cause) {
  avr_reset(machine->avr);
  avr_regbit_set(machine->avr, why);
  machine->uart_ready = false;
  machine->received_count = 0;
  machine->selected = 0;
  control_say(&machine->control, "R %llu %d", (unsigned long long)monotonic_us(), cause);
}

static void orders(machine_t *machine) {
  const char *order = control_order(&machine->control);
  if (order == NULL) {
    return;
  }
  if (strcmp(order, "status") == 0) {
    report_status(&machine->control, &machine->bench, monotonic_us(),
                  machine->late_us + machine->lost_us - machine->lost_before_us);
    machine->late_us = 0;
    machine->lost_before_us = machine->lost_us;
  } else if (strcmp(order, "reset") == 0) {
    reset(machine, machine->avr->reset_flags.extrf, 2);
  } else if (strcmp(order, "brownout") == 0) {
    for (int shield = 0; shield < BENCH_SHIELDS; shield++) {
      motor_bench_power_cycle(&machine->bench, shield);
    }
    reset(machine, machine->avr->reset_flags.borf, 3);
  } else if (strcmp(order, "quit") == 0) {
    host_ended = true;
  } else if (!bench_order(&machine->bench, order) && !port_order(&machine->port, order)) {
    control_say(&machine->control, "? %s", order);
  }
}

static void exchange(machine_t *machine, bool reset_on_open) {
  if (port_watch(&machine->port) > 0 && reset_on_open) {
    reset(machine, machine->avr->reset_flags.extrf, 2);
  }
  machine->received_count +=
      port_read(&machine->port, machine->received + machine->received_count,
                sizeof machine->received - machine->received_count);
  feed_uart(machine);
  if (machine->sent_count > 0) {
    port_write(&machine->port, machine->sent, machine->sent_count);
    machine->sent_count = 0;
  }
  report_shafts(&machine->control, &machine->bench, monotonic_us());
}

/* Skip sleep at once; catch_up waits for the wall clock instead. */
static void pass_over_sleep(avr_t *avr, avr_cycle_count_t cycles) {
  (void)avr;
  (void)cycles;
}

static avr_t *load(const char *elf) {
  elf_firmware_t firmware = {0};
  if (elf_read_firmware(elf, &firmware) != 0) {
    fprintf(stderr, "%s: is no firmware\n", elf);
    exit(1);
  }
  avr_t *avr = avr_make_mcu_by_name("atmega2560");
  if (avr == NULL) {
    fprintf(stderr, "this simavr has no atmega2560\n");
    exit(1);
  }
  avr_init(avr);
  avr->log = LOG_ERROR;
  firmware.frequency = FREQUENCY;
  avr_load_firmware(avr, &firmware);
  avr->frequency = FREQUENCY;
  avr->sleep = pass_over_sleep;
  return avr;
}

static void seed_eeprom(avr_t *avr, uint32_t seed) {
  uint8_t bytes[4] = {(uint8_t)seed, (uint8_t)(seed >> 8), (uint8_t)(seed >> 16),
                      (uint8_t)(seed >> 24)};
  avr_eeprom_desc_t description = {.ee = bytes, .offset = 0, .size = sizeof bytes};
  (void)avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &description);
}

static void rest(machine_t *machine, uint32_t us) {
  sleep_us(us);
  machine->slept_us = monotonic_us();
}

/* Run the board up to the wall clock, at most for a millisecond; return false if the processor has
 * stopped for good. */
static bool catch_up(machine_t *machine, uint64_t start_us) {
  avr_t *avr = machine->avr;
  const uint64_t wall_us = monotonic_us() - start_us - machine->lost_us;
  const uint64_t board_us = avr->cycle / (FREQUENCY / 1000000u);
  if (board_us >= wall_us) {
    rest(machine, SLICE_US);
    return true;
  }
  if (monotonic_us() - machine->slept_us > BREATH_EVERY_US) {
    rest(machine, BREATH_US);
  }
  uint64_t behind_us = wall_us - board_us;
  if (behind_us > MOST_BEHIND_US) {
    machine->lost_us += behind_us - MOST_BEHIND_US;
    behind_us = MOST_BEHIND_US;
  }
  machine->late_us = behind_us > machine->late_us ? behind_us : machine->late_us;
  const uint64_t until_us = wall_us - board_us > 1000u ? board_us + 1000u : wall_us;
  while (avr->cycle < until_us * (FREQUENCY / 1000000u)) {
    const int state = avr_run(avr);
    if (state == cpu_Done || state == cpu_Crashed) {
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  static machine_t machine;
  const char *elf = option(argc, argv, "--elf", NULL);
  const char *link = option(argc, argv, "--port", NULL);
  if (elf == NULL || link == NULL) {
    fprintf(stderr, "usage: simavr_runner --elf FILE --port LINK [--control SOCKET] [--seed N]"
                    " [--reset-on-open 0|1]\n");
    return 2;
  }
  const char *seed = option(argc, argv, "--seed", NULL);
  const bool reset_on_open = atoi(option(argc, argv, "--reset-on-open", "0")) != 0;
  host_signals();
  machine.avr = load(elf);
  seed_eeprom(machine.avr, seed != NULL ? (uint32_t)strtoul(seed, NULL, 10)
                                        : (uint32_t)monotonic_us());
  motor_bench_init(&machine.bench);
  connect(&machine);
  avr_regbit_set(machine.avr, machine.avr->reset_flags.porf);
  port_create(&machine.port, link);
  control_create(&machine.control, option(argc, argv, "--control", NULL));
  printf("ready\n");
  fflush(stdout);
  const uint64_t start_us = monotonic_us();
  bool runs = true;
  while (runs && !host_ended && !host_orphaned()) {
    orders(&machine);
    runs = catch_up(&machine, start_us);
    exchange(&machine, reset_on_open);
  }
  fprintf(stderr, "time lost to the wall clock: %llu us\n", (unsigned long long)machine.lost_us);
  port_remove(&machine.port);
  control_remove(&machine.control);
  return runs ? 0 : 1;
}
