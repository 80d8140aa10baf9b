// If a program asks only whether unknown values are finite, the answer is that they are: nobody wants to know the
// memory of a training whose losses are not finite. The phantom GPU reports each such answer.
#ifndef PHANTOM_VALUES_FINITE_H
#define PHANTOM_VALUES_FINITE_H

#include "listener.h"
#include "uniform.h"

#include <cmath>

namespace values {

enum class Finite { no, question, comparison, equality, unscale };

inline Finite finite_kind(const Plan& plan) {
    static constexpr std::array<std::string_view, 3> questions{"isnan", "isposinf", "isneginf"};
    static constexpr std::array<std::string_view, 6> comparisons{"eq.Scalar", "ne.Scalar", "lt.Scalar",
                                                                 "le.Scalar", "gt.Scalar", "ge.Scalar"};
    static constexpr std::array<std::string_view, 2> equalities{"eq.Tensor", "ne.Tensor"};
    if (is_one_of(plan.name, questions))
        return Finite::question;
    if (is_one_of(plan.name, comparisons))
        return Finite::comparison;
    if (is_one_of(plan.name, equalities))
        return Finite::equality;
    return plan.name == "_amp_foreach_non_finite_check_and_unscale_" ? Finite::unscale : Finite::no;
}

inline bool is_same(const at::Tensor& a, const at::Tensor& b) {
    return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
           a.strides() == b.strides() && a.dtype() == b.dtype();
}

inline bool is_unlikely(double value) { return !std::isfinite(value) && !(value < 0); }

// Whether the operator's result is the same for all finite values of the tensor.
inline bool is_about_finiteness(Finite kind, const Call& call) {
    if (kind == Finite::no || kind == Finite::unscale || !call.argument(0).isTensor())
        return false;
    const at::Tensor& tensor = call.argument(0).toTensor();
    if (!is_plain(tensor) || is_integral(tensor))
        return false;
    // torch's isinf and isfinite compare with +inf. A program that compares with -inf looks for elements that it has
    // masked itself.
    if (kind == Finite::comparison)
        return call.argument(1).isScalar() && call.argument(1).toScalar().isFloatingPoint() &&
               is_unlikely(call.argument(1).toScalar().toDouble());
    if (kind == Finite::equality)
        return call.argument(1).isTensor() && is_plain(call.argument(1).toTensor()) &&
               is_same(tensor, call.argument(1).toTensor());
    return true;
}

// GradScaler divides the gradients and checks that they are finite: their values are now unknown and are assumed to be
// finite.
inline void unscale(const Call& call) {
    all_tensors(call.argument(0), [](const at::Tensor& gradient) {
        known().forget(gradient);
        return true;
    });
    tell(Told::assumed, "_amp_foreach_non_finite_check_and_unscale_");
}

// Fills a question's result with the answer for finite values. To be called after the CUDA kernel.
inline bool assume_finite(const Plan& plan, const Call& call, const c10::OperatorHandle& op, const Stack& stack) {
    const at::Tensor &tensor = call.argument(0).toTensor(), &result = stack.back().toTensor();
    if (!is_mask(result) || !covers(result))
        return false;
    // The CPU kernel gets zero in place of the tensor, since the answer is the same for all finite values.
    double zeros[2] = {0, 0};
    c10::Storage storage(c10::Storage::use_byte_size_t(), sizeof zeros, c10::DataPtr(zeros, c10::Device(c10::kCPU)),
                         nullptr, false);
    at::Tensor zero = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    Stack host;
    for (size_t i = 0; i < plan.roles.size(); i++)
        host.push_back(call.argument(i).isTensor() ? c10::IValue(zero) : call.argument(i));
    zero.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef(), c10::IntArrayRef());
    if (!run_on_host(op, host))
        return false;
    make_uniform(result, *static_cast<const bool*>(host.back().toTensor().data_ptr()));
    tell(Told::assumed, plan.name.c_str());
    return true;
}

} // namespace values

#endif
