// SPDX-License-Identifier: Apache-2.0
//
// A program to look at: takes what its arguments say, prints "ready" and keeps it until its input
// ends. Each argument is a letter and a number, taken in their order:
//   d N   the device that the others are about (0)
//   h N   allocates N MiB in huge pages         n N   allocates N KiB in normal pages
//   f N   allocates and frees N MiB             t N   allocates N MiB and writes all of it
//   p N   allocates N MiB of page-locked host memory
//   s N   creates N streams                     b N   creates N streams that are busy
//   c 1   allocates and frees all the time
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"

static void check(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  fprintf(stderr, "holder: %s failed with %d: %s\n", what, code, text != NULL ? text : "");
  exit(1);
}

/* Of the size that it is charged for: products put 32 bytes behind an allocation. */
static void* allocate(size_t bytes, aclrtMemMallocPolicy policy) {
  void* memory = NULL;
  check(aclrtMalloc(&memory, bytes - 32, policy), "aclrtMalloc");
  return memory;
}

static int input_has_ended(int timeout) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return poll(&input, 1, timeout) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void wait_for_end(void* unused) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  (void)unused;
  while (poll(&input, 1, -1) <= 0) {
  }
}

static void create_streams(long count, int busy) {
  for (long i = 0; i < count; ++i) {
    aclrtStream stream = NULL;
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    if (busy) check(aclrtLaunchHostFunc(stream, wait_for_end, NULL), "aclrtLaunchHostFunc");
  }
}

static void take(char what, long number) {
  const size_t bytes = (size_t)number << 20;
  void* memory = NULL;
  switch (what) {
    case 'd':
      check(aclrtSetDevice((int32_t)number), "aclrtSetDevice");
      break;
    case 'h':
      (void)allocate(bytes, ACL_MEM_MALLOC_HUGE_ONLY);
      break;
    case 'n':
      (void)allocate((size_t)number << 10, ACL_MEM_MALLOC_NORMAL_ONLY);
      break;
    case 'f':
      check(aclrtFree(allocate(bytes, ACL_MEM_MALLOC_HUGE_ONLY)), "aclrtFree");
      break;
    case 't':
      memory = allocate(bytes, ACL_MEM_MALLOC_HUGE_ONLY);
      check(aclrtMemset(memory, bytes - 32, 1, bytes - 32), "aclrtMemset");
      break;
    case 'p':
      check(aclrtMallocHost(&memory, bytes), "aclrtMallocHost");
      break;
    case 's':
    case 'b':
      create_streams(number, what == 'b');
      break;
    default:
      fprintf(stderr, "holder: %c is unknown\n", what);
      exit(2);
  }
}

int main(int argc, char** argv) {
  int churns = 0;
  check(aclInit(NULL), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i][0] == 'c') {
      churns = 1;
    } else {
      take(argv[i][0], strtol(argv[i + 1], NULL, 10));
    }
  }
  puts("ready");
  fflush(stdout);
  while (!input_has_ended(churns ? 0 : -1)) {
    if (churns) check(aclrtFree(allocate(4096, ACL_MEM_MALLOC_NORMAL_ONLY)), "aclrtFree");
  }
  return 0;
}
