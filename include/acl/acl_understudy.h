/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the software NPU can tell. Everything else in include/acl exists on a real device as
 * well; a program that is to run on both looks these functions up at run time, or declares them
 * weak, and does without them where they are missing.
 */
#ifndef ACL_ACL_UNDERSTUDY_H_
#define ACL_ACL_UNDERSTUDY_H_

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Host memory behind the memory of a device, in bytes, by the pages it is made of. */
typedef struct aclUnderstudyBacking {
  uint64_t smallPages;   /* 4 KiB pages */
  uint64_t collapsed;    /* 2 MiB pages, got without a hugetlb pool */
  uint64_t hugetlb2m;    /* 2 MiB pages of the host's hugetlb pool */
  uint64_t hugetlb1g;    /* 1 GiB pages of the host's hugetlb pool */
  uint64_t recyclable;   /* the part of all this that no block uses at the moment */
  uint64_t processTotal; /* what this process has taken for all devices and host blocks */
  uint64_t reserved[10];
} aclUnderstudyBacking;

/* Tells what this process has put behind a device's memory so far. Untouched memory costs nothing
 * and is not in it. */
ACL_FUNC_VISIBILITY aclError aclUnderstudyGetBacking(int32_t deviceId,
                                                     aclUnderstudyBacking* backing);

/* Page-locked host memory of this process (aclrtMallocHost), in bytes. */
typedef struct aclUnderstudyHostMemory {
  uint64_t locked;   /* cannot leave main memory */
  uint64_t unlocked; /* present, but the user may not lock more (host_lock=best_effort) */
  uint64_t huge;     /* the part of both that was asked for in 2 MiB pages */
  uint64_t cached;   /* the part of both that no block uses at the moment */
  uint64_t reserved[12];
} aclUnderstudyHostMemory;

/* Tells what this process has taken for page-locked host memory so far. */
ACL_FUNC_VISIBILITY aclError aclUnderstudyGetHostMemory(aclUnderstudyHostMemory* memory);

/* What of this process is alive, for tests that look for leaks. */
typedef struct aclUnderstudyObjects {
  uint64_t deviceBytes;     /* memory of all devices that this process has, without imports */
  uint64_t allocations;     /* of the aclrtMalloc family, managed, and imported by key */
  uint64_t hostAllocations; /* of the aclrtMallocHost family */
  uint64_t physicalHandles; /* of aclrtMallocPhysical, imports and retained ones */
  uint64_t reservations;    /* of addresses */
  uint64_t mappings;        /* in reservations */
  uint64_t heldCalls;       /* calls that wait for aclrtSnapShotProcessUnlock */
  uint64_t streams;         /* created ones; not the default stream that every context has */
  uint64_t events;          /* of all kinds, and opened ones of other processes */
  uint64_t notifies;        /* plain, counting and imported ones */
  uint64_t pools;           /* of aclrtMemPoolCreate */
  uint64_t reserved[5];
} aclUnderstudyObjects;

/* Counts them. All are 0 in a process that made no call yet; the runtime is not started for it. */
ACL_FUNC_VISIBILITY aclError aclUnderstudyCountObjects(aclUnderstudyObjects* objects);

/* Takes callbacks of aclrtLaunchCallback that will never run, because their stream was aborted or
 * ended, or no thread serves it: for the owner of what userData refers to. They are remembered from
 * the first call for a function on, until they are taken.
 * [out] userData  room for capacity pointers; they come in no order
 * [out] count     how many there were; if as many as there is room for, there may be more */
ACL_FUNC_VISIBILITY aclError aclUnderstudyTakeDroppedCallbacks(aclrtCallback fn, void** userData,
                                                               size_t capacity, size_t* count);

/* What failed: a call, or a task of a stream. */
typedef struct aclUnderstudyFailure {
  const char* function; /* the function that failed; NULL if it is a task */
  const char* sentence; /* what is wrong, in one line; only valid during the call */
  aclError code;        /* that the function returns, or a synchronization will return */
  int32_t deviceId;     /* of the task, and so are the next two; -1 if it is a call */
  uint32_t streamId;
  uint32_t taskId;
  uint64_t reserved[4];
} aclUnderstudyFailure;

typedef void (*aclUnderstudyErrorListener)(const aclUnderstudyFailure* failure, void* userData);

/* Has fn called whenever a call of this process fails, before that call returns, and whenever a
 * task of a stream fails; for tools that show what went wrong in a test. There is one listener in a
 * process: it replaces the one before, and NULL is none. When this returns, no thread is in the one
 * before any more, so a caller must hold no lock that it takes.
 * fn runs on the thread that failed, so several threads may be in it. It may make calls, of whose
 * failures it does not hear, and must return. A child of fork starts without a listener.
 * Fails in a listener. */
ACL_FUNC_VISIBILITY aclError aclUnderstudySetErrorListener(aclUnderstudyErrorListener fn,
                                                           void* userData);

/* Whether this process wants to know where calls come from: 0 if not, else a sum of 1, for checks
 * (key check), and 2, for a recording with call stacks. */
ACL_FUNC_VISIBILITY int32_t aclUnderstudyWantsPlaces(void);

/* Says where in the program the calls of the calling thread come from, until it says otherwise. For
 * modules of interpreters, whose own stack says nothing of the program.
 * [in] place  lines such as "kv.py:41 fill", the innermost first; the library keeps a copy for the
 *             life of the process. NULL: where the thread's stack says */
ACL_FUNC_VISIBILITY void aclUnderstudySetPlace(const char* place);

/* A number for this moment, for aclUnderstudyVisitGrowth: how many objects checks have seen begin.
 */
ACL_FUNC_VISIBILITY uint64_t aclUnderstudyMark(void);

/* Objects of one kind that one place of the program has made, and that are alive. */
typedef struct aclUnderstudyGrowth {
  const char* sentence; /* "2 streams on device 0, created at kv.c:41 by aclrtCreateStream" */
  const char* place;    /* "kv.c:41"; both are only valid during the call */
  uint64_t objects;
  uint64_t bytes; /* of all of them; 0 if they have no size */
  uint64_t reserved[4];
} aclUnderstudyGrowth;

typedef void (*aclUnderstudyGrowthVisitor)(const aclUnderstudyGrowth* growth, void* userData);

/* Calls fn for each place that has made objects since a mark which are alive now, in the order of
 * their beginning. Places are known where a check is chosen (key check): nothing is visited where
 * aclUnderstudyWantsPlaces lacks 1; aclUnderstudyCountObjects counts there, too. fn may make calls.
 */
ACL_FUNC_VISIBILITY aclError aclUnderstudyVisitGrowth(uint64_t mark, aclUnderstudyGrowthVisitor fn,
                                                      void* userData);

/* What a check has found. */
typedef struct aclUnderstudyFinding {
  const char* check;    /* "history", "leaks", ... */
  const char* sentence; /* what was found, in one line */
  const char* text;     /* the same and the places of the program, in lines as they are printed */
  uint64_t times;       /* that it happened at the same places */
  uint64_t reserved[4];
} aclUnderstudyFinding;

typedef void (*aclUnderstudyFindingVisitor)(const aclUnderstudyFinding* finding, void* userData);

/* Calls fn for each finding of this process that was not taken before, for tools that run several
 * tests in one process. What was taken is not in the report at the end of the process, and does not
 * change its exit status. The texts are only valid during the call; fn may make calls. */
ACL_FUNC_VISIBILITY aclError aclUnderstudyTakeFindings(aclUnderstudyFindingVisitor fn,
                                                       void* userData);

/* With the place of the program that made it, for each call. */
#define ACL_UNDERSTUDY_RECORD_STACKS 0x1U
/* When the file is full, its oldest part is written anew; else what comes then is lost. */
#define ACL_UNDERSTUDY_RECORD_RING 0x2U

typedef struct aclUnderstudyRecordingOptions {
  uint64_t limit; /* how long the file may become, in bytes: 1 MiB to 1 TiB; 0: 1 GiB */
  uint32_t flags; /* of ACL_UNDERSTUDY_RECORD_* */
  uint32_t reserved32;
  uint64_t reserved[6]; /* 0 */
} aclUnderstudyRecordingOptions;

/* Records what this process does from now on, until aclUnderstudyStopRecording: calls with their
 * arguments, objects and tasks of all threads, for the command `understudy trace`. Of objects that
 * are there already only the end is recorded; calls and tasks under way are not in it. Children
 * that the process forks meanwhile go on in the same file, each until it stops it for itself.
 * options  NULL: a recording without stacks, of 1 GiB at most
 * A recording that the file is already is replaced, a file that is anything else is refused. What a
 * process has recorded when it is killed can be read.
 * Fails with ACL_ERROR_REPEAT_INITIALIZE while the process is recorded, by a call before this one
 * or because of the key trace. */
ACL_FUNC_VISIBILITY aclError
aclUnderstudyStartRecording(const char* path, const aclUnderstudyRecordingOptions* options);

/* Ends it for this process. Another one may begin then. Calls that are under way are in it as such.
 * Fails with ACL_ERROR_REPEAT_FINALIZE where there is nothing to end; a recording that the key
 * trace asked for lasts as long as the process. */
ACL_FUNC_VISIBILITY aclError aclUnderstudyStopRecording(void);

/* The runtime directory of the server that this process is on, for as long as it lives; NULL before
 * the first call that needs a server. */
ACL_FUNC_VISIBILITY const char* aclUnderstudyRuntimeDirectory(void);

#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_UNDERSTUDY_H_ */
