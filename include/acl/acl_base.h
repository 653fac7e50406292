/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every other ACL header builds on: symbol visibility, the header version, the result type
 * with the codes of the API layer, the common handles and a few base types.
 */
#ifndef ACL_ACL_BASE_H_
#define ACL_ACL_BASE_H_

#include <stddef.h>
#include <stdint.h>

#include "error_codes/rt_error_codes.h"

#if defined(__GNUC__) || defined(__clang__)
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#else
#define ACL_FUNC_VISIBILITY
#endif

/* Callers may pass numbers that an enum does not list. With a fixed underlying type such a number
 * is a valid value in C++ too; size and promotion are those of C. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define ACL_ENUM_BASE : int
#else
#define ACL_ENUM_BASE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version of the headers ---- */

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

/* ---- Results ---- */

/* Zero, or the reason of the failure: one of the codes below or in rt_error_codes.h. */
typedef int aclError;

#define ACL_SUCCESS 0
#define ACL_ERROR_NONE 0 /* deprecated name of ACL_SUCCESS */

/* 1xxxxx: the caller or its environment */
#define ACL_ERROR_INVALID_PARAM 100000                 /* argument check failed */
#define ACL_ERROR_UNINITIALIZE 100001                  /* feature not initialised */
#define ACL_ERROR_REPEAT_INITIALIZE 100002             /* initialised or loaded twice */
#define ACL_ERROR_INVALID_FILE 100003                  /* file missing or unreadable */
#define ACL_ERROR_REPEAT_SUBSCRIBE 100033              /* stream subscribed twice */
#define ACL_ERROR_STREAM_NOT_SUBSCRIBE 100034          /* stream not subscribed (deprecated) */
#define ACL_ERROR_THREAD_NOT_SUBSCRIBE 100035          /* thread not subscribed (deprecated) */
#define ACL_ERROR_WAIT_CALLBACK_TIMEOUT 100036         /* no callback in time (deprecated) */
#define ACL_ERROR_REPEAT_FINALIZE 100037               /* finalised twice */
#define ACL_ERROR_COMPILING_STUB_MODE 100039           /* a stub library was loaded */
#define ACL_ERROR_GROUP_NOT_SET 100040                 /* no compute group chosen (deprecated) */
#define ACL_ERROR_GROUP_NOT_CREATE 100041              /* no such compute group (deprecated) */
#define ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED 148051 /* a dependent resource is still alive */

/* 2xxxxx: resources and support */
#define ACL_ERROR_BAD_ALLOC 200000                /* allocation on the host side failed */
#define ACL_ERROR_API_NOT_SUPPORT 200001          /* function not supported */
#define ACL_ERROR_INVALID_DEVICE 200002           /* bad device (deprecated, see 107001) */
#define ACL_ERROR_MEMORY_ADDRESS_UNALIGNED 200003 /* address not aligned */
#define ACL_ERROR_RESOURCE_NOT_MATCH 200004       /* stream and context do not match */
#define ACL_ERROR_INVALID_RESOURCE_HANDLE 200005  /* destroyed or foreign handle */
#define ACL_ERROR_FEATURE_UNSUPPORTED 200006      /* feature not supported */

/* 3xxxxx: business conditions */
#define ACL_ERROR_STORAGE_OVER_LIMIT 300000 /* storage limit exceeded */

/* 5xxxxx: internal faults */
#define ACL_ERROR_INTERNAL_ERROR 500000 /* unknown internal error */
#define ACL_ERROR_FAILURE 500001        /* internal error */
#define ACL_ERROR_RT_FAILURE 500003     /* error of the runtime module */
#define ACL_ERROR_DRV_FAILURE 500004    /* error of the driver module */

/* ---- Handles ---- */

/* Opaque. NULL is never valid, except that a NULL aclrtStream mostly means the default stream. */
typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

/* ---- Base types ---- */

/* Where the data of an operator argument lives. */
typedef enum aclMemType ACL_ENUM_BASE {
  ACL_MEMTYPE_DEVICE = 0,
  ACL_MEMTYPE_HOST = 1,
  ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT = 2 /* host value the compiled operator does not depend on */
} aclMemType;

/* ---- Data types ---- */

typedef enum aclDataType ACL_ENUM_BASE {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
  ACL_FLOAT8_E8M0 = 37,
  ACL_FLOAT6_E3M2 = 38,
  ACL_FLOAT6_E2M3 = 39,
  ACL_FLOAT4_E2M1 = 40,
  ACL_FLOAT4_E1M2 = 41
} aclDataType;

/* The bits of a half-precision number. */
typedef uint16_t aclFloat16;

/* Converts both ways, to the nearest number and to even in the middle. To float, exponent 31 is an
 * ordinary one; to half precision, what is too large, or no number, becomes the largest number.
 * Rules: HALF. */
ACL_FUNC_VISIBILITY float aclFloat16ToFloat(aclFloat16 value);
ACL_FUNC_VISIBILITY aclFloat16 aclFloatToFloat16(float value);

/* Bytes of one element; 0 where they are not whole bytes, and for numbers that are no type. */
ACL_FUNC_VISIBILITY size_t aclDataTypeSize(aclDataType dataType);

/* ---- Data buffers: an address and a size under one handle ---- */

typedef struct aclDataBuffer aclDataBuffer; /* opaque */

/* Makes one; NULL on failure. The data stays the caller's, and may be NULL. */
ACL_FUNC_VISIBILITY aclDataBuffer* aclCreateDataBuffer(void* data, size_t size);

/* Ends it, and leaves the data alone. */
ACL_FUNC_VISIBILITY aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer);

/* Lets it stand for other data. */
ACL_FUNC_VISIBILITY aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data,
                                                 size_t size);

/* What it stands for; NULL or 0 if it is no data buffer. The first size is deprecated: it has 32
 * bits. */
ACL_FUNC_VISIBILITY void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer);
ACL_FUNC_VISIBILITY uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer);
ACL_FUNC_VISIBILITY size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer);

/* ---- Log lines of the program ---- */

typedef enum aclLogLevel ACL_ENUM_BASE {
  ACL_DEBUG = 0,
  ACL_INFO = 1,
  ACL_WARNING = 2,
  ACL_ERROR = 3
} aclLogLevel;

#if defined(__GNUC__) || defined(__clang__)
#define ACL_PRINTF_LIKE(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define ACL_PRINTF_LIKE(text, first)
#endif

/* Writes one line to standard error, or to standard output if ASCEND_SLOG_PRINT_TO_STDOUT is 1,
 * from the level of ASCEND_GLOBAL_LOG_LEVEL on, which is 3 unless it is set. */
ACL_FUNC_VISIBILITY void aclAppLog(aclLogLevel logLevel, const char* func, const char* file,
                                   uint32_t line, const char* fmt, ...) ACL_PRINTF_LIKE(5, 6);

#define ACL_APP_LOG(level, ...) aclAppLog(level, __func__, __FILE__, __LINE__, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_BASE_H_ */
