// What autograd counts, which it does after the operator: an operator that changes a tensor adds to the tensor's count
// of changes if it was called where autograd looks on, and does not where it was called from inside another one (a
// factory's fill_), or has no such kernel (collectives). To expect one change after each operator was rejected: where
// none came, the next writer that the dispatcher does not see passed for it.
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
