/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the media chapter, only its memory: programs that also run the video and image units allocate
 * with it. Here it is plain device memory.
 */
#ifndef ACL_OPS_ACL_DVPP_H_
#define ACL_OPS_ACL_DVPP_H_

#include <stddef.h>

#include "../acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates memory of the current device whose address is a multiple of 128. */
ACL_FUNC_VISIBILITY aclError acldvppMalloc(void** devPtr, size_t size);

/* Frees what acldvppMalloc gave. */
ACL_FUNC_VISIBILITY aclError acldvppFree(void* devPtr);

#ifdef __cplusplus
}
#endif

#endif /* ACL_OPS_ACL_DVPP_H_ */
