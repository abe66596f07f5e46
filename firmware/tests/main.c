#include <stdio.h>

#include "tests.h"

int main(void) {
  run_frame_tests();
  run_ramp_tests();
  run_link_tests();
  run_stepper_tests();
  run_valve_tests();
  printf("all passed\n");
  return 0;
}
