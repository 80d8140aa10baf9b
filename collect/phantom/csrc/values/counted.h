// Observes autograd's version counters of tensors, which autograd advances after an operator. An operator that changes
// a tensor advances the counter if autograd sees the call. Autograd does not see a call from inside another operator (a
// factory's fill_) or of an operator without an autograd kernel (collectives). So the code cannot expect one change
// after each operator: if none came, it would take the next writer outside the dispatcher for the operator.
#ifndef PHANTOM_VALUES_COUNTED_H
#define PHANTOM_VALUES_COUNTED_H

#include "call.h"

namespace values {

// Wraps the autograd kernel that advances version counters.
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
