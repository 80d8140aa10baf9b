// Masks of any size whose elements all have one truth value. finite.h makes such a mask if a program asks about a large
// tensor of unknown values that are assumed to be finite. Programs then ask whether any or all of its elements are
// true.
#ifndef PHANTOM_VALUES_UNIFORM_H
#define PHANTOM_VALUES_UNIFORM_H

#include "call.h"

namespace values {

inline bool is_mask(const at::Tensor& tensor) { return is_plain(tensor) && tensor.scalar_type() == c10::kBool; }

inline unsigned char first_byte(const at::Tensor& tensor) {
    return *static_cast<const unsigned char*>(tensor.storage().data());
}

// Sets all elements of a mask that covers its storage to one value. In a large mask only the first element is written,
// so that the other pages take no host memory.
inline void make_uniform(const at::Tensor& mask, bool value) {
    size_t bytes = mask.storage().nbytes();
    if (!bytes)
        return;
    std::memset(const_cast<void*>(mask.storage().data()), value, is_small(mask) ? bytes : 1);
    known().learn(mask, is_small(mask) ? Known::every : Known::uniform);
}

// Whether the operator's result is uniform if its arguments are, as for elementwise operators and for reductions.
inline bool keeps_uniform(const Plan& plan) {
    static constexpr std::array<std::string_view, 12> names{"any",        "all",         "logical_not", "logical_and",
                                                            "logical_or", "logical_xor", "bitwise_not", "bitwise_and",
                                                            "bitwise_or", "mul",         "max",         "min"};
    return !plan.writes && is_one_of(plan.base, names);
}

// Computes one element of the result and sets all elements to it. Returns false if an argument is neither a uniform
// mask nor one known element.
inline bool compute_uniform(const Plan& plan, const Call& call, const c10::OperatorHandle& op, const Stack& stack) {
    if (!keeps_uniform(plan) || plan.results != 1 || !stack.back().isTensor())
        return false;
    Stack host;
    bool uniform = false;
    for (size_t i = 0; i < plan.roles.size(); i++) {
        const c10::IValue& value = call.argument(i);
        if (!value.isTensor() || !value.toTensor().defined()) {
            host.push_back(value);
            continue;
        }
        const at::Tensor& tensor = value.toTensor();
        bool mask = is_mask(tensor) && known().is_uniform(tensor);
        if (!mask && !(tensor.numel() == 1 && is_known(tensor) && is_mask(tensor)))
            return false;
        uniform |= mask;
        at::Tensor one = on_host(tensor);
        std::vector<int64_t> ones(tensor.dim(), 1);
        one.unsafeGetTensorImpl()->set_sizes_and_strides(ones, ones);
        if (mask)
            one.unsafeGetTensorImpl()->set_storage_offset(0);
        host.push_back(one);
    }
    const at::Tensor& result = stack.back().toTensor();
    if (!uniform || !is_mask(result) || !covers(result) || !run_on_host(op, host) || !host.back().isTensor() ||
        host.back().toTensor().numel() != 1)
        return false;
    make_uniform(result, *static_cast<const bool*>(host.back().toTensor().data_ptr()));
    return true;
}

} // namespace values

#endif
