// The kernel that wraps an operator's CUDA kernel.
#ifndef PHANTOM_VALUES_FOLLOW_H
#define PHANTOM_VALUES_FOLLOW_H

#include "falling.h"
#include "finite.h"

namespace values {

// The CUDA kernel runs as before, so allocations equal the device's. If all inputs of the operator are known and small,
// its CPU kernel then computes the results. Otherwise the results are unknown.
class Follow : public c10::OperatorKernel {
public:
    explicit Follow(const c10::OperatorHandle& op, c10::DispatchKey key = c10::DispatchKey::CUDA)
        : plan_(op), finite_(finite_kind(plan_)), judges_(is_judgement(plan_)),
          before_(op.getComputedKernelForDispatchKey(key)) {}

    virtual void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
        Call call(plan_, *stack);
        bool capturing = phantom_captures_running();
        if (plan_.followed && !capturing && call.is_known()) {
            Answered inside;
            bool copied = call.is_copied();
            call.keep();
            before_.callBoxed(op, keys, stack);
            call.compute(op, *stack) ? call.copied(*stack, copied) : call.forget(*stack);
            return;
        }
        bool about_finiteness = !capturing && is_about_finiteness(finite_, call);
        before_.callBoxed(op, keys, stack);
        if (!capturing && finite_ == Finite::unscale)
            unscale(call);
        else if (capturing || !(about_finiteness ? assume_finite(plan_, call, op, *stack)
                                                 : compute_uniform(plan_, call, op, *stack) ||
                                                       judges_ && judge(call, plan_, op, *stack)))
            call.forget(*stack);
    }

protected:
    Plan plan_;
    Finite finite_;
    bool judges_;
    Kernel before_;
};

} // namespace values

#endif
