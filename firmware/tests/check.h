/* Named tests with checks: a failed check prints its place and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);        \
      abort();                                                                       \
    }                                                                                \
  } while (0)

#define CHECK_EQUAL(left, right)                                                     \
  do {                                                                               \
    const long long left_ = (long long)(left);                                       \
    const long long right_ = (long long)(right);                                     \
    if (left_ != right_) {                                                           \
      fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #left,  \
              left_, #right, right_);                                                \
      abort();                                                                       \
    }                                                                                \
  } while (0)

#define RUN(test)           \
  do {                        \
    test();                   \
    printf("ok %s\n", #test); \
  } while (0)

#endif
