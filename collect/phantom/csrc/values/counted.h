// What autograd counts, which it does after the operator. An operator that changes a tensor adds to the tensor's
// version if autograd sees the call. It does not if it was called from inside another operator (a factory's fill_),
// or has no such kernel (collectives). It would not do to expect one change after each operator: where none came,
// the next writer outside the dispatcher would be mistaken for it.
#ifndef PHANTOM_VALUES_COUNTED_H
#define PHANTOM_VALUES_COUNTED_H

#include "call.h"

namespace values {

// Stands around the kernel that counts.
class Counted : public c10::OperatorKernel {
public:
    static constexpr c10::DispatchKey key = c10::DispatchKey::ADInplaceOrView;

    explicit Counted(const c10::OperatorHandle& op) : plan_(op), before_(op.getComputedKernelForDispatchKey(key)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        Call call(plan_, *stack);
        uint64_t start = known().now();
        before_.callBoxed(op, keys, stack);
        call.count(start);
    }

private:
    Plan plan_;
    Kernel before_;
};

} // namespace values

#endif
