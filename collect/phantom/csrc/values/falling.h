// The value that a program reads from a floating-point scalar that was not computed, above all a loss: it falls with
// each read. Larger tensors read as zero. If a loss read as zero, a loop that stops when the loss no longer falls would
// stop after as many epochs as its patience, and a loop that stops at a small loss would stop at once. On a real device
// such loops go on.
#ifndef PHANTOM_VALUES_FALLING_H
#define PHANTOM_VALUES_FALLING_H

#include "call.h"
#include "listener.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <atomic>
#include <cmath>

namespace values {

// Returns values that fall from 127/128 on and halve in 64 equal steps. They have eight significant bits, as bfloat16
// has, and are below one, since the scalar may be a probability or a random number. They end at 2^-lowest and are never
// zero, since zero has no logarithm.
inline double next_value(int lowest) {
    static std::atomic<int64_t> given{0};
    int64_t n = std::min<int64_t>(++given, 64 * lowest);
    return std::ldexp(1 - double(n % 64) / 128, -int(n / 64));
}

// Puts a value into the memory of an unknown scalar, unless it has one. The scalar keeps its value until something
// changes it. Returns false if the tensor is no floating-point scalar.
inline bool give_value(const at::Tensor& tensor) {
    if (known().is_given(tensor))
        return true;
    if (!is_plain(tensor) || tensor.numel() != 1 || tensor.is_neg())
        return false;
    auto* data =
        static_cast<char*>(const_cast<void*>(tensor.storage().data())) + tensor.storage_offset() * tensor.itemsize();
    auto put = [data](auto value) { std::memcpy(data, &value, sizeof value); };
    constexpr int half = 14, others = 120; // normal numbers of the type end below
    switch (tensor.scalar_type()) {
    case c10::kFloat:
        put(float(next_value(others)));
        break;
    case c10::kDouble:
        put(next_value(others));
        break;
    case c10::kBFloat16:
        put(c10::BFloat16(float(next_value(others))));
        break;
    case c10::kHalf:
        put(c10::Half(float(next_value(half))));
        break;
    default:
        return false;
    }
    // An element of a larger storage is not remembered: each read of it gets another value.
    if (covers(tensor))
        known().learn(tensor, Known::given);
    return true;
}

inline bool is_judgement(const Plan& plan) {
    static constexpr std::array<std::string_view, 6> comparisons{"eq", "ne", "lt", "le", "gt", "ge"};
    static constexpr std::array<std::string_view, 9> logic{"any",         "all",         "logical_not",
                                                           "logical_and", "logical_or",  "logical_xor",
                                                           "bitwise_not", "bitwise_and", "bitwise_or"};
    return !plan.changes && plan.results == 1 && (is_one_of(plan.base, comparisons) || is_one_of(plan.base, logic));
}

// To be called after the CUDA kernel. Computes a comparison of scalars, or logic on its result, with the values that
// reads of the scalars return. A read of the result still counts as an unknown read. Returns false if a tensor that
// takes part is no scalar.
inline bool judge(const Call& call, const Plan& plan, const c10::OperatorHandle& op, const Stack& stack) {
    if (answered || !stack.back().isTensor())
        return false;
    const at::Tensor& result = stack.back().toTensor();
    if (!is_plain(result) || result.scalar_type() != c10::kBool || result.numel() != 1 || !covers(result))
        return false;
    auto scalar = [](const at::Tensor& tensor) { return tensor.numel() == 1; };
    for (size_t i : plan.tensors)
        if (plan.roles[i] == Role::read && !all_tensors(call.argument(i), scalar))
            return false;
    auto has_value = [](const at::Tensor& tensor) { return is_known(tensor) || give_value(tensor); };
    // The last argument gets its value first, so the first argument gets a lower one: in `loss < best` the new value is
    // the first argument.
    for (auto i = plan.tensors.rbegin(); i != plan.tensors.rend(); i++)
        if (plan.roles[*i] == Role::read && !all_tensors(call.argument(*i), has_value))
            return false;
    Stack host;
    if (!call.run(op, host) || !host.back().isTensor() || host.back().toTensor().numel() != 1)
        return false;
    *static_cast<bool*>(const_cast<void*>(result.storage().data())) =
        *static_cast<const bool*>(host.back().toTensor().data_ptr());
    known().learn(result, Known::given);
    return true;
}

} // namespace values

#endif
