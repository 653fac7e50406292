# SPDX-License-Identifier: Apache-2.0
"""understudy run --check=init: reads of device memory that was never written are told by the line
that reads and the line that made the memory, programs that write first run in silence.

Each wrong body has its lines marked /*made*/ and /*read*/; the right one has what was missing.
"""

import re

import pytest
from test_check import BEGINNING, FOUND, check, line_of  # noqa: F401  (check is a fixture)

BEFORE = """
  static char bytes[8 << 20];
  aclrtStream stream = NULL;
  char *memory = NULL, *other = NULL;
  void* host = NULL;
  aclrtCreateStream(&stream);
  aclrtMalloc((void**)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtMalloc((void**)&other, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMallocHost(&host, 4 * MIB);
  memset(bytes, 1, sizeof bytes);
"""
# For programs that make other memory.
BEFORE_OTHER = BEFORE.replace(" /*made*/", "")
AFTER = """
  aclrtSynchronizeDevice();
  aclrtFreeHost(host);
  aclrtFree(other);
  aclrtFree(memory);
  aclrtDestroyStream(stream);
"""
WRITE = "+aclrtMemset(memory, 4 * MIB, 1, 4 * MIB);"
READ = "aclrtMemcpy(bytes, 4096, memory, 4096, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/"
SLEEP = ["void* range = new_range();", "aclrtDrvMemHandle block = new_block();",
         "aclrtMapMem(range, 2 * MIB, 0, block, 0);", "aclrtMemset(range, 2 * MIB, 1, 2 * MIB);",
         "aclrtUnmapMem(range);"]
WAKE = ["aclrtMemcpy(bytes, 4096, range, 4096, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/",
        "aclrtUnmapMem(range);", "aclrtFreePhysical(block);", "aclrtReleaseMemAddress(range);"]

# name: (lines, where each that begins with + is left out of the wrong program and each that begins
# with - of the right one; what the sentence says of the bytes)
PROGRAMS = {
    "read_before_write": ([WRITE, READ], "reads 4 KiB at 0x[0-9a-f]+, which was never written"),
    "small_allocation": (
        ["char* made = NULL;", "aclrtMalloc((void**)&made, 4096, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/",
         "+aclrtMemcpy(made, 4096, bytes, 4096, ACL_MEMCPY_HOST_TO_DEVICE);",
         "aclrtMemcpy(bytes, 4096, made, 4096, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/",
         "aclrtFree(made);"], "reads 4 KiB at 0x[0-9a-f]+, which was never written"),
    "one_line_short": (
        ["aclrtMemcpy(memory, 4032, bytes, 4032, ACL_MEMCPY_HOST_TO_DEVICE);",
         "+aclrtMemcpy(memory + 4032, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);", READ],
        "of which 64 bytes from 0x[0-9a-f]+fc0 on was never written"),
    "a_line_in_the_middle": (
        ["aclrtMemset(memory, MIB, 1, 1024);", "aclrtMemset(memory + 1088, MIB, 1, 3008);",
         "+aclrtMemset(memory + 1087, 1, 1, 1);", READ],
        "of which 64 bytes from 0x[0-9a-f]+400 on was never written"),
    "several_parts": (
        ["+aclrtMemset(memory, MIB, 1, MIB);", "aclrtMemset(memory + 64, MIB, 1, 64);", READ],
        "of which 4032 bytes in several parts, the first at 0x[0-9a-f]+000, was never written"),
    "behind_a_granule": (
        ["aclrtMemset(memory, 4 * MIB, 1, 2 * MIB);", WRITE,
         "aclrtMemcpy(bytes, 4 * MIB, memory, 4 * MIB, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/"],
        "reads 4 MiB at 0x[0-9a-f]+, of which 2 MiB from"),
    "wake_up": (
        SLEEP + ["aclrtFreePhysical(block);", "block = new_block();",
                 "aclrtMapMem(range, 2 * MIB, 0, block, 0); /*made*/",
                 "+aclrtMemcpy(range, 4096, bytes, 4096, ACL_MEMCPY_HOST_TO_DEVICE);"] + WAKE,
        "mapping of 2 MiB"),
    "allocated_again": (
        ["void* made = NULL;", "aclrtMalloc(&made, 8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);",
         "aclrtMemset(made, 8 * MIB, 1, 8 * MIB);", "aclrtFree(made);",
         "aclrtMalloc(&made, 8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/",
         "+aclrtMemset(made, 8 * MIB, 1, 8 * MIB);",
         "aclrtMemcpy(bytes, 64, made, 64, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/",
         "aclrtFree(made);"], "allocation of 8 MiB"),
    "small_one_allocated_again": (
        ["void* made = NULL;", "aclrtMalloc(&made, 1000, ACL_MEM_MALLOC_HUGE_FIRST);",
         "aclrtMemset(made, 1000, 1, 1000);", "aclrtFree(made);",
         "aclrtMalloc(&made, 1000, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/",
         "+aclrtMemset(made, 1000, 1, 1000);",
         "aclrtMemcpy(bytes, 1000, made, 1000, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/",
         "aclrtFree(made);"], "reads 1000 bytes at"),
    "between_devices_memory": (
        [WRITE, "aclrtMemcpy(other, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE); /*read*/",
         "aclrtMemcpy(bytes, 64, other, 64, ACL_MEMCPY_DEVICE_TO_HOST);"], "reads 64 bytes at"),
    "copy_on_a_stream": (
        ["+aclrtMemsetAsync(memory, MIB, 1, MIB, stream);",
         "aclrtMemcpyAsync(host, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*read*/",
         "aclrtMemsetAsync(memory, MIB, 1, MIB, stream);"],
        r"aclrtMemcpyAsync at prog.c:\d+ on stream \d+ reads 1 MiB at"),
    "rows": (
        ["aclrtMemcpy2d(memory, 4096, bytes, 1024, 1024, 8, ACL_MEMCPY_HOST_TO_DEVICE);",
         "-aclrtMemcpy2d(bytes, 1024, memory, 4096, 1024, 9, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/",
         "+aclrtMemcpy2d(bytes, 1024, memory, 4096, 1024, 8, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/"],
        "reads 9 KiB at 0x[0-9a-f]+, of which 1 KiB from"),
    "rows_on_a_stream": (
        ["aclrtMemcpy2dAsync(memory, 4096, host, 1024, 1024, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream);",
         "-aclrtMemcpy2dAsync(host, 1024, memory + 64, 4096, 1024, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*read*/",
         "+aclrtMemcpy2dAsync(host, 1024, memory, 4096, 1024, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*read*/"],
        "of which 512 bytes in several parts"),
    "batch": (
        ["aclrtMemcpyBatchAttr attribute = {0};", "size_t first = 0, failed = 0;",
         "void* to[2] = {bytes, bytes + 4096};", "void* from[2] = {memory, memory + MIB};",
         "size_t sizes[2] = {64, 4096};", "attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;",
         "attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;", "aclrtMemset(memory, 64, 1, 64);",
         WRITE,
         "aclrtMemcpyBatch(to, sizes, from, sizes, 2, &attribute, &first, 1, &failed); /*read*/"],
        "reads 4 KiB at"),
    "reduction_into_unwritten": (
        ["aclrtMemset(other, MIB, 0, MIB);", WRITE,
         "aclrtReduceAsync(memory, other, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL); /*read*/"],
        "reduces into 4 KiB at"),
    "reduction_of_unwritten": (
        ["aclrtMemset(other, MIB, 0, MIB);", WRITE,
         "aclrtReduceAsync(other, memory, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL); /*read*/"],
        "reads 4 KiB at"),
    "pool_memory": (
        ["aclrtMemPool pool = new_pool();", "void* part = NULL;",
         "aclrtMemPoolMallocAsync(&part, MIB, pool, stream); /*made*/",
         "+aclrtMemsetAsync(part, MIB, 1, MIB, stream);",
         "aclrtMemcpyAsync(host, MIB, part, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*read*/",
         "aclrtMemPoolFreeAsync(part, stream);", "aclrtSynchronizeDevice();",
         "aclrtMemPoolDestroy(pool);"], "reads 1 MiB at"),
    "pool_memory_used_again": (
        ["aclrtMemPool pool = new_pool();", "void* part = NULL;", "uint64_t kept = 64 * MIB;",
         "aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &kept);",
         "aclrtMemPoolMallocAsync(&part, MIB, pool, stream);",
         "aclrtMemsetAsync(part, MIB, 1, MIB, stream);", "aclrtMemPoolFreeAsync(part, stream);",
         "aclrtSynchronizeStream(stream);",
         "aclrtMemPoolMallocAsync(&part, MIB, pool, stream); /*made*/",
         "+aclrtMemsetAsync(part, MIB, 1, MIB, stream);",
         "aclrtMemcpyAsync(host, MIB, part, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*read*/",
         "aclrtMemPoolFreeAsync(part, stream);", "aclrtSynchronizeDevice();",
         "aclrtMemPoolDestroy(pool);"], "reads 1 MiB at"),
    "indirect_copy": (
        ["aclrtMemset(memory + MIB, MIB, 1, MIB);",
         "void* addresses[2] = {other, memory};", "void** cells = (void**)(memory + MIB);",
         "aclrtMemcpy(cells, 16, addresses, 16, ACL_MEMCPY_HOST_TO_DEVICE);", WRITE,
         "+aclrtMemcpy(cells, 16, addresses, 16, ACL_MEMCPY_HOST_TO_DEVICE);",
         "aclrtMemcpyAsyncWithOffset(cells, 64, 0, (const void**)(cells + 1), 64, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream); /*read*/"],
        "reads 64 bytes at"),
}


def bodies(name):
    lines, _ = PROGRAMS[name]
    before = BEFORE_OTHER if any("/*made*/" in line for line in lines) else BEFORE

    def of(kept, left_out):
        chosen = [line.removeprefix(kept) for line in lines if not line.startswith(left_out)]
        return before + "\n".join("  " + line for line in chosen) + AFTER
    return of("-", "+"), of("+", "-")


def told_by(result):
    return [line for line in result.stderr.splitlines() if line.startswith("understudy: init:")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_unwritten_memory_is_told_by_both_lines(check, name):  # noqa: F811
    wrong, _ = bodies(name)
    result = check(wrong, "--check=init")
    assert result.returncode == FOUND, result.stdout + result.stderr
    told = told_by(result)
    assert len(told) == 1, result.stderr
    assert re.search(PROGRAMS[name][1], told[0]), told[0]
    assert f"at {line_of(wrong, 'read')} " in told[0]
    assert told[0].endswith(f"at {line_of(wrong, 'made')}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_memory_is_read_in_silence(check, name):  # noqa: F811
    _, right = bodies(name)
    result = check(right, "--check=init,history,leaks")
    assert (result.returncode, result.stderr) == (0, "")


GRANT = """
  aclrtMemAccessDesc grant = {0};
  grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  grant.location.type = ACL_MEM_LOCATION_TYPE_HOST;
"""
# Legal programs that write where it is easily missed.
LEGAL = {
    "part_that_was_set": """
  aclrtMemset(memory + 100, MIB, 1, 1000);
  aclrtMemcpy(bytes, 1000, memory + 100, 1000, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtMemcpy(bytes, 1088, memory + 64, 1088, ACL_MEMCPY_DEVICE_TO_HOST);
""",
    "two_mappings_of_a_block": """
  char* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMapMem(range + 4 * MIB, 2 * MIB, 0, block, 0);
  aclrtMemset(range, MIB, 1, MIB);
  aclrtMemcpy(bytes, MIB, range + 4 * MIB, MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range);
  aclrtUnmapMem(range + 4 * MIB);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""",
    "block_that_moves": """
  char* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMemset(range, MIB, 1, MIB);
  aclrtUnmapMem(range);
  aclrtMapMem(range + 8 * MIB, 2 * MIB, 0, block, 0);
  aclrtMemcpy(bytes, MIB, range + 8 * MIB, MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range + 8 * MIB);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""",
    "across_two_blocks": """
  char* range = new_range();
  aclrtDrvMemHandle one = new_block(), two = new_block();
  aclrtMapMem(range, 2 * MIB, 0, one, 0);
  aclrtMapMem(range + 2 * MIB, 2 * MIB, 0, two, 0);
  aclrtMemset(range + MIB, 2 * MIB, 1, 2 * MIB);
  aclrtMemcpy(bytes, 2 * MIB, range + MIB, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range);
  aclrtUnmapMem(range + 2 * MIB);
  aclrtFreePhysical(one);
  aclrtFreePhysical(two);
  aclrtReleaseMemAddress(range);
""",
    "memory_that_the_cpu_may_write": GRANT + """
  char* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  if (aclrtMemSetAccess(range, 2 * MIB, &grant, 1) != ACL_SUCCESS) return 9;
  memset(range, 1, 2 * MIB);
  aclrtMemcpy(bytes, 2 * MIB, range, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range);
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMemcpy(bytes, 2 * MIB, range, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""",
    "host_block": """
  aclrtPhysicalMemProp prop = {0};
  aclrtDrvMemHandle block = NULL;
  char* range = new_range();
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  if (aclrtMallocPhysical(&block, 2 * MIB, &prop, 0) != ACL_SUCCESS) return 9;
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMemcpy(memory, MIB, range, MIB, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(bytes, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""",
    "managed_memory": """
  char* managed = NULL;
  if (aclrtMemAllocManaged((void**)&managed, 2 * MIB, ACL_RT_MEM_ATTACH_GLOBAL) != ACL_SUCCESS) return 9;
  aclrtMemcpy(bytes, 64, managed, 64, ACL_MEMCPY_DEFAULT);
  managed[MIB] = 1;
  aclrtMemcpy(memory, 64, managed + MIB, 64, ACL_MEMCPY_DEFAULT);
  aclrtFree(managed);
""",
    "host_memory": """
  aclrtMemcpy(memory, MIB, host, MIB, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpyAsync(host, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream);
""",
    "other_ways_to_write": """
  aclrtMemsetD32(memory, 256, 1, 64);
  aclrtMemsetD32Async(memory + 256, 256, 1, 64, stream);
  aclrtValueWrite(memory + 512, 1, 0, stream);
  aclrtMemcpyAsync(memory + 576, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream);
  aclrtMemcpyAsync(memory + 640, 64, bytes, 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream);
  aclrtMemcpyAsync(host, 704, memory, 704, ACL_MEMCPY_DEVICE_TO_HOST, stream);
""",
    "wait_for_a_value_that_comes_later": """
  aclrtStream second = NULL;
  aclrtCreateStream(&second);
  aclrtValueWait(memory, 7, 1, second);
  aclrtValueWrite(memory, 7, 0, stream);
  aclrtSynchronizeStream(second);
  aclrtDestroyStream(second);
""",
    "bytes_move_within_their_memory": """
  aclrtMemset(memory, MIB, 1, MIB);
  aclrtMemcpyAsync(memory + 4096, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
  aclrtMemcpyAsync(host, MIB, memory + 4096, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream);
""",
    "pool_memory_is_used_again_before_it_was_read": """
  aclrtMemPool pool = new_pool();
  aclrtNotify notify = NULL;
  void *part = NULL, *next = NULL;
  aclrtCreateNotify(&notify, 0);
  aclrtMemPoolMallocAsync(&part, MIB, pool, stream);
  aclrtMemsetAsync(part, MIB, 1, MIB, stream);
  aclrtWaitAndResetNotify(notify, stream, 0);
  aclrtMemcpyAsync(host, MIB, part, MIB, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  aclrtMemPoolFreeAsync(part, stream);
  aclrtMemPoolMallocAsync(&next, MIB, pool, stream);
  if (next != part) return 9;
  aclrtStream second = NULL;
  aclrtCreateStream(&second);
  aclrtRecordNotify(notify, second);
  aclrtSynchronizeDevice();
  aclrtMemPoolFreeAsync(next, stream);
  aclrtSynchronizeDevice();
  aclrtDestroyStream(second);
  aclrtDestroyNotify(notify);
  aclrtMemPoolDestroy(pool);
""",
    "memory_that_only_the_device_writes": """
  void* constant = NULL;
  aclrtMalloc(&constant, 4096, ACL_MEM_MALLOC_HUGE_FIRST | ACL_MEM_ACCESS_USER_SPACE_READONLY);
  aclrtMemcpy(bytes, 4096, constant, 4096, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtFree(constant);
""",
    "copy_that_is_refused": """
  if (aclrtMemcpy(bytes, 64, memory + 5 * MIB, 64, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS) return 9;
""",
    "exported_memory": """
  aclrtDrvMemHandle block = new_block();
  char* range = new_range();
  uint64_t token = 0;
  char key[65] = {0};
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  if (aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &token) != ACL_SUCCESS) return 9;
  void* small = NULL;
  aclrtMalloc(&small, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  if (aclrtIpcMemGetExportKey(small, 4096, key, sizeof key, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) != ACL_SUCCESS) return 9;
  const pid_t child = fork();
  if (child == 0) {
    aclrtDrvMemHandle imported = NULL;
    void *there = NULL, *here = NULL;
    aclrtSetDevice(0);
    if (aclrtMemImportFromShareableHandle(token, 0, &imported) != ACL_SUCCESS) _exit(9);
    aclrtReserveMemAddress(&there, 2 * MIB, 0, NULL, 1);
    aclrtMapMem(there, 2 * MIB, 0, imported, 0);
    aclrtMemcpy(bytes, MIB, there, MIB, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtMemset(there, 2 * MIB, 1, 2 * MIB);
    if (aclrtIpcMemImportByKey(&here, key, 0) != ACL_SUCCESS) _exit(9);
    aclrtMemcpy(bytes, 4096, here, 4096, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtIpcMemClose(key);
    aclrtUnmapMem(there);
    aclrtFreePhysical(imported);
    aclrtReleaseMemAddress(there);
    aclrtResetDevice(0);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return 9;
  aclrtMemcpy(bytes, 2 * MIB, range, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtMemcpy(bytes, 4096, small, 4096, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtFree(small);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""",
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_program_is_silent(check, name):  # noqa: F811
    result = check(BEFORE + LEGAL[name] + AFTER, "--check=init")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("option", [["--host-access", "allow"], ["--poison", "on"]])
def test_memory_that_is_written_unseen_is_silent(check, option):  # noqa: F811
    wrong, _ = bodies("read_before_write")
    result = check(wrong, "--check=init", *option)
    assert (result.returncode, result.stderr) == (0, "")


def test_both_stacks_and_the_block_are_told(check):  # noqa: F811
    wrong, _ = bodies("wake_up")
    result = check(wrong, "--check=init")
    notes = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
    assert notes[0] == "read by aclrtMemcpy"
    assert notes[1].startswith(line_of(wrong, "read"))
    assert notes[2] == "mapping of 2 MiB on device 0 mapped by aclrtMapMem"
    assert notes[3].startswith(line_of(wrong, "made"))
    assert notes[4] == "physical block of 2 MiB on device 0 created by aclrtMallocPhysical"


def test_a_place_is_told_once(check):  # noqa: F811
    result = check(BEFORE + """
  for (int i = 0; i < 20; ++i) {
    aclrtMemcpyAsync(host, 64, memory + 64 * i, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  }
""" + AFTER, "--check=init")
    assert len(told_by(result)) == 1, result.stderr


def test_a_fork_child_checks_its_own_memory(check):  # noqa: F811
    body = """
  aclrtMemset(memory, MIB, 1, MIB);
  const pid_t child = fork();
  if (child == 0) {
    void* own = NULL;
    aclrtSetDevice(0);
    aclrtMalloc(&own, MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*own*/
    aclrtMemcpy(bytes, 64, own, 64, ACL_MEMCPY_DEVICE_TO_HOST); /*read*/
    aclrtFree(own);
    aclrtResetDevice(0);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 86) return 9;
  aclrtMemcpy(bytes, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST);
"""
    result = check(BEFORE + body + AFTER, "--check=init")
    assert result.returncode == 0, result.stderr
    told = told_by(result)
    assert len(told) == 1 and line_of(BEFORE + body, "read") in told[0], result.stderr
    assert told[0].endswith(line_of(BEFORE + body, "own"))
