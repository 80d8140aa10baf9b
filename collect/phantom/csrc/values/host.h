// Makes CPU tensors over the memory of CUDA tensors, which on the phantom GPU is host memory, and runs CPU kernels on
// them.
#ifndef PHANTOM_VALUES_HOST_H
#define PHANTOM_VALUES_HOST_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <utility>

namespace values {

// The type of an operator's kernel in torch's dispatcher.
using Kernel =
    std::decay_t<decltype(std::declval<c10::OperatorHandle>().getComputedKernelForDispatchKey(c10::DispatchKey::CUDA))>;

// While it lives, operators run below autograd and all modes, unseen by profilers and without warnings, since the
// script did not call them.
class OnHost {
public:
    OnHost() : before_(c10::impl::tls_local_dispatch_key_set()) {
        c10::impl::LocalDispatchKeySet plain = before_;
        plain.included_ = c10::default_included_set;
        plain.excluded_ = c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView;
        c10::impl::_force_tls_local_dispatch_key_set(plain);
    }
    ~OnHost() { c10::impl::_force_tls_local_dispatch_key_set(before_); }
    OnHost(const OnHost&) = delete;
    OnHost& operator=(const OnHost&) = delete;

private:
    struct Silent : c10::WarningHandler {
        void process(const c10::Warning&) override {}
    };
    c10::impl::LocalDispatchKeySet before_;
    at::DisableRecordFunctionGuard record_;
    Silent silent_;
    c10::WarningUtils::WarningHandlerGuard warnings_{&silent_};
};

inline at::Tensor view(const at::Tensor& tensor, c10::Storage storage) {
    auto host = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                         tensor.dtype());
    auto* impl = host.unsafeGetTensorImpl();
    impl->set_storage_offset(tensor.storage_offset());
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
        impl->set_wrapped_number(true);
    if (tensor.is_conj())
        impl->_set_conj(true);
    if (tensor.is_neg())
        impl->_set_neg(true);
    return host;
}

// Returns a CPU tensor over a CUDA tensor's memory. torch's from_blob could make it, but its headers take a second to
// compile.
inline at::Tensor on_host(const at::Tensor& tensor) {
    c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                         c10::DataPtr(const_cast<void*>(tensor.storage().data()), c10::Device(c10::kCPU)), nullptr,
                         false);
    return view(tensor, std::move(storage));
}

// Runs the operator's CPU kernel on CPU arguments. Returns false if the operator has no CPU kernel or if the kernel
// refuses the arguments.
inline bool run_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
        return false;
    // torch takes the arguments off the stack before it puts the results there. An out= operator with several
    // results returns references to its arguments, so these must live until then.
    const torch::jit::Stack arguments = stack;
    try {
        OnHost guard;
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

} // namespace values

#endif
