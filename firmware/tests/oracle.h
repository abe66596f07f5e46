/* Independent check, bit by bit by the standards, whether bytes between two delimiters are a valid
 * frame; no code is shared with the core. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `type` is set if the frame is valid. */
bool oracle_valid(const uint8_t *encoded, size_t count, uint32_t boot_id, uint8_t *type);

#endif
