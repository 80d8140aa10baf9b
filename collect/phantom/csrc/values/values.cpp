// Real values for small tensors with known inputs on a phantom GPU. known.h says what is remembered, follow.h how
// it is computed. It works below autograd and below Python, as CUDA kernels of the dispatcher. A TorchFunctionMode
// would see nothing in backward hooks and on the autograd engine's threads. A TorchDispatchMode and kernels written
// in Python would change what is measured: autograd would no longer accumulate gradients in place, or no longer
// take them over.
//
// There is one unit of translation, since torch's headers take seconds to compile and a new user waits for them.
#include "collective.h"
#include "counted.h"
#include "reads.h"
#include "sizes.h"

#define API extern "C" __attribute__((visibility("default")))

namespace values {

template <class Around>
void put(const c10::OperatorHandle& op, c10::DispatchKey key = c10::DispatchKey::CUDA) {
    // Never taken back: a script may run to its very end.
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        op.operator_name(), key, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Around>(op)), std::nullopt,
        nullptr, "values followed on the phantom GPU"));
}

void put(const c10::OperatorName& name) {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    // A kernel of ours would cut a composite operator off from the autograd of its parts.
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

// The version of torch that this was compiled for.
API const char* phantom_values_torch(void) { return PHANTOM_TORCH; }

API void phantom_values_install(values::Listener listener) {
    values::listener = listener;
    phantom_strict_reads();
    phantom_on_written([](const void* const* addresses, size_t count) {
        values::known().forget_at(addresses, count, phantom_captures_running());
    });
    values::Silent silent; // torch warns of the override, which is meant
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
    // Collectives that write elsewhere than where they read, or something else.
    for (const char* name : {"broadcast_", "allreduce_", "allreduce_coalesced_", "reduce_", "allgather_",
                             "_allgather_base_", "allgather_coalesced_", "allgather_into_tensor_coalesced_",
                             "reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "gather_",
                             "scatter_", "alltoall_", "alltoall_base_", "recv_", "recv_any_source_"})
        values::put({std::string("c10d::") + name, ""});
}

// To be called before anything can be reported, and after the listener has raised something that is to be raised
// again.
API void phantom_values_again(int (*later)(int (*)(void*), void*), int (*call)(void*), void* argument) {
    values::again = {later, call, argument};
}
API void phantom_values_raised(void) { values::raised = true; }

// Whether the memory of a tensor (a TensorImpl) holds its true values.
API int phantom_values_known(c10::TensorImpl* tensor) {
    return values::is_known(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(tensor)));
}

// For a tensor that autograd was told was changed, without an operator.
API void phantom_values_forget(c10::TensorImpl* tensor) {
    values::known().forget(
        at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(tensor)));
}
