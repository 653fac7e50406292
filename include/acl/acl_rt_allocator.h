/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom allocators: a program registers its own device-memory allocator for a stream, and operator
 * libraries look it up there. The memory calls of acl_rt.h never use it. Rules: ALLOC.
 */
#ifndef ACL_ACL_RT_ALLOCATOR_H_
#define ACL_ACL_RT_ALLOCATOR_H_

#include <stddef.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---- */

typedef void* aclrtAllocatorDesc;  /* collects the values of one registration */
typedef void* aclrtAllocator;      /* the program's allocator object */
typedef void* aclrtAllocatorBlock; /* a block of that allocator, not an address */
typedef void* aclrtAllocatorAddr;  /* a device address */

/* Returns a new block of at least size bytes. */
typedef void* (*aclrtAllocatorAllocFunc)(aclrtAllocator allocator, size_t size);
/* Gives a block back. */
typedef void (*aclrtAllocatorFreeFunc)(aclrtAllocator allocator, aclrtAllocatorBlock block);
/* Returns a new block, if possible at addr. */
typedef void* (*aclrtAllocatorAllocAdviseFunc)(aclrtAllocator allocator, size_t size,
                                               aclrtAllocatorAddr addr);
/* Returns the device address of a block. */
typedef void* (*aclrtAllocatorGetAddrFromBlockFunc)(aclrtAllocatorBlock block);

/* ---- Descriptors ---- */

/* Returns a new, empty descriptor, or NULL when host memory is short. */
ACL_FUNC_VISIBILITY aclrtAllocatorDesc aclrtAllocatorCreateDesc(void);

/* Destroys a descriptor. Registrations made with it stay in force. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc);

/* Stores the allocator object, which the functions below receive first. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
                                                        aclrtAllocator allocator);

/* Stores the allocation function. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                              aclrtAllocatorAllocFunc func);

/* Stores the free function. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                             aclrtAllocatorFreeFunc func);

/* Stores the allocation function that takes a wished address; the only optional value. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetAllocAdviseFuncToDesc(
    aclrtAllocatorDesc allocatorDesc, aclrtAllocatorAllocAdviseFunc func);

/* Stores the function that turns a block into its device address. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(
    aclrtAllocatorDesc allocatorDesc, aclrtAllocatorGetAddrFromBlockFunc func);

/* ---- Registration ---- */

/* Registers a copy of the descriptor's values for the stream, in place of an earlier registration.
 * NULL is not the default stream here. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorRegister(aclrtStream stream,
                                                    aclrtAllocatorDesc allocatorDesc);

/* Reads back what is registered for the stream. Every output but allocatorDesc may be NULL.
 * [out] allocatorDesc  the handle used at registration, perhaps destroyed since */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorGetByStream(
    aclrtStream stream, aclrtAllocatorDesc* allocatorDesc, aclrtAllocator* allocator,
    aclrtAllocatorAllocFunc* allocFunc, aclrtAllocatorFreeFunc* freeFunc,
    aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
    aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc);

/* Ends the stream's registration, if it has one. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorUnregister(aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_RT_ALLOCATOR_H_ */
