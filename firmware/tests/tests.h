#ifndef TESTS_H
#define TESTS_H

void run_frame_tests(void);
void run_ramp_tests(void);
void run_link_tests(void);
void run_stepper_tests(void);
void run_valve_tests(void);

#endif
