/* Constants of the protocol, which docs/protocol.md describes. */
#ifndef SA_PROTOCOL_H
#define SA_PROTOCOL_H

#define SA_PROTOCOL_VERSION 1u
#define SA_FIRMWARE_MAJOR 0u
#define SA_FIRMWARE_MINOR 1u

#define SA_MOTORS 6u
#define SA_VALVES 60u
#define SA_VALVE_BYTES 8u /* bit n % 8 of byte n / 8 is output n */
#define SA_WATCHDOG_US 200000ul

enum { SA_KIND_STEPPERS = 1, SA_KIND_VALVES = 2 };

/* Host to device. Types from SA_FIRST_SEALED to 0x7F are sealed with the boot id. */
enum {
  SA_HELLO = 0x01,
  SA_PING = 0x02,
  SA_GET_COUNTERS = 0x03,
  SA_STOP = 0x04,
  SA_DISARM = 0x05,
  SA_FIRST_SEALED = 0x10,
  SA_ARM = 0x10,
  SA_RESET = 0x11,
  SA_STEPPER_CONFIG = 0x20,
  SA_ZERO = 0x21,
  SA_RELEASE = 0x22,
  SA_TARGETS = 0x23, /* control */
  SA_VALVE_CONFIG = 0x30,
  SA_OPEN = 0x31, /* control */
  SA_KEEP = 0x32  /* control */
};

/* Device to host, sealed with key 0. */
enum {
  SA_HELLO_REPLY = 0x81,
  SA_PONG = 0x82,
  SA_COUNTERS = 0x83,
  SA_ACK = 0x84,
  SA_STEPPER_STATE = 0x90,
  SA_VALVE_STATE = 0x91
};

enum {
  SA_STATE_BOOT = 0, /* no handshake yet */
  SA_STATE_IDLE = 1,
  SA_STATE_ARMED = 2,   /* waiting for the first control frame */
  SA_STATE_RUNNING = 3, /* following control frames */
  SA_STATE_STOPPED = 4,
  SA_STATE_FAULT = 5
};

/* Causes of the states STOPPED and FAULT. */
enum {
  SA_CAUSE_NONE = 0,
  SA_CAUSE_STOP_FRAME = 1,
  SA_CAUSE_WATCHDOG = 2,
  SA_CAUSE_NEW_HOST = 3, /* a handshake while armed */
  SA_CAUSE_COIL_BUS = 4  /* no answer from a motor shield */
};

/* Results in an ACK. */
enum {
  SA_OK = 0,
  SA_ERROR_TYPE = 1,
  SA_ERROR_LENGTH = 2,
  SA_ERROR_STATE = 3,
  SA_ERROR_VERSION = 4,
  SA_ERROR_VALUE = 5,
  SA_ERROR_LIMIT = 6, /* target beyond its limits, or opening time beyond the cap */
  SA_ERROR_NOT_READY = 7, /* not configured or not zeroed */
  SA_ERROR_MOVING = 8,
  SA_ERROR_INTERLOCK = 9, /* both valves of a muscle requested */
  SA_ERROR_BATCH = 10,    /* KEEP of a batch unknown to the device */
  SA_ERROR_COIL_BUS = 11
};

#endif
