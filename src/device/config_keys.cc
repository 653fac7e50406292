// SPDX-License-Identifier: Apache-2.0
#include "device/config_keys.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/sizes.h"
#include "device/log_choice.h"

namespace understudy {

namespace {

constexpr uint64_t kMinMemory = 4 * kMiB;
constexpr uint64_t kMaxMemory = 16 * kTiB;

// A key with a fixed list of values for one member.
template <typename Value>
ConfigKey choice(std::string name, Value Settings::*member,
                 std::vector<std::pair<std::string, Value>> values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto& [text, value] : values) names.push_back(text);
  return {std::move(name), joined(names),
          [member, values = std::move(values)](ConfigDraft& draft, const std::string& text) {
            for (const auto& [candidate, value] : values) {
              if (candidate != text) continue;
              draft.settings.*member = value;
              return true;
            }
            return false;
          }};
}

std::string product_names() {
  std::vector<std::string_view> names;
  for (const ProductProfile& profile : product_profiles()) names.push_back(profile.key);
  return joined(names);
}

std::string driver_names() {
  std::vector<std::string_view> names = {"newest"};
  for (const DriverGeneration& driver : driver_generations()) names.push_back(driver.name);
  return joined(names);
}

bool read_features(ConfigDraft& draft, const std::string& text) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) return false;
    const FeatureName* found = nullptr;
    for (const FeatureName& candidate : configurable_features()) {
      if (candidate.name == item.substr(1)) found = &candidate;
    }
    if (found == nullptr) return false;
    draft.features.emplace_back(found->feature, item[0] == '+');
  }
  return true;
}

std::string feature_names() {
  std::vector<std::string> names;
  for (const FeatureName& feature : configurable_features()) {
    names.push_back("+" + std::string(feature.name));
    names.push_back("-" + std::string(feature.name));
  }
  return "a comma list of " + joined(names);
}

std::vector<ConfigKey> make_keys() {
  std::vector<ConfigKey> keys;
  keys.push_back({"product", product_names(), [](ConfigDraft& draft, const std::string& text) {
                    draft.product = find_product(text);
                    return draft.product != nullptr;
                  }});
  keys.push_back(
      {"soc", "a SoC name of the product", [](ConfigDraft& draft, const std::string& text) {
         draft.soc = text;
         return true;  // whether the product has it is seen when both are known
       }});
  keys.push_back({"devices", "1 to " + std::to_string(kMaxDevices),
                  [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<uint64_t> count = parse_number(text);
                    if (!count || *count == 0 || *count > kMaxDevices) return false;
                    draft.settings.devices = static_cast<unsigned>(*count);
                    return true;
                  }});
  keys.push_back({"memory", "a size from 4M to 16T, such as 64G, 512M or a number of bytes",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.memory = parse_size(text);
                    return draft.memory && *draft.memory >= kMinMemory &&
                           *draft.memory <= kMaxMemory;
                  }});
  keys.push_back(
      {"runtime_dir", "a path that begins with /", [](ConfigDraft& draft, const std::string& text) {
         draft.settings.runtime_directory = text;
         return text.starts_with('/');
       }});
  keys.push_back({"normal_memory", "a size up to that of memory, or a part of it such as 1/16",
                  [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<Share> share = parse_share(text);
                    if (share) draft.normal_memory = *share;
                    draft.normal_memory_text = text;
                    return share.has_value();
                  }});
  keys.push_back({"idle_usage", "0, or a size below that of memory, such as 3G",
                  [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<uint64_t> size = parse_size(text);
                    draft.idle_usage = size.value_or(0);
                    draft.idle_usage_text = text;
                    return size.has_value();
                  }});
  keys.push_back({"slice", "none, or the name of a vNPU template of the SoC",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.slice = text == "none" ? "" : text;
                    return true;  // whether the SoC has it is seen when both are known
                  }});
  keys.push_back({"driver", driver_names(), [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.driver = text == "newest" ? &newest_driver() : find_driver(text);
                    return draft.settings.driver != nullptr;
                  }});
  keys.push_back({"features", feature_names(), read_features});
  keys.push_back(
      choice("size_alignment", &Settings::size_alignment,
             {{"reject", SizeAlignment::kReject}, {"round_up", SizeAlignment::kRoundUp}}));
  keys.push_back(choice("attr_set", &Settings::attribute_set,
                        {{"full", AttributeSet::kFull}, {"legacy", AttributeSet::kLegacy}}));
  keys.push_back(choice("reserve_flag", &Settings::reserve_flag,
                        {{"ignore", ReserveFlag::kIgnore}, {"match", ReserveFlag::kMatch}}));
  keys.push_back(
      choice("expect_ptr", &Settings::expected_address,
             {{"hint", ExpectedAddress::kHint}, {"null_only", ExpectedAddress::kNullOnly}}));
  keys.push_back(choice(
      "device_binding", &Settings::device_binding,
      {{"for_life", DeviceBinding::kForLife}, {"while_mapped", DeviceBinding::kWhileMapped}}));
  keys.push_back(choice("sync_d2d", &Settings::sync_device_copy,
                        {{"reject", SyncDeviceCopy::kReject}, {"allow", SyncDeviceCopy::kAllow}}));
  keys.push_back(choice("host_access", &Settings::host_access,
                        {{"deny", HostAccess::kDeny}, {"allow", HostAccess::kAllow}}));
  keys.push_back(choice("host_lock", &Settings::host_lock,
                        {{"best_effort", HostLock::kBestEffort}, {"strict", HostLock::kStrict}}));
  keys.push_back(choice("backing", &Settings::backing,
                        {{"auto", Backing::kAuto},
                         {"hugetlb", Backing::kHugetlb},
                         {"thp", Backing::kThp},
                         {"small", Backing::kSmall}}));
  keys.push_back(
      choice("commit", &Settings::commit, {{"lazy", Commit::kLazy}, {"eager", Commit::kEager}}));
  keys.push_back({"host_budget", "auto, none, or a size such as 8G",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.host_budget_unlimited = text == "none";
                    draft.settings.host_budget = parse_size(text);
                    return text == "auto" || text == "none" || draft.settings.host_budget;
                  }});
  keys.push_back({"host_p2p_memory", "none, or a size up to 16T, such as 8G",
                  [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<uint64_t> size = parse_size(text);
                    draft.settings.host_peer_memory = size;
                    return text == "none" || (size && *size <= kMaxMemory);
                  }});
  keys.push_back({"backup_memory", "none, or a size such as 8G",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.backup_memory = parse_size(text);
                    return text == "none" || draft.settings.backup_memory;
                  }});
  keys.push_back(choice("poison", &Settings::poison, {{"off", Poison::kOff}, {"on", Poison::kOn}}));
  keys.push_back({"log", "off, error, warn, call", [](ConfigDraft& draft, const std::string& text) {
                    draft.log = parse_log_level(text);
                    return draft.log.has_value();
                  }});
  keys.push_back({"log_file", "a path that begins with /",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.log.file = text;
                    return text.starts_with('/');
                  },
                  true});
  keys.push_back({"fail",
                  "FUNCTION[|FUNCTION...][@SITE]:CONDITION[,code=CODE][,sticky], more behind ;",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.fail = text;
                    return true;  // what is wrong with it is told when it is taken apart
                  }});
  keys.push_back({"schedule", "seed=N[,slow=STREAM:FACTORx...]",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.schedule = text;
                    return true;  // as above
                  }});
  keys.push_back({"check", CheckSet::allowed(), [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<CheckSet> checks = CheckSet::parse(text);
                    draft.settings.check.checks = checks.value_or(CheckSet());
                    return checks.has_value();
                  }});
  keys.push_back({"check_exit", "0 to 255", [](ConfigDraft& draft, const std::string& text) {
                    const std::optional<uint64_t> status = parse_number(text);
                    if (!status || *status > 255) return false;
                    draft.settings.check.exit_status = static_cast<int>(*status);
                    return true;
                  }});
  keys.push_back({"check_report", "a path that begins with / and ends with .json or .xml",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.check.report = text;
                    return text.starts_with('/') &&
                           (text.ends_with(".json") || text.ends_with(".xml"));
                  },
                  true});
  keys.push_back({"check_suppressions", "a path that begins with /",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.check.suppressions = text;
                    return text.starts_with('/');
                  },
                  true});
  keys.push_back({"trace", "a path that begins with /",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.recording.file = text;
                    return text.starts_with('/');
                  },
                  true});
  keys.push_back(
      {"trace_limit", "a size, 1M at least", [](ConfigDraft& draft, const std::string& text) {
         const auto size = parse_size(text);
         if (!size || *size < kMiB || *size > kTiB) return false;
         draft.settings.recording.limit = *size;
         return true;
       }});
  keys.push_back({"trace_ring", "off, on", [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.recording.is_ring = text == "on";
                    return text == "on" || text == "off";
                  }});
  keys.push_back({"trace_stacks", "off, on", [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.recording.records_stacks = text == "on";
                    return text == "on" || text == "off";
                  }});
  keys.push_back({"call_sites", "a path that begins with /",
                  [](ConfigDraft& draft, const std::string& text) {
                    draft.settings.call_sites = text;
                    return text.starts_with('/');
                  },
                  true});
  return keys;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  // Never destroyed: settings are also read by threads that outlive main. Not made under a lock: a
  // fork child would wait for the thread of its parent that makes them.
  static constinit std::atomic<const std::vector<ConfigKey>*> made{nullptr};
  if (const auto* const keys = made.load(std::memory_order_acquire)) return *keys;
  auto fresh = std::make_unique<const std::vector<ConfigKey>>(make_keys());
  const std::vector<ConfigKey>* faster = nullptr;
  return made.compare_exchange_strong(faster, fresh.get()) ? *fresh.release() : *faster;
}

const ConfigKey* find_config_key(std::string_view name) {
  for (const ConfigKey& key : config_keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string config_variable(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char letter : key) {
    name += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

Error wrong_config_value(const ConfigKey& key, const std::string& value, const std::string& where) {
  return Error::format(ErrorCode::kInvalidArgument,
                       "configuration key %s has the value \"%s\" (%s); allowed: %s",
                       key.name.c_str(), value.c_str(), where.c_str(), key.allowed.c_str());
}

}  // namespace understudy
