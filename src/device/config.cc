// SPDX-License-Identifier: Apache-2.0
#include "device/config.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/size_text.h"
#include "base/sizes.h"
#include "device/config_file.h"
#include "device/config_keys.h"
#include "device/config_names.h"
#include "device/log_choice.h"
#include "platform/text_file.h"

namespace understudy {

namespace {

// The names of them all, behind those that are given.
template <typename Named>
std::string names_of(std::span<const Named> all, std::vector<std::string_view> names = {}) {
  for (const Named& each : all) names.push_back(each.name);
  return joined(names);
}

const Soc* find_soc(const ProductProfile& product, std::string_view name) {
  for (const Soc& soc : product.socs) {
    if (soc.name == name) return &soc;
  }
  return nullptr;
}

Result<void> read_file(const std::string& path, ConfigDraft& draft) {
  US_TRY_ASSIGN(const std::vector<ConfigEntry> entries, read_config_file(path));
  for (const ConfigEntry& entry : entries) {
    const ConfigKey* key = find_config_key(entry.name);
    if (key == nullptr) {
      return Error::format(ErrorCode::kInvalidArgument,
                           "%s has the unknown configuration key %s; the nearest key is %s",
                           path.c_str(), entry.name.c_str(),
                           nearest_config_key(entry.name).name.c_str());
    }
    if (!entry.value || !key->read(draft, *entry.value)) {
      return wrong_config_value(*key, entry.value.value_or("(neither text nor a whole number)"),
                                path);
    }
    draft.settings.given.emplace_back(key->name, *entry.value);
  }
  return {};
}

// A variable that is set to nothing counts as not set.
std::optional<std::string> variable(const std::string& name) {
  std::optional<std::string> value = platform::environment_variable(name.c_str());
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<void> read_variables(ConfigDraft& draft) {
  // One look at the environment, which is long where few of the keys are in it.
  const std::vector<std::string> given = platform::environment_names(kVariablePrefix);
  if (given.empty()) return {};
  for (const ConfigKey& key : config_keys()) {
    const std::string name = config_variable(key.name);
    if (std::ranges::find(given, name) == given.end()) continue;
    const std::optional<std::string> value = variable(name);
    if (!value) continue;
    if (!key.read(draft, *value)) return wrong_config_value(key, *value, name);
    draft.settings.given.emplace_back(key.name, *value);
  }
  return {};
}

// Physical numbers, ascending; reading stops at the first entry that is not one (DEV-16).
std::vector<int32_t> visible_devices(unsigned devices) {
  std::vector<int32_t> visible;
  const std::optional<std::string> list = variable("ASCEND_RT_VISIBLE_DEVICES");
  if (!list) {
    for (unsigned device = 0; device < devices; ++device) {
      visible.push_back(static_cast<int32_t>(device));
    }
    return visible;
  }
  for (size_t begin = 0; begin <= list->size();) {
    const size_t end = std::min(list->find(',', begin), list->size());
    const std::optional<uint64_t> device =
        parse_number(std::string_view(*list).substr(begin, end - begin));
    begin = end + 1;
    if (!device || *device >= devices) break;
    const auto number = static_cast<int32_t>(*device);
    if (!visible.empty() && number <= visible.back()) break;
    visible.push_back(number);
  }
  return visible;
}

// A file that is named takes the place of the stream.
void complete_log(const ConfigDraft& draft, LogChoice& log) {
  const LogChoice ascend = ascend_log_choice();
  log.level = draft.log.value_or(ascend.level);
  log.stream = draft.log ? LogStream::kStandardError : ascend.stream;
}

// The SoC, or the error that names those that the product has.
Result<const Soc*> chosen_soc(const ConfigDraft& draft, const ProductProfile& product) {
  const Soc* const soc = draft.soc.empty() ? &product.socs.front() : find_soc(product, draft.soc);
  if (soc != nullptr) return soc;
  ConfigKey key = *find_config_key("soc");
  key.allowed = names_of(product.socs);
  return wrong_config_value(key, draft.soc, "product is " + std::string(product.key));
}

// Null for a whole device, or the error that names the slices that the SoC has.
Result<const Slice*> chosen_slice(const ConfigDraft& draft, const Soc& soc) {
  const Slice* const slice = soc.find_slice(draft.slice);
  if (slice != nullptr || draft.slice.empty()) return slice;
  ConfigKey key = *find_config_key("slice");
  key.allowed = names_of(soc.slices, {"none"});
  return wrong_config_value(key, draft.slice, "soc is " + std::string(soc.name));
}

// From the widest to the narrowest: the product, its SoC, the slice, the driver, and what the
// configuration says of single features.
Result<void> complete_devices(const ConfigDraft& draft, Settings& settings) {
  settings.product = draft.product != nullptr ? *draft.product : product_profiles().front();
  US_TRY_ASSIGN(const Soc* const soc, chosen_soc(draft, settings.product));
  US_TRY_ASSIGN(const Slice* const slice, chosen_slice(draft, *soc));
  settings.soc_name = soc->name;
  settings.memory = draft.memory.value_or(slice != nullptr ? slice->memory : soc->memory);
  if (slice != nullptr) {
    settings.slice = slice->name;
    settings.product = settings.product.sliced(*slice);
  }
  FeatureSet& features = settings.product.features;
  features = features - soc->lacks - settings.driver->lacks;
  for (const auto& [feature, added] : draft.features) {
    if (added) {
      if (!features.has(feature)) settings.switched_on.add(feature);
      features.add(feature);
    } else {
      features.remove(feature);
      settings.switched_on.remove(feature);
    }
  }
  if (!features.has(Feature::kHostPeerWindow)) settings.host_peer_memory.reset();
  return {};
}

Result<void> complete_memory(const ConfigDraft& draft, Settings& settings) {
  const std::string where = std::string("memory is ") + SizeText(settings.memory).c_str();
  const uint64_t normal = draft.normal_memory.of(settings.memory);
  if (normal > settings.memory) {
    return wrong_config_value(*find_config_key("normal_memory"), draft.normal_memory_text, where);
  }
  // Huge pages are whole; what is left over is normal memory.
  settings.normal_memory = settings.memory - align_down(settings.memory - normal, kHugePage);
  if (draft.idle_usage >= settings.memory) {
    return wrong_config_value(*find_config_key("idle_usage"), draft.idle_usage_text, where);
  }
  settings.idle_usage = IdleUsage::of(draft.idle_usage, settings.normal_memory,
                                      settings.memory - settings.normal_memory);
  return {};
}

Result<Settings> complete(const ConfigDraft& draft) {
  Settings settings = draft.settings;
  US_TRY(complete_devices(draft, settings));
  US_TRY(complete_memory(draft, settings));
  settings.server_devices = settings.devices;
  settings.visible_devices = visible_devices(settings.devices);
  settings.devices = static_cast<unsigned>(settings.visible_devices.size());
  complete_log(draft, settings.log);
  US_TRY_ASSIGN(settings.failures, parse_failure_rules(draft.fail));
  US_TRY_ASSIGN(settings.schedule, parse_schedule(draft.schedule));
  return settings;
}

}  // namespace

Result<Settings> read_settings() {
  ConfigDraft draft;
  if (const std::optional<std::string> path = variable("UNDERSTUDY_CONFIG")) {
    US_TRY(read_file(*path, draft));
  }
  US_TRY(read_variables(draft));
  return complete(draft);
}

}  // namespace understudy
