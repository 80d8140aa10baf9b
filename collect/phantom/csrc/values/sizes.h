// Operators whose CUDA kernels read the size of their output from the device.
#ifndef PHANTOM_VALUES_SIZES_H
#define PHANTOM_VALUES_SIZES_H

#include "follow.h"

namespace values {

struct Size {
    std::string_view name;
    int64_t (*bound)(const Call&);
    int64_t (*exact)(const Call&, const at::Tensor& first); // the size of the first result
};

inline int64_t elements(const Call& call) { return call.argument(0).toTensor().numel(); }

inline int64_t along(const Call& call, const c10::IValue& dim) { return call.argument(0).toTensor().size(dim.toInt()); }

inline const Size* size_of(std::string_view name) {
    static const Size sizes[] = {
        {"nonzero", elements, [](const Call&, const at::Tensor& first) { return first.size(0); }},
        {"_unique", elements, [](const Call&, const at::Tensor& first) { return first.numel(); }},
        {"_unique2", elements, [](const Call&, const at::Tensor& first) { return first.numel(); }},
        {"unique_dim", [](const Call& call) { return along(call, call.argument(1)); },
         [](const Call& call, const at::Tensor& first) { return first.size(call.argument(1).toInt()); }},
        {"unique_dim_consecutive", [](const Call& call) { return along(call, call.argument(1)); },
         [](const Call& call, const at::Tensor& first) { return first.size(call.argument(1).toInt()); }},
        {"unique_consecutive",
         [](const Call& call) { return call.argument(3).isNone() ? elements(call) : along(call, call.argument(3)); },
         [](const Call& call, const at::Tensor& first) {
             return call.argument(3).isNone() ? first.numel() : first.size(call.argument(3).toInt());
         }},
        {"repeat_interleave.Tensor",
         [](const Call& call) { return call.argument(1).isNone() ? elements(call) : call.argument(1).toInt(); },
         [](const Call&, const at::Tensor& first) { return first.numel(); }},
    };
    for (const Size& size : sizes)
        if (size.name == name)
            return &size;
    return nullptr;
}

struct Answer : Answered {
    explicit Answer(int64_t size) { phantom_answer(size); }
    ~Answer() { phantom_answer(-1); }
};

// Gives the CUDA kernel the size of its output: the exact size if the input is known, else an upper bound.
class Sized : public Follow {
public:
    explicit Sized(const c10::OperatorHandle& op) : Follow(op), size_(*size_of(plan_.name)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Call call(plan_, *stack);
        if (!elements(call))
            return before_.callBoxed(op, keys, stack);
        const at::Tensor& tensor = call.argument(0).toTensor();
        Stack host;
        bool known_values = !phantom_captures_running() && call.is_known() && call.run(op, host), exact = known_values;
        bool copied = known_values && call.is_copied();
        int64_t size = known_values ? size_.exact(call, host.front().toTensor()) : size_.bound(call);
        if (!known_values && plan_.name == "nonzero" && is_mask(tensor) && known().is_uniform(tensor)) {
            size = first_byte(tensor) ? tensor.numel() : 0;
            exact = true;
        }
        // A size inside an operator whose answer is already decided is not reported.
        if (!answered) {
            if (!exact && !phantom_captures_running())
                tell(Told::read, plan_.name.c_str());
            tell(exact ? Told::exact : Told::bound, plan_.name.c_str());
            if (copied)
                tell(Told::copied, plan_.name.c_str());
        }
        {
            Answer answer(size);
            before_.callBoxed(op, keys, stack);
        }
        if (!known_values)
            return call.forget(*stack);
        call.learn_results(*stack, host);
        call.copied(*stack, copied);
    }

private:
    const Size& size_;
};

// For coalesce, which merges a sparse tensor's elements at equal indices: the result has at most as many elements as
// the tensor. The values of the result and of its indices are not followed.
class Coalesce : public Follow {
public:
    explicit Coalesce(const c10::OperatorHandle& op) : Follow(op, c10::DispatchKey::SparseCUDA) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        const at::Tensor sparse = stack->back().toTensor();
        int64_t size = sparse._nnz();
        bool exact = size < 2 || !phantom_captures_running() && count(sparse._indices(), size);
        if (!answered) {
            if (!exact)
                tell(Told::read, plan_.name.c_str());
            tell(exact ? Told::exact : Told::bound, plan_.name.c_str());
        }
        Answer answer(size);
        before_.callBoxed(op, keys, stack);
    }

private:
    // Counts the different columns of the indices. Returns false if the indices are unknown.
    static bool count(const at::Tensor& indices, int64_t& size) {
        if (!is_known(indices))
            return false;
        static const auto of_one = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_unique2", "");
        static const auto of_many = c10::Dispatcher::singleton().findSchemaOrThrow("aten::unique_dim", "");
        // Indices of one row, as of an embedding's gradient, are counted with _unique2: unique_dim compares columns
        // with each other and is twenty times slower.
        bool one = indices.size(0) == 1;
        Stack stack =
            one ? Stack{on_host(indices), false, false, false} : Stack{on_host(indices), 1, true, false, false};
        if (!run_on_host(one ? of_one : of_many, stack))
            return false;
        const at::Tensor& different = stack.front().toTensor();
        size = one ? different.numel() : different.size(1);
        return true;
    }
};

} // namespace values

#endif
