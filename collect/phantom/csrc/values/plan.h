// What an operator's schema tells about its arguments and results, and whether its values can be followed.
#ifndef PHANTOM_VALUES_PLAN_H
#define PHANTOM_VALUES_PLAN_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace values {

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
    for (std::string_view candidate : names)
        if (name == candidate)
            return true;
    return false;
}

enum class Role { none, read, changed, overwritten };

struct Plan {
    std::string name; // such as add.Tensor
    std::string base; // such as add
    std::vector<Role> roles;
    std::vector<size_t> tensors; // arguments that may hold tensors
    bool writes = false;
    bool changes = false; // what the operator writes depends on the previous contents
    bool returns_views = false;
    size_t training = SIZE_MAX; // index of the argument that, if false, makes the running statistics read-only
    std::vector<bool> fresh; // for each result, whether it is a new tensor and no argument
    size_t results = 0;
    // The operator's results can be computed from its arguments.
    bool followed = false;
    // The operator writes no values: there is nothing to compute and nothing to forget.
    bool idle = false;

    explicit Plan(const c10::OperatorHandle& op) {
        const auto& schema = op.schema();
        base = op.operator_name().name.substr(op.operator_name().name.find("::") + 2);
        name = base + (op.operator_name().overload_name.empty() ? "" : "." + op.operator_name().overload_name);
        static constexpr std::array<std::string_view, 5> overwriting{"fill_", "zero_", "copy_", "_foreach_zero_",
                                                                     "_foreach_copy_"};
        bool overwrites = is_one_of(base, overwriting), random = op.hasTag(at::Tag::nondeterministic_seeded),
             inputs = false;
        for (const auto& argument : schema.arguments()) {
            const std::string type = argument.type()->str();
            bool statistics = changes_statistics() && argument.name().rfind("running_", 0) == 0;
            bool written = statistics || argument.alias_info() && argument.alias_info()->isWrite();
            if (changes_statistics() && argument.name() == "training")
                training = roles.size();
            Role role = Role::none;
            if (type.find("Tensor") != std::string::npos) {
                role = !written                                                   ? Role::read
                       : argument.kwarg_only() || argument.is_out() || overwrites ? Role::overwritten
                                                                                  : Role::changed;
                tensors.push_back(roles.size());
                inputs |= role == Role::read || role == Role::changed;
                writes |= written;
                changes |= role == Role::changed;
            }
            random |= type.find("Generator") != std::string::npos;
            roles.push_back(role);
        }
        results = schema.returns().size();
        bool gives_tensors = false;
        for (const auto& result : schema.returns()) {
            gives_tensors |= result.type()->str().find("Tensor") != std::string::npos;
            returns_views |= result.alias_info() && !result.alias_info()->isWrite();
            fresh.push_back(!result.alias_info());
        }
        // An operator that reads no tensors is followed only if it is listed here, since others may leave their
        // result's memory unwritten.
        static constexpr std::array<std::string_view, 10> factories{
            "arange", "linspace", "logspace",       "range",        "eye",
            "fill_",  "zero_",    "_foreach_zero_", "tril_indices", "triu_indices"};
        followed = !random && (inputs || is_one_of(base, factories));
        static constexpr std::array<std::string_view, 4> unwritten{"resize_", "resize_as_", "set_", "record_stream"};
        // linalg_eig is not followed: torch calls it inside itself with a result that is no tensor yet.
        followed &= base != "linalg_eig";
        idle = is_one_of(base, unwritten) || base.find("empty") < 2 || !writes && (returns_views || !gives_tensors);
    }

private:
    // Batch norms write their running statistics, which their schemas declare as inputs. No other operators have such
    // an argument.
    bool changes_statistics() const {
        static constexpr std::array<std::string_view, 6> names{
            "native_batch_norm",       "cudnn_batch_norm",        "miopen_batch_norm",
            "batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"};
        return is_one_of(base, names);
    }
};

} // namespace values

#endif
