/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result codes of the runtime and of the device below it. The first digit is the class:
 * 1 the caller or its environment, 2 resources or hardware, 5 an internal or device fault.
 * The codes of the API layer (100000 and up) are in acl_base.h.
 */
#ifndef ACL_ERROR_CODES_RT_ERROR_CODES_H_
#define ACL_ERROR_CODES_RT_ERROR_CODES_H_

#define ACL_RT_SUCCESS 0

/* ---- 107xxx: arguments and objects ---- */

#define ACL_ERROR_RT_PARAM_INVALID 107000               /* argument check failed */
#define ACL_ERROR_RT_INVALID_DEVICEID 107001            /* bad device id */
#define ACL_ERROR_RT_CONTEXT_NULL 107002                /* the thread has no context */
#define ACL_ERROR_RT_STREAM_CONTEXT 107003              /* stream of another context */
#define ACL_ERROR_RT_MODEL_CONTEXT 107004               /* model of another context */
#define ACL_ERROR_RT_STREAM_MODEL 107005                /* stream not bound to the model */
#define ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID 107006     /* event has no timestamp */
#define ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL 107007    /* end event before start event */
#define ACL_ERROR_RT_ADDR_UNALIGNED 107008              /* address not aligned */
#define ACL_ERROR_RT_FILE_OPEN 107009                   /* file cannot be opened */
#define ACL_ERROR_RT_FILE_WRITE 107010                  /* file cannot be written */
#define ACL_ERROR_RT_STREAM_SUBSCRIBE 107011            /* no or second stream subscriber */
#define ACL_ERROR_RT_THREAD_SUBSCRIBE 107012            /* no or second thread subscriber */
#define ACL_ERROR_RT_GROUP_NOT_SET 107013               /* no compute group chosen */
#define ACL_ERROR_RT_GROUP_NOT_CREATE 107014            /* compute group does not exist */
#define ACL_ERROR_RT_STREAM_NO_CB_REG 107015            /* no thread serves the callbacks */
#define ACL_ERROR_RT_INVALID_MEMORY_TYPE 107016         /* bad memory type */
#define ACL_ERROR_RT_INVALID_HANDLE 107017              /* bad or destroyed handle */
#define ACL_ERROR_RT_INVALID_MALLOC_TYPE 107018         /* wrong kind of allocation */
#define ACL_ERROR_RT_WAIT_TIMEOUT 107019                /* wait timed out */
#define ACL_ERROR_RT_TASK_TIMEOUT 107020                /* task timed out */
#define ACL_ERROR_RT_SYSPARAMOPT_NOT_SET 107021         /* context option was never set */
#define ACL_ERROR_RT_DEVICE_TASK_ABORT 107022           /* device tasks are being aborted */
#define ACL_ERROR_RT_STREAM_ABORT 107023                /* stream is being cleared */
#define ACL_ERROR_RT_CAPTURE_DEPENDENCY 107024          /* capture: wait without its record */
#define ACL_ERROR_RT_STREAM_UNJOINED 107025             /* capture: side stream not joined */
#define ACL_ERROR_RT_MODEL_CAPTURED 107026              /* model is being captured */
#define ACL_ERROR_RT_STREAM_CAPTURED 107027             /* stream is being captured */
#define ACL_ERROR_RT_EVENT_CAPTURED 107028              /* event is being captured */
#define ACL_ERROR_RT_STREAM_NOT_CAPTURED 107029         /* stream is not being captured */
#define ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT 107030    /* call forbidden in this capture mode */
#define ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT 107031     /* capture: default stream used */
#define ACL_ERROR_STREAM_CAPTURE_CONFLICT 107032        /* event and stream of two captures */
#define ACL_ERROR_STREAM_TASK_GROUP_STATUS 107033       /* task group in the wrong state */
#define ACL_ERROR_STREAM_TASK_GROUP_INTR 107034         /* task group interrupted */
#define ACL_ERROR_RT_TASK_ABORT_STOP 107035             /* abort stopped early */
#define ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED 107036    /* capture was not begun here */
#define ACL_ERROR_RT_MODEL_RUNNING 107037               /* model still running */
#define ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD 107038 /* capture ended on another thread */
#define ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY 107039    /* the caller's array is too small */
#define ACL_ERROR_RT_MODEL_UPDATE_FAILED 107040         /* model update failed */
#define ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC 107041    /* capture: async call blocked */
#define ACL_ERROR_RT_SYMBOL_NOT_FOUND 107042            /* device variable not found */
#define ACL_ERROR_RT_INVALID_SYMBOL 107043              /* not a device variable */
#define ACL_ERROR_RT_INVALID_DEVICE_FUNCTION 107044     /* not a device function */
#define ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING 107045   /* sub-graph is being captured */

/* ---- 207xxx: resources and support ---- */

#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000           /* product or driver cannot do this */
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001             /* out of memory, and nothing else */
#define ACL_ERROR_RT_MEMORY_FREE 207002                   /* freeing failed */
#define ACL_ERROR_RT_AICORE_OVER_FLOW 207003              /* overflow in an AI Core */
#define ACL_ERROR_RT_NO_DEVICE 207004                     /* no usable device */
#define ACL_ERROR_RT_RESOURCE_ALLOC_FAIL 207005           /* no resources left */
#define ACL_ERROR_RT_NO_PERMISSION 207006                 /* not permitted */
#define ACL_ERROR_RT_NO_EVENT_RESOURCE 207007             /* no event left */
#define ACL_ERROR_RT_NO_STREAM_RESOURCE 207008            /* no stream left */
#define ACL_ERROR_RT_NO_NOTIFY_RESOURCE 207009            /* no notify left */
#define ACL_ERROR_RT_NO_MODEL_RESOURCE 207010             /* no model left */
#define ACL_ERROR_RT_NO_CDQ_RESOURCE 207011               /* no hardware queue left */
#define ACL_ERROR_RT_OVER_LIMIT 207012                    /* too many queues */
#define ACL_ERROR_RT_QUEUE_EMPTY 207013                   /* queue empty */
#define ACL_ERROR_RT_QUEUE_FULL 207014                    /* queue full */
#define ACL_ERROR_RT_REPEATED_INIT 207015                 /* queue initialised twice */
#define ACL_ERROR_RT_AIVEC_OVER_FLOW 207016               /* overflow in a vector core */
#define ACL_ERROR_RT_OVER_FLOW 207017                     /* overflow */
#define ACL_ERROR_RT_DEVICE_OOM 207018                    /* a task ran out of device memory */
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP 207019 /* driver cannot update this operator */
#define ACL_ERROR_RT_TIMEOUT 207020                       /* driver timed out */
#define ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED 207021       /* no such link between the devices */

/* ---- 507xxx: runtime and device faults ---- */

#define ACL_ERROR_RT_INTERNAL_ERROR 507000                  /* runtime internal error */
#define ACL_ERROR_RT_TS_ERROR 507001                        /* task scheduler error */
#define ACL_ERROR_RT_STREAM_TASK_FULL 507002                /* stream queue full */
#define ACL_ERROR_RT_STREAM_TASK_EMPTY 507003               /* stream queue empty */
#define ACL_ERROR_RT_STREAM_NOT_COMPLETE 507004             /* stream still busy */
#define ACL_ERROR_RT_END_OF_SEQUENCE 507005                 /* end of the sequence */
#define ACL_ERROR_RT_EVENT_NOT_COMPLETE 507006              /* event still pending */
#define ACL_ERROR_RT_CONTEXT_RELEASE_ERROR 507007           /* context release failed */
#define ACL_ERROR_RT_SOC_VERSION 507008                     /* wrong SoC version */
#define ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT 507009           /* task type not supported */
#define ACL_ERROR_RT_LOST_HEARTBEAT 507010                  /* scheduler heartbeat lost */
#define ACL_ERROR_RT_MODEL_EXECUTE 507011                   /* model execution failed */
#define ACL_ERROR_RT_REPORT_TIMEOUT 507012                  /* no callback arrived in time */
#define ACL_ERROR_RT_SYS_DMA 507013                         /* DMA hardware error */
#define ACL_ERROR_RT_AICORE_TIMEOUT 507014                  /* AI Core timed out */
#define ACL_ERROR_RT_AICORE_EXCEPTION 507015                /* AI Core exception */
#define ACL_ERROR_RT_AICORE_TRAP_EXCEPTION 507016           /* AI Core trap */
#define ACL_ERROR_RT_AICPU_TIMEOUT 507017                   /* AI CPU timed out */
#define ACL_ERROR_RT_AICPU_EXCEPTION 507018                 /* AI CPU exception */
#define ACL_ERROR_RT_IPC_ERROR 507022                       /* inter-process communication fault */
#define ACL_ERROR_RT_MODEL_ABORT_NORMAL 507023              /* model was left early */
#define ACL_ERROR_RT_LABEL_CONTEXT 507031                   /* label of another context */
#define ACL_ERROR_RT_DEV_SETUP_ERROR 507033                 /* device start failed */
#define ACL_ERROR_RT_VECTOR_CORE_TIMEOUT 507034             /* vector core timed out */
#define ACL_ERROR_RT_VECTOR_CORE_EXCEPTION 507035           /* vector core exception */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION 507036      /* vector core trap */
#define ACL_ERROR_RT_AICORE_TRAP_READ_OVERFLOW 507042       /* AI Core read out of bounds */
#define ACL_ERROR_RT_AICORE_TRAP_WRITE_OVERFLOW 507043      /* AI Core wrote out of bounds */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_READ_OVERFLOW 507044  /* vector core read out of bounds */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW 507045 /* vector core wrote out of bounds */
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046             /* stream wait timed out */
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047              /* event wait timed out */
#define ACL_ERROR_RT_SEND_MSG 507051                        /* host-device message failed */
#define ACL_ERROR_RT_COPY_DATA 507052                       /* host-device copy failed */
#define ACL_ERROR_RT_DEVICE_MEM_ERROR 507053                /* uncorrectable memory error */
#define ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR 507054         /* multi-bit ECC error in HBM */
#define ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR 507055        /* suspected memory error of a peer */
#define ACL_ERROR_RT_LINK_ERROR 507056                      /* link between devices lost */
#define ACL_ERROR_RT_SUSPECT_REMOTE_ERROR 507057            /* suspected remote fault or overrun */
#define ACL_ERROR_RT_DRV_INTERNAL_ERROR 507899              /* any other driver failure */
#define ACL_ERROR_RT_SOCKET_CLOSE 507901                    /* host-device session closed */
#define ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED 507903      /* capture became invalid */
#define ACL_ERROR_RT_COMM_OP_RETRY_FAIL 507904              /* communication failed again */
#define ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT 507905             /* snapshot: calls did not end in time */
#define ACL_ERROR_SNAPSHOT_LOCK_FAILED 507906              /* snapshot: cannot lock now */
#define ACL_ERROR_SNAPSHOT_UNLOCK_FAILED 507907            /* snapshot: cannot unlock now */
#define ACL_ERROR_SNAPSHOT_BACKUP_FAILED 507908            /* snapshot: cannot back up now */
#define ACL_ERROR_SNAPSHOT_RESTORE_FAILED 507909           /* snapshot: cannot restore now */
#define ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED 507910    /* host range registered already */
#define ACL_ERROR_HOST_MEMORY_NOT_REGISTERED 507911        /* host range not registered */
#define ACL_ERROR_SNAPSHOT_CALLBACK_FAILED 507912          /* snapshot: a callback refused */
#define ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED 507913 /* snapshot: registered already */
#define ACL_ERROR_RT_L3_PORT_ERROR 507914                  /* L3 port error */
#define ACL_ERROR_RT_CCU_TIMEOUT 507915                    /* communication unit timed out */
#define ACL_ERROR_RT_CCU_EXCEPTION 507916                  /* communication unit failed */

#endif /* ACL_ERROR_CODES_RT_ERROR_CODES_H_ */
