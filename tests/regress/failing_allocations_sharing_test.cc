// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions that share memory and events with other processes. The other
// process is a program of its own, which exports or imports what it is told to.
#include "process/sharing_objects.h"
#include "regress/failing_allocations.h"
#include "rules/notify_objects.h"
#include "rules/xproc_objects.h"

namespace understudy_test::failing {
namespace {

using share::kEveryone;
using share::kListed;
using share::Remote;
using share::View;

constexpr size_t kSmall = 4 * kKiB;
constexpr auto kDefault = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT;

// ---- Exports ----

// A block of this process.
struct OwnBlock {
  ~OwnBlock() { EXPECT_SUCCESS(aclrtFreePhysical(handle)); }
  uint64_t token(uint64_t flags = kListed) const {
    uint64_t token = 0;
    EXPECT_SUCCESS(
        aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, flags, &token));
    return token;
  }
  const aclrtDrvMemHandle handle = create_block(kBlock);
};
US_SCENARIO(aclrtMemExportToShareableHandle, First) {
  const OwnBlock block;
  probe.call([&] {
    return aclrtMemExportToShareableHandle(block.handle, ACL_MEM_HANDLE_TYPE_NONE, kEveryone,
                                           &probe.out<uint64_t>());
  });
}
US_SCENARIO(aclrtMemExportToShareableHandle, Second) {
  const OwnBlock before;
  const OwnBlock block;
  (void)before.token();
  probe.call([&] {
    return aclrtMemExportToShareableHandle(block.handle, ACL_MEM_HANDLE_TYPE_NONE, kListed,
                                           &probe.out<uint64_t>());
  });
}
US_SCENARIO(aclrtMemExportToShareableHandleV2, First) {
  const OwnBlock block;
  probe.call([&] {
    return aclrtMemExportToShareableHandleV2(block.handle, kEveryone, kDefault,
                                             &probe.out<uint64_t>());
  });
}
US_SCENARIO(aclrtMemExportToShareableHandleV2, Fabric) {
  const OwnBlock block;
  probe.call([&] {
    return aclrtMemExportToShareableHandleV2(block.handle, kEveryone,
                                             ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
                                             &probe.out<aclrtMemFabricHandle>());
  });
}
US_SCENARIO(aclrtMemSetPidToShareableHandle, Call) {
  Remote other;
  const OwnBlock block;
  const uint64_t token = block.token();
  int32_t id = other.id();
  probe.call([&] { return aclrtMemSetPidToShareableHandle(token, &id, 1); });
  probe.after([&] { EXPECT_EQ(other.import(token), ACL_SUCCESS); });
}
US_SCENARIO(aclrtMemSetPidToShareableHandleV2, Call) {
  const OwnBlock block;
  uint64_t token = block.token();
  int32_t id = getpid();
  probe.call([&] { return aclrtMemSetPidToShareableHandleV2(&token, kDefault, &id, 1); });
}

// The end of an exported block, which other processes hold or do not.
void free_exported(Probe& probe, bool is_held, bool is_listed) {
  Remote other;
  const aclrtDrvMemHandle handle = create_block(kBlock);
  uint64_t token = 0;
  EXPECT_SUCCESS(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
                                                 is_listed ? kListed : kEveryone, &token));
  int32_t id = other.id();
  if (is_listed) {
    EXPECT_SUCCESS(aclrtMemSetPidToShareableHandle(token, &id, 1));
  }
  View view{};
  if (is_held) view = other.call(share::import_view, token, kBlock, 0);
  probe.call([&] { return aclrtFreePhysical(handle); });
  if (is_held) other.call(share::close_view, view);
  // What came back is noticed with the next export.
  const OwnBlock next;
  (void)next.token();
}
US_SCENARIO(aclrtFreePhysical, Exported) { free_exported(probe, false, false); }
US_SCENARIO(aclrtFreePhysical, ExportedAndListed) { free_exported(probe, false, true); }
US_SCENARIO(aclrtFreePhysical, ExportedAndHeldByOthers) { free_exported(probe, true, false); }
// The next call that shares something gives back what others have returned meanwhile.
US_SCENARIO(aclrtMemExportToShareableHandle, AfterReturns) {
  Remote other;
  View view{};
  {
    const OwnBlock block;
    view = other.call(share::import_view, block.token(kEveryone), kBlock, 0);
  }
  other.call(share::close_view, view);
  const OwnBlock next;
  probe.allow(ACL_ERROR_RT_IPC_ERROR);
  probe.expect_returns();
  probe.call([&] {
    return aclrtMemExportToShareableHandle(next.handle, ACL_MEM_HANDLE_TYPE_NONE, kEveryone,
                                           &probe.out<uint64_t>());
  });
}
// Mapped, exported, held: the unmap is the end of the block.
US_SCENARIO(aclrtUnmapMem, OfAnExportedBlock) {
  Remote other;
  const aclrtDrvMemHandle handle = create_block(kBlock);
  void* const start = share::map_anew(handle, kBlock);
  const View view = other.call(share::import_view, share::token_of(handle, kEveryone), kBlock, 0);
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  probe.call([&] { return aclrtUnmapMem(start); });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  other.call(share::close_view, view);
  const OwnBlock next;
  (void)next.token();
}

// ---- Imports ----

// A block of another process, imported or about to be.
struct ForeignBlock {
  explicit ForeignBlock(uint64_t flags = kEveryone)
      : offer(exporter.call(share::offer_block, kBlock, flags, uint8_t{1})) {
    if (flags == kListed) exporter.call(share::list, offer.token, share::Ids{getpid()});
  }
  ~ForeignBlock() { exporter.call(share::close_view, offer.view); }
  ForeignBlock(const ForeignBlock&) = delete;
  ForeignBlock& operator=(const ForeignBlock&) = delete;
  Remote exporter;
  const share::Offer offer;
};
void frees_import(Probe& probe) {
  probe.after([&] { EXPECT_SUCCESS(aclrtFreePhysical(probe.out<aclrtDrvMemHandle>())); });
}
US_SCENARIO(aclrtMemImportFromShareableHandle, OpenToAll) {
  const ForeignBlock block;
  probe.call([&] {
    return aclrtMemImportFromShareableHandle(block.offer.token, 0, &probe.out<aclrtDrvMemHandle>());
  });
  frees_import(probe);
}
US_SCENARIO(aclrtMemImportFromShareableHandle, Listed) {
  const ForeignBlock block(kListed);
  probe.call([&] {
    return aclrtMemImportFromShareableHandle(block.offer.token, 0, &probe.out<aclrtDrvMemHandle>());
  });
  frees_import(probe);
}
US_SCENARIO(aclrtMemImportFromShareableHandle, SecondOfAnExporter) {
  ForeignBlock block;
  const View first = share::import_view(block.offer.token, kBlock, 0);
  const share::Offer second =
      block.exporter.call(share::offer_block, kBlock, kEveryone, uint8_t{2});
  probe.call([&] {
    return aclrtMemImportFromShareableHandle(second.token, 0, &probe.out<aclrtDrvMemHandle>());
  });
  frees_import(probe);
  share::close_view(first);
  block.exporter.call(share::close_view, second.view);
}
US_SCENARIO(aclrtMemImportFromShareableHandleV2, OpenToAll) {
  const ForeignBlock block;
  uint64_t token = block.offer.token;
  probe.call([&] {
    return aclrtMemImportFromShareableHandleV2(&token, kDefault, 0,
                                               &probe.out<aclrtDrvMemHandle>());
  });
  frees_import(probe);
}
US_SCENARIO(aclrtFreePhysical, Imported) {
  const ForeignBlock block;
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemImportFromShareableHandle(block.offer.token, 0, &handle));
  probe.call([&] { return aclrtFreePhysical(handle); });
}
// The exporter is dead, and the last holder gives its memory back to the system.
US_SCENARIO(aclrtFreePhysical, ImportedFromTheDead) {
  Remote exporter;
  const share::Offer offer = exporter.call(share::offer_block, kBlock, kEveryone, uint8_t{1});
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemImportFromShareableHandle(offer.token, 0, &handle));
  exporter.kill();
  probe.call([&] { return aclrtFreePhysical(handle); });
}
US_SCENARIO(aclrtUnmapMem, OfAnImportedBlock) {
  const ForeignBlock block;
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemImportFromShareableHandle(block.offer.token, 0, &handle));
  void* const start = share::map_anew(handle, kBlock);
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  probe.call([&] { return aclrtUnmapMem(start); });
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
}

// ---- Keys ----

struct OwnAllocation {
  explicit OwnAllocation(size_t bytes) : size(bytes) {
    EXPECT_SUCCESS(aclrtMalloc(&data, size, kHugeFirst));
  }
  ~OwnAllocation() {
    if (data != nullptr) {
      EXPECT_SUCCESS(aclrtFree(data));
    }
  }
  OwnAllocation(const OwnAllocation&) = delete;
  OwnAllocation& operator=(const OwnAllocation&) = delete;
  const size_t size;
  void* data = nullptr;
};
void export_key(Probe& probe, size_t size) {
  const OwnAllocation allocation(size);
  probe.call([&] {
    return aclrtIpcMemGetExportKey(allocation.data, size, &probe.out<char>(), ipc::kKeySize,
                                   ipc::kForAll);
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtIpcMemClose(&probe.out<char>())); });
}
US_SCENARIO(aclrtIpcMemGetExportKey, Small) { export_key(probe, kSmall); }
US_SCENARIO(aclrtIpcMemGetExportKey, Large) { export_key(probe, kBlock); }
// A call on a key that is open.
template <typename Call>
void with_key(Probe& probe, Call call) {
  const OwnAllocation allocation(kBlock);
  const ipc::Key key = ipc::export_key(allocation.data, kBlock, ipc::kForListed);
  probe.call([&] { return call(key); });
  EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
}
US_SCENARIO(aclrtIpcMemSetImportPid, Call) {
  with_key(probe, [](const ipc::Key& key) {
    int32_t id = getpid();
    return aclrtIpcMemSetImportPid(key.get(), &id, 1);
  });
}
US_SCENARIO(aclrtIpcMemImportPidInterServer, Call) {
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  with_key(probe, [](const ipc::Key& key) {
    int32_t id = getpid();
    aclrtServerPid server{0, &id, 1};
    return aclrtIpcMemImportPidInterServer(key.get(), &server, 1);
  });
}
US_SCENARIO(aclrtIpcMemSetAttr, Call) {
  with_key(probe, [](const ipc::Key& key) {
    return aclrtIpcMemSetAttr(key.get(), ACL_RT_IPC_MEM_ATTR_ACCESS_LINK,
                              ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS);
  });
}
US_SCENARIO(aclrtIpcMemClose, Exported) {
  const OwnAllocation allocation(kBlock);
  const ipc::Key key = ipc::export_key(allocation.data, kBlock);
  probe.call([&] { return aclrtIpcMemClose(key.get()); });
}
void free_exported_allocation(Probe& probe, size_t size, bool is_held) {
  Remote other;
  OwnAllocation allocation(size);
  const ipc::Key key = ipc::export_key(allocation.data, size);
  if (is_held) (void)other.call(share::import_key, key);
  probe.call([&] { return aclrtFree(allocation.data); });
  allocation.data = nullptr;
  if (is_held) other.call(share::close_key, key);
  const OwnBlock next;
  (void)next.token();
}
US_SCENARIO(aclrtFree, ExportedSmall) { free_exported_allocation(probe, kSmall, false); }
US_SCENARIO(aclrtFree, ExportedLarge) { free_exported_allocation(probe, kBlock, false); }
US_SCENARIO(aclrtFree, ExportedSmallHeld) { free_exported_allocation(probe, kSmall, true); }
US_SCENARIO(aclrtFree, ExportedLargeHeld) { free_exported_allocation(probe, kBlock, true); }

void import_by_key(Probe& probe, size_t size) {
  Remote exporter;
  const share::KeyOffer offer = exporter.call(share::offer_key, size, uint8_t{1});
  probe.call([&] {
    return aclrtIpcMemImportByKey(&probe.out<void*>(), offer.key.get(), ipc::kPlainImport);
  });
  probe.after([&] { EXPECT_SUCCESS(aclrtIpcMemClose(offer.key.get())); });
  exporter.call(share::withdraw_key, offer);
}
US_SCENARIO(aclrtIpcMemImportByKey, Small) { import_by_key(probe, kSmall); }
US_SCENARIO(aclrtIpcMemImportByKey, Large) { import_by_key(probe, kBlock); }
US_SCENARIO(aclrtIpcMemImportByKey, Own) {
  const OwnAllocation allocation(kBlock);
  const ipc::Key key = ipc::export_key(allocation.data, kBlock);
  probe.call(
      [&] { return aclrtIpcMemImportByKey(&probe.out<void*>(), key.get(), ipc::kPlainImport); });
  probe.after([&] { EXPECT_SUCCESS(aclrtIpcMemClose(key.get())); });
  (void)aclrtIpcMemClose(key.get());
}
void close_import(Probe& probe, size_t size) {
  Remote exporter;
  const share::KeyOffer offer = exporter.call(share::offer_key, size, uint8_t{1});
  (void)share::import_key(offer.key);
  probe.call([&] { return aclrtIpcMemClose(offer.key.get()); });
  exporter.call(share::withdraw_key, offer);
}
US_SCENARIO(aclrtIpcMemClose, ImportedSmall) { close_import(probe, kSmall); }
US_SCENARIO(aclrtIpcMemClose, ImportedLarge) { close_import(probe, kBlock); }

// ---- Other processes import while the thread that answers them has no memory ----

aclError import_of(uint64_t token) {
  aclrtDrvMemHandle handle = nullptr;
  const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
  }
  (void)recent_error();
  return code;
}
US_SCENARIO(aclrtMemImportFromShareableHandle, AnsweredWithoutMemory) {
  Remote other;
  const OwnBlock block;
  const uint64_t token = block.token();
  share::list(token, share::Ids{other.id()});
  probe.only_library();
  probe.allow(ACL_ERROR_RT_IPC_ERROR);
  probe.call([&] { return other.call(import_of, token); });
  EXPECT_EQ(other.call(import_of, token), ACL_SUCCESS);
}

// ---- Events ----

US_PEER(FailingAllocationsEventSide) { xproc::serve_event(channel); }

US_SCENARIO(aclrtIpcGetEventHandle, Call) {
  aclrtEvent event = nullptr;
  EXPECT_SUCCESS(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  probe.call([&] { return aclrtIpcGetEventHandle(event, &probe.out<aclrtIpcEventHandle>()); });
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
}
US_SCENARIO(aclrtIpcOpenEventHandle, Call) {
  xproc::EventSide creator(FailingAllocationsEventSide);
  const aclrtIpcEventHandle handle = creator.create();
  probe.call([&] { return aclrtIpcOpenEventHandle(handle, &probe.out<aclrtEvent>()); });
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyEvent(probe.out<aclrtEvent>())); });
}
US_SCENARIO(aclrtStreamWaitEvent, OfAnotherProcess) {
  xproc::EventSide creator(FailingAllocationsEventSide);
  const aclrtIpcEventHandle handle = creator.create();
  const Stage on;
  aclrtEvent event = nullptr;
  EXPECT_SUCCESS(aclrtIpcOpenEventHandle(handle, &event));
  creator.record();
  probe.call([&] { return aclrtStreamWaitEvent(on.stream, event); });
  (void)aclrtSynchronizeStream(on.stream);
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
}

// ---- Notifies ----

US_PEER(FailingAllocationsNotifySide) { notify::serve_notify(channel); }

// A call on a notify that this process exports to those on its list.
template <typename Call>
void with_exported_notify(Probe& probe, Call call) {
  const notify::TestNotify notify;
  (void)notify::export_notify(notify.get(), notify::kForListed);
  probe.call([&] { return call(notify.get()); });
}
void export_notify_key(Probe& probe, uint64_t flags) {
  const notify::TestNotify notify;
  probe.call([&] {
    return aclrtNotifyGetExportKey(notify.get(), &probe.out<char>(), ipc::kKeySize, flags);
  });
}
US_SCENARIO(aclrtNotifyGetExportKey, ForListed) { export_notify_key(probe, notify::kForListed); }
US_SCENARIO(aclrtNotifyGetExportKey, ForAll) { export_notify_key(probe, notify::kForAll); }
US_SCENARIO(aclrtNotifySetImportPid, Call) {
  with_exported_notify(probe, [](aclrtNotify notify) {
    int32_t id = getpid();
    return aclrtNotifySetImportPid(notify, &id, 1);
  });
}
US_SCENARIO(aclrtNotifySetImportPidInterServer, Call) {
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  with_exported_notify(probe, [](aclrtNotify notify) {
    int32_t id = getpid();
    aclrtServerPid server{0, &id, 1};
    return aclrtNotifySetImportPidInterServer(notify, &server, 1);
  });
}
void import_notify(Probe& probe, uint64_t flags) {
  notify::NotifySide exporter(FailingAllocationsNotifySide);
  const notify::NotifyKey key = exporter.create(flags);
  if (flags == notify::kForListed) {
    EXPECT_EQ(exporter.allow(getpid()), ACL_SUCCESS);
  }
  probe.call([&] { return aclrtNotifyImportByKey(&probe.out<aclrtNotify>(), key.get(), 0); });
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyNotify(probe.out<aclrtNotify>())); });
}
US_SCENARIO(aclrtNotifyImportByKey, ForListed) { import_notify(probe, notify::kForListed); }
US_SCENARIO(aclrtNotifyImportByKey, ForAll) { import_notify(probe, notify::kForAll); }
US_SCENARIO(aclrtDestroyNotify, OfAnotherProcess) {
  notify::NotifySide exporter(FailingAllocationsNotifySide);
  const notify::NotifyKey key = exporter.create();
  aclrtNotify imported = nullptr;
  EXPECT_SUCCESS(aclrtNotifyImportByKey(&imported, key.get(), 0));
  probe.call([&] { return aclrtDestroyNotify(imported); });
}
US_SCENARIO(aclrtWaitAndResetNotify, OfAnotherProcess) {
  notify::NotifySide exporter(FailingAllocationsNotifySide);
  const notify::NotifyKey key = exporter.create();
  const Stage on;
  aclrtNotify imported = nullptr;
  EXPECT_SUCCESS(aclrtNotifyImportByKey(&imported, key.get(), 0));
  exporter.record_now();
  probe.call([&] { return aclrtWaitAndResetNotify(imported, on.stream, 0); });
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  EXPECT_SUCCESS(aclrtDestroyNotify(imported));
}

}  // namespace
}  // namespace understudy_test::failing
