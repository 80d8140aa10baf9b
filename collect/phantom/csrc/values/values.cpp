// Real values for small tensors with known inputs on a phantom GPU. known.h remembers which values are known, and
// follow.h computes them. This code works below autograd and below Python: it wraps the dispatcher's CUDA kernels. A
// TorchFunctionMode would see nothing in backward hooks and on the autograd engine's threads. A TorchDispatchMode and
// kernels written in Python would change what is measured: autograd would no longer accumulate gradients in place, or
// no longer take them over.
//
// There is one translation unit, since torch's headers take seconds to compile and a new user waits for that.
#include "collective.h"
#include "counted.h"
#include "reads.h"
#include "sizes.h"

#define API extern "C" __attribute__((visibility("default")))

namespace values {

template <class Around>
void put(const c10::OperatorHandle& op, c10::DispatchKey key = c10::DispatchKey::CUDA) {
    // The wrappers are never removed, since a script needs them until its end.
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        op.operator_name(), key, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Around>(op)), std::nullopt,
        nullptr, "values followed on the phantom GPU"));
}

void put(const c10::OperatorName& name) {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    // Composite operators are not wrapped: a wrapper would cut them off from the autograd of their parts.
    if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
        !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA))
        return;
    Plan plan(*op);
    if (name.name.rfind("c10d::", 0) == 0)
        return put<Collective>(*op);
    if (plan.name == "_local_scalar_dense")
        return put<Scalar>(*op);
    if (plan.name == "equal")
        return put<Equal>(*op);
    if (plan.name == "copy_")
        return put<Copy>(*op);
    if (plan.base == "histc")
        return put<Range>(*op);
    if (size_of(plan.name))
        return put<Sized>(*op);
    if (!plan.idle)
        put<Follow>(*op);
}

void put_counted() {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(Counted::key)) {
        auto op = c10::Dispatcher::singleton().findSchema(name);
        if (op && name.name.rfind("aten::", 0) == 0 && Plan(*op).writes)
            put<Counted>(*op, Counted::key);
    }
}

struct Silent : c10::WarningHandler {
    void process(const c10::Warning&) override {}
};

} // namespace values

// Returns the version of torch for which this library was compiled.
API const char* phantom_values_torch(void) { return PHANTOM_TORCH; }

API void phantom_values_install(values::Listener listener) {
    values::listener = listener;
    phantom_strict_reads();
    phantom_on_written([](const void* const* addresses, size_t count) {
        values::known().forget_at(addresses, count, phantom_captures_running());
    });
    values::Silent silent; // hides torch's warning that kernels are overridden
    c10::WarningUtils::WarningHandlerGuard guard(&silent);
    for (const c10::OperatorName& name :
         c10::Dispatcher::singleton().getRegistrationsForDispatchKey(c10::DispatchKey::CUDA))
        if (name.name.rfind("aten::", 0) == 0)
            values::put(name);
    values::put({"aten::copy_", ""});
    values::put<values::Close>(c10::Dispatcher::singleton().findSchemaOrThrow("aten::allclose", ""));
    values::put_counted();
    for (const char* name : {"squeeze_", "unsqueeze_", "transpose_", "t_", "as_strided_"})
        for (const char* overload : {"", "dim", "dims"})
            if (auto op = c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, overload}))
                values::put<values::Reshape>(*op);
    values::put<values::Coalesce>(c10::Dispatcher::singleton().findSchemaOrThrow("aten::_coalesce", ""),
                                  c10::DispatchKey::SparseCUDA);
    // These collectives need wrappers of their own, since their schemas do not declare all that they write.
    for (const char* name : {"broadcast_", "allreduce_", "allreduce_coalesced_", "reduce_", "allgather_",
                             "_allgather_base_", "allgather_coalesced_", "allgather_into_tensor_coalesced_",
                             "reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "gather_",
                             "scatter_", "alltoall_", "alltoall_base_", "recv_", "recv_any_source_"})
        values::put({std::string("c10d::") + name, ""});
}

// phantom_values_again sets how an exception is raised again (Again in listener.h), and is to be called before the
// first report. phantom_values_raised is to be called when the listener has kept an exception.
API void phantom_values_again(int (*later)(int (*)(void*), void*), int (*call)(void*), void* argument) {
    values::again = {later, call, argument};
}
API void phantom_values_raised(void) { values::raised = true; }

// Whether the memory of a tensor (a TensorImpl) holds the values that a real device would hold.
API int phantom_values_known(c10::TensorImpl* tensor) {
    return values::is_known(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(tensor)));
}

// Forgets a tensor's values. For a tensor that changed without an operator, which only autograd was told.
API void phantom_values_forget(c10::TensorImpl* tensor) {
    values::known().forget(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(tensor)));
}
