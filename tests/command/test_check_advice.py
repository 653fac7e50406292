# SPDX-License-Identifier: Apache-2.0
"""understudy run --check=advice: legal use that is costly or fragile is told with its line and its
cure; the cheap way runs in silence, and so do all with plain --check.

Each costly body has its line marked /*here*/.
"""

import pytest
from test_check import BEGINNING, FOUND, check, line_of  # noqa: F401  (check is a fixture)

STREAM = """
  aclrtStream stream = NULL;
  void *memory = NULL, *host = NULL;
  aclrtCreateStream(&stream);
  aclrtMalloc(&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMallocHost(&host, MIB);
"""
STREAM_END = """
  aclrtSynchronizeStream(stream);
  aclrtFreeHost(host);
  aclrtFree(memory);
  aclrtDestroyStream(stream);
"""
BLOCK = """
  aclrtPhysicalMemProp prop = {0};
  aclrtDrvMemHandle handle = NULL;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
"""
RETAIN = """
  void* range = new_range();
  aclrtDrvMemHandle block = new_block(), retained = NULL;
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  if (aclrtMemRetainAllocationHandle(range, &retained) == 0) aclrtFreePhysical(retained); /*here*/
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
"""
THREAD = BEGINNING.replace("int main(void) {", """#include <pthread.h>
static int sets_device;
static aclrtContext context;
static void* work(void* unused) {
  void* memory = NULL;
  if (sets_device) aclrtSetCurrentContext(context);
  if (aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST) == 0) aclrtFree(memory); /*here*/
  return unused;
}
static void run_thread(int sets) {
  pthread_t thread;
  sets_device = sets;
  aclrtGetCurrentContext(&context);
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}
int main(void) {""").replace("aclrtSetDevice(0);", "aclrtSetDevice(0); /*set*/")

# name: (costly body, parts of its sentence, cheap body, options of run, beginning of the program)
PROGRAMS = {
    "huge_pages_for_a_little_more": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 2 * MIB + 100000, ACL_MEM_MALLOC_HUGE_ONLY); /*here*/
  aclrtFree(memory);
""", ["and takes 4 MiB, in whole pages of 2 MiB: ", "(47 %) are wasted; choose smaller pages"], """
  void* memory = NULL;
  aclrtMalloc(&memory, 2 * MIB + 100000, ACL_MEM_MALLOC_NORMAL_ONLY);
  aclrtFree(memory);
"""),
    "giant_pages_for_little": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 10 * MIB, ACL_MEM_MALLOC_HUGE1G_ONLY); /*here*/
  aclrtFree(memory);
""", ["asks for 10 MiB and takes 1 GiB, in whole pages of 1 GiB: 1014 MiB (99 %) are wasted"], """
  void* memory = NULL;
  aclrtMalloc(&memory, 10 * MIB - 32, ACL_MEM_MALLOC_HUGE_ONLY);
  aclrtFree(memory);
"""),
    "padding_takes_a_page": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY); /*here*/
  aclrtFree(memory);
""", ["asks for 2 MiB and takes 4 MiB, in whole pages of 2 MiB: 2 MiB (50 %) are wasted; ",
      "ask for a little less, so that the padding behind each does not take a page"], """
  void* memory = NULL;
  aclrtMallocAlign32(&memory, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY);
  aclrtFree(memory);
"""),
    "many_small_allocations": ("""
  void* memory[100] = {0};
  for (int i = 0; i < 100; ++i)
    aclrtMalloc(&memory[i], 512, ACL_MEM_MALLOC_HUGE_FIRST); /*here*/
  for (int i = 0; i < 100; ++i) aclrtFree(memory[i]);
""", ["asks for 50 KiB in 100 allocations and takes 400 KiB, in whole pages of 4 KiB: ",
      "put several into one allocation"], """
  void* memory = NULL;
  for (int i = 0; i < 100; ++i) {  /* one at a time: 4 KiB */
    aclrtMalloc(&memory, 512, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtFree(memory);
  }
  aclrtMalloc(&memory, 100 * 512, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(memory);
"""),
    "block_that_is_rounded_up": (BLOCK + """
  aclrtMallocPhysical(&handle, 2 * MIB + 4096, &prop, 0); /*here*/
  aclrtFreePhysical(handle);
""", ["aclrtMallocPhysical at ", "and takes 4 MiB, in whole pages of 2 MiB"], BLOCK + """
  aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0);
  aclrtFreePhysical(handle);
""", ["--size-alignment", "round_up"]),
    "pageable_source": (STREAM + """
  static char bytes[4096];
  for (int i = 0; i < 3; ++i)
    aclrtMemcpyAsync(memory, 4096, bytes, 4096, ACL_MEMCPY_HOST_TO_DEVICE, stream); /*here*/
""" + STREAM_END, ["copies 4 KiB of host memory that is not page-locked, so it waits for its stream"],
        STREAM + """
  aclrtMemcpyAsync(memory, 4096, host, 4096, ACL_MEMCPY_HOST_TO_DEVICE, stream);
""" + STREAM_END),
    "pageable_rows": (STREAM + """
  static char bytes[65536];
  aclrtMemset(memory, 65536, 0, 65536);
  aclrtMemcpy2dAsync(bytes, 128, memory, 128, 64, 16, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*here*/
""" + STREAM_END, ["aclrtMemcpy2dAsync at ", "copies 1 KiB of host memory that is not page-locked"],
        STREAM + """
  static char bytes[65536] __attribute__((aligned(4096)));
  aclrtHostRegisterV2(bytes, sizeof bytes, ACL_HOST_REG_PINNED);
  aclrtMemset(memory, 65536, 0, 65536);
  aclrtMemcpy2dAsync(bytes, 128, memory, 128, 64, 16, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  aclrtSynchronizeStream(stream);
  aclrtHostUnregister(bytes);
""" + STREAM_END),
    "thread_without_context": ("run_thread(0);", [
        "aclrtMalloc at ", "fails: the calling thread has no context; set a device or a context "
        "first; thread ", " has device 0 since aclrtSetDevice at ", ", and each thread sets its own"],
        "run_thread(1);", [], THREAD),
    "block_of_a_device_that_is_not_set": (BLOCK + """
  prop.location.id = 3;
  aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0); /*here*/
  aclrtFreePhysical(handle);
""", ["makes physical block of 2 MiB on device 3, and the process has not set device 3",
      "set device 3 first"], BLOCK + """
  aclrtSetDevice(3);
  prop.location.id = 3;
  aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0);
  aclrtFreePhysical(handle);
  aclrtResetDevice(3);
"""),
    "stream_of_a_device_that_is_not_set": ("""
  aclrtContext context = NULL;
  aclrtStream stream = NULL;
  aclrtCreateContext(&context, 2);
  aclrtCreateStream(&stream); /*here*/
  aclrtDestroyStream(stream);
  aclrtDestroyContext(context);
""", ["makes stream on device 2, and the process has not set device 2"], """
  aclrtStream stream = NULL;
  aclrtSetDevice(2);
  aclrtCreateStream(&stream);
  aclrtDestroyStream(stream);
  aclrtResetDevice(2);
"""),
    "call_that_the_driver_lacks": (RETAIN, [
        "aclrtMemRetainAllocationHandle: driver 25.2.0 does not have this function; drivers from "
        "26.0.RC1 on have it; called at "], RETAIN.replace(
            "if (aclrtMemRetainAllocationHandle(range, &retained) == 0) "
            "aclrtFreePhysical(retained);", "(void)retained;"), ["--driver", "25.2.0"]),
    "call_that_a_switch_allows": (RETAIN, [
        "aclrtMemRetainAllocationHandle at ",
        "works because the configuration has features=retain_handle; product a2 (",
        ") with driver 25.2.0 does not have it"], RETAIN.replace(
            "if (aclrtMemRetainAllocationHandle(range, &retained) == 0) "
            "aclrtFreePhysical(retained);", "(void)retained;"),
        ["--driver", "25.2.0", "--features", "+retain_handle"]),
    "pages_that_the_product_lacks": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 1024 * MIB, ACL_MEM_MALLOC_HUGE1G_ONLY); /*here*/
""", ["aclrtMalloc: product inf has no 1 GiB pages; called at "], """
  void* memory = NULL;
  aclrtMalloc(&memory, 1024 * MIB, ACL_MEM_MALLOC_HUGE_ONLY);
  aclrtFree(memory);
""", ["--product", "inf"]),
}


def program(name):
    costly, parts, cheap, *rest = PROGRAMS[name]
    options, begin = (rest + [[], BEGINNING][len(rest):])[:2]
    return costly, parts, cheap, options, begin


def marked_line(begin, body, mark):
    return next(f"prog.c:{number}" for number, line in enumerate((begin + body).splitlines(), 1)
                if f"/*{mark}*/" in line)


@pytest.mark.parametrize("name", PROGRAMS)
def test_costly_use_is_told_with_its_line(check, name):  # noqa: F811
    costly, parts, _, options, begin = program(name)
    run = check(costly, "--check=advice", *options, begin=begin)
    assert run.returncode == FOUND, run.stdout + run.stderr
    told = [line for line in run.stderr.splitlines() if line.startswith("understudy: advice: ")]
    assert len(told) == 1, run.stderr
    assert marked_line(begin, costly, "here") in told[0]
    for part in parts:
        assert part in told[0]
    if "/*set*/" in begin:
        assert f"since aclrtSetDevice at {marked_line(begin, costly, 'set')}" in told[0]
    assert run.stderr.splitlines()[-1] == "understudy: check: 1 finding (advice 1)"


@pytest.mark.parametrize("name", PROGRAMS)
def test_cheap_use_is_silent(check, name):  # noqa: F811
    _, _, cheap, options, begin = program(name)
    run = check(cheap, "--check=advice,leaks,history", *options, begin=begin)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_plain_check_gives_no_advice(check, name):  # noqa: F811
    costly, _, _, options, begin = program(name)
    run = check(costly, "--check", *options, begin=begin)
    assert (run.returncode, run.stderr) == (0, "")


def test_two_pieces_of_advice_about_one_line(check):  # noqa: F811
    body = BLOCK + """
  prop.location.id = 3;
  aclrtMallocPhysical(&handle, 2 * MIB + 4096, &prop, 0); /*here*/
  aclrtFreePhysical(handle);
"""
    run = check(body, "--check=advice", "--size-alignment", "round_up")
    assert run.stderr.count("understudy: advice: aclrtMallocPhysical at " + line_of(body, "here")) == 2
    assert run.stderr.splitlines()[-1] == "understudy: check: 2 findings (advice 2)"


def test_block_with_a_handle_again_wastes_nothing_twice(check):  # noqa: F811
    body = BLOCK + """
  for (int i = 0; i < 3; ++i) {
    void* range = new_range();
    aclrtMallocPhysical(&handle, 2 * MIB - 4096, &prop, 0);  /* less than is told */
    aclrtMapMem(range, 2 * MIB, 0, handle, 0);
    for (int j = 0; j < 3; ++j) {
      aclrtFreePhysical(handle);
      if (aclrtMemRetainAllocationHandle(range, &handle) != 0) return 1;
    }
    aclrtFreePhysical(handle);
    aclrtUnmapMem(range);
    aclrtReleaseMemAddress(range);
  }
"""
    run = check(body, "--check=advice,leaks", "--size-alignment", "round_up")
    assert (run.returncode, run.stderr) == (0, "")


def test_a_thread_may_ask_whether_it_has_a_device(check):  # noqa: F811
    begin = THREAD.replace("void* memory = NULL;",
                           "int32_t device;\n  if (aclrtGetDevice(&device) != 0) return unused;"
                           "\n  void* memory = NULL;")
    run = check("run_thread(0);", "--check=advice", begin=begin)
    assert (run.returncode, run.stderr) == (0, "")


def test_advice_can_be_suppressed(check, tmp_path):  # noqa: F811
    known = tmp_path / "known"
    known.write_text("advice:*not page-locked*\n", encoding="utf-8")
    costly = PROGRAMS["pageable_source"][0]
    run = check(costly, "--check=advice", "--check-suppressions", known)
    assert (run.returncode, run.stderr) == (0, "understudy: check: 0 findings, 3 suppressed\n")
