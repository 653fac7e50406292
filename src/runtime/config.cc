// SPDX-License-Identifier: Apache-2.0
#include "runtime/config.h"

#include <toml++/toml.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/size_text.h"
#include "base/sizes.h"
#include "platform/text_file.h"
#include "runtime/config_value.h"

namespace understudy {

namespace {

// What was said, before the parts that depend on each other are put together.
struct Draft {
  Settings settings;
  const ProductProfile* product = nullptr;
  std::string soc;
  std::optional<uint64_t> memory;
  Share normal_memory{1, 16};
  std::string normal_memory_text;
  std::vector<std::pair<Feature, bool>> features;  // added or taken away, in order
};

struct Key {
  std::string name;
  std::string allowed;                                   // for people
  std::function<bool(Draft&, const std::string&)> read;  // false: not an allowed value
};

constexpr uint64_t kMinMemory = 4 * kMiB;
constexpr uint64_t kMaxMemory = 16 * kTiB;

Error wrong_value(const Key& key, const std::string& value, const std::string& where) {
  return Error::format(ErrorCode::kInvalidArgument,
                       "configuration key %s has the value \"%s\" (%s); allowed: %s",
                       key.name.c_str(), value.c_str(), where.c_str(), key.allowed.c_str());
}

template <typename Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

// A key with a fixed list of values for one member.
template <typename Value>
Key choice(std::string name, Value Settings::*member,
           std::vector<std::pair<std::string, Value>> values) {
  std::vector<std::string> names;
  for (const auto& [text, value] : values) names.push_back(text);
  return {std::move(name), joined(names),
          [member, values = std::move(values)](Draft& draft, const std::string& text) {
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

std::string soc_names(const ProductProfile& product) {
  std::vector<std::string_view> names;
  for (const Soc& soc : product.socs) names.push_back(soc.name);
  return joined(names);
}

const Soc* find_soc(const ProductProfile& product, std::string_view name) {
  for (const Soc& soc : product.socs) {
    if (soc.name == name) return &soc;
  }
  return nullptr;
}

bool read_features(Draft& draft, const std::string& text) {
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

std::vector<Key> make_keys() {
  std::vector<Key> keys;
  keys.push_back({"product", product_names(), [](Draft& draft, const std::string& text) {
                    draft.product = find_product(text);
                    return draft.product != nullptr;
                  }});
  keys.push_back({"soc", "a SoC name of the product", [](Draft& draft, const std::string& text) {
                    draft.soc = text;
                    return true;  // whether the product has it is seen when both are known
                  }});
  keys.push_back(
      {"devices", "1 to " + std::to_string(kMaxDevices), [](Draft& draft, const std::string& text) {
         const std::optional<uint64_t> count = parse_number(text);
         if (!count || *count == 0 || *count > kMaxDevices) return false;
         draft.settings.devices = static_cast<unsigned>(*count);
         return true;
       }});
  keys.push_back({"memory", "a size from 4M to 16T, such as 64G, 512M or a number of bytes",
                  [](Draft& draft, const std::string& text) {
                    draft.memory = parse_size(text);
                    return draft.memory && *draft.memory >= kMinMemory &&
                           *draft.memory <= kMaxMemory;
                  }});
  keys.push_back(
      {"runtime_dir", "a path that begins with /", [](Draft& draft, const std::string& text) {
         draft.settings.runtime_directory = text;
         return text.starts_with('/');
       }});
  keys.push_back({"normal_memory", "a size up to that of memory, or a part of it such as 1/16",
                  [](Draft& draft, const std::string& text) {
                    const std::optional<Share> share = parse_share(text);
                    if (share) draft.normal_memory = *share;
                    draft.normal_memory_text = text;
                    return share.has_value();
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
      {{"while_mapped", DeviceBinding::kWhileMapped}, {"for_life", DeviceBinding::kForLife}}));
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
                  [](Draft& draft, const std::string& text) {
                    draft.settings.host_budget_unlimited = text == "none";
                    draft.settings.host_budget = parse_size(text);
                    return text == "auto" || text == "none" || draft.settings.host_budget;
                  }});
  keys.push_back(choice("poison", &Settings::poison, {{"off", Poison::kOff}, {"on", Poison::kOn}}));
  return keys;
}

const Key* find_key(const std::vector<Key>& keys, std::string_view name) {
  for (const Key& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

// Values may be written as text or as a number.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) return *text;
  if (const auto number = node.value<int64_t>(); number && node.is_integer()) {
    return std::to_string(*number);
  }
  return std::nullopt;
}

Result<void> read_file(const std::vector<Key>& keys, const std::string& path, Draft& draft) {
  const std::optional<std::string> text = platform::read_text_file(path);
  if (!text) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the configuration file %s (UNDERSTUDY_CONFIG) cannot be read",
                         path.c_str());
  }
  try {
    const toml::table table = toml::parse(*text, path);
    for (const auto& [name, node] : table) {
      const Key* key = find_key(keys, name.str());
      if (key == nullptr) {
        std::vector<std::string> names;
        for (const Key& known : keys) names.push_back(known.name);
        return Error::format(ErrorCode::kInvalidArgument,
                             "%s has the unknown configuration key %s; allowed: %s", path.c_str(),
                             std::string(name.str()).c_str(), joined(names).c_str());
      }
      const std::optional<std::string> value = text_of(node);
      if (!value || !key->read(draft, *value)) {
        return wrong_value(*key, value.value_or("(neither text nor a whole number)"), path);
      }
    }
  } catch (const toml::parse_error& error) {
    return Error::format(ErrorCode::kInvalidArgument, "%s is not TOML: line %u: %s", path.c_str(),
                         error.source().begin.line, std::string(error.description()).c_str());
  }
  return {};
}

std::string variable_name(const std::string& key) {
  std::string name = "UNDERSTUDY_";
  for (const char letter : key) {
    name += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

// A variable that is set to nothing counts as not set.
std::optional<std::string> variable(const std::string& name) {
  std::optional<std::string> value = platform::environment_variable(name.c_str());
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<void> read_variables(const std::vector<Key>& keys, Draft& draft) {
  for (const Key& key : keys) {
    const std::string name = variable_name(key.name);
    const std::optional<std::string> value = variable(name);
    if (value && !key.read(draft, *value)) return wrong_value(key, *value, name);
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

Result<Settings> complete(const std::vector<Key>& keys, Draft draft) {
  Settings& settings = draft.settings;
  const ProductProfile* const product =
      draft.product != nullptr ? draft.product : &product_profiles().front();
  settings.product = *product;
  for (const auto& [feature, added] : draft.features) {
    if (added) {
      settings.product.features.add(feature);
    } else {
      settings.product.features.remove(feature);
    }
  }
  const Soc* soc = draft.soc.empty() ? &product->socs.front() : find_soc(*product, draft.soc);
  if (soc == nullptr) {
    Key key = *find_key(keys, "soc");
    key.allowed = soc_names(*product);
    return wrong_value(key, draft.soc, "product is " + std::string(product->key));
  }
  settings.soc_name = soc->name;
  settings.memory = draft.memory.value_or(soc->memory);
  const uint64_t normal = draft.normal_memory.of(settings.memory);
  if (normal > settings.memory) {
    return wrong_value(*find_key(keys, "normal_memory"), draft.normal_memory_text,
                       std::string("memory is ") + SizeText(settings.memory).c_str());
  }
  // Huge pages are whole; what is left over is normal memory.
  settings.normal_memory = settings.memory - align_down(settings.memory - normal, kHugePage);
  settings.server_devices = settings.devices;
  settings.visible_devices = visible_devices(settings.devices);
  settings.devices = static_cast<unsigned>(settings.visible_devices.size());
  return settings;
}

}  // namespace

Result<Settings> read_settings() {
  const std::vector<Key> keys = make_keys();
  Draft draft;
  if (const std::optional<std::string> path = variable("UNDERSTUDY_CONFIG")) {
    US_TRY(read_file(keys, *path, draft));
  }
  US_TRY(read_variables(keys, draft));
  return complete(keys, std::move(draft));
}

}  // namespace understudy
