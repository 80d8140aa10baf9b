// Operators that move values between the device and the host.
#ifndef PHANTOM_VALUES_READS_H
#define PHANTOM_VALUES_READS_H

#include "follow.h"

#include <optional>

namespace values {

template <class Number>
void turn_number(void* data) {
    Number value;
    std::memcpy(&value, data, sizeof value);
    value = float(value) == 0 ? Number(1) : Number(1 / value);
    std::memcpy(data, &value, sizeof value);
}

// The name under which a read is reported. Reads of truth values have names of their own, since a loop may wait for
// one: "judged" if falling.h decided the value, else "truth".
inline const char* name_of_read(const at::Tensor& tensor, const char* otherwise) {
    return tensor.scalar_type() != c10::kBool ? otherwise : known().is_given(tensor) ? "judged" : "truth";
}

// Turns the value that a read would return into the other value: false into true, zero into one, and a number from
// falling.h, which is less than one, into its inverse. For the way `yes` it makes the value true.
inline void turn(void* data, c10::ScalarType type, Way way) {
    if (way == yes) {
        *static_cast<bool*>(data) = true;
        return;
    }
    switch (type) {
    case c10::kFloat:
        return turn_number<float>(data);
    case c10::kDouble:
        return turn_number<double>(data);
    case c10::kBFloat16:
        return turn_number<c10::BFloat16>(data);
    case c10::kHalf:
        return turn_number<c10::Half>(data);
    case c10::kBool:
        *static_cast<bool*>(data) = !*static_cast<bool*>(data);
        return;
    default: // a whole number
        *static_cast<unsigned char*>(data) ^= 1;
    }
}

class Copy : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        const at::Tensor to = (*stack)[stack->size() - 3].toTensor(), from = (*stack)[stack->size() - 2].toTensor();
        bool has_values = is_known(from), uniform = is_mask(from) && known().is_uniform(from),
             had_values = known().has(to);
        bool capturing = phantom_captures_running();
        {
            Announced read(has_values && !to.is_cuda());
            before_.callBoxed(op, keys, stack);
        }
        if (!to.is_cuda())
            read(to, from, has_values, uniform);
        else if (capturing)
            known().capture(to);
        else
            write(to, from, has_values, uniform, had_values);
    }

private:
    static void read(const at::Tensor& to, const at::Tensor& from, bool has_values, bool uniform) {
        if (!from.is_cuda() || !to.device().is_cpu() || to.layout() != c10::kStrided || !to.numel() ||
            answered && !has_values)
            return;
        Way way = !has_values && !uniform ? tell(Told::read, name_of_read(from, "copy_")) : usual;
        if (has_values && !answered && known().is_copied(from))
            tell(Told::copied, "copy_");
        bool has_one = has_values || !uniform && give_value(from);
        OnHost guard;
        if (has_one) {
            to.copy_(on_host(from)); // phantom_copy would zero a large one
            if (way != usual)
                turn(to.data_ptr(), to.scalar_type(), way);
        } else if (uniform || way != usual)
            to.fill_(way != usual || first_byte(from));
        else if (to.is_non_overlapping_and_dense()) // memset, since zero_ does not take all types
            std::memset(to.data_ptr(), 0, to.nbytes());
        else
            to.zero_();
    }

    static void write(const at::Tensor& to, const at::Tensor& from, bool has_values, bool uniform, bool had_values) {
        if (uniform && is_mask(to) && covers(to))
            return make_uniform(to, first_byte(from));
        if (!has_values || !is_plain(to) || !is_small(to))
            return known().forget(to);
        if (!to.numel())
            return;
        {
            OnHost guard;
            on_host(to).copy_(from.is_cuda() ? on_host(from) : from);
        }
        // A storage does not become known when only a part of it was written.
        had_values || covers(to) ? known().learn(to) : known().forget(to);
        bool copied = known().is_copied(from);
        if (copied || covers(to))
            known().copied(to, copied);
    }
};

class Scalar : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        const at::Tensor& tensor = stack->back().toTensor();
        // A read inside an operator whose answer is decided is not reported. Such a read, too, must not return what an
        // earlier tensor left in the memory.
        char before[16]; // the value before turn(), put back after this read
        char* turned = nullptr;
        if (is_plain(tensor) && tensor.numel() && !is_known(tensor)) {
            auto* data = static_cast<char*>(const_cast<void*>(tensor.storage().data())) +
                         tensor.storage_offset() * tensor.itemsize();
            if (is_mask(tensor) && known().is_uniform(tensor)) {
                *data = first_byte(tensor);
            } else {
                Way way = answered ? usual : tell(Told::read, name_of_read(tensor, "_local_scalar_dense"));
                if (answered || !give_value(tensor))
                    std::memset(data, 0, tensor.itemsize());
                if (way != usual && tensor.itemsize() <= sizeof before) {
                    turned = data;
                    std::memcpy(before, data, tensor.itemsize());
                    turn(data, tensor.scalar_type(), way);
                }
            }
        }
        if (!answered && known().is_copied(tensor))
            tell(Told::copied, "_local_scalar_dense");
        size_t size = tensor.itemsize();
        {
            Announced read(true);
            before_.callBoxed(op, keys, stack);
        }
        if (turned)
            std::memcpy(turned, before, size);
    }
};

// For operators that change a tensor's shape and not its values. Autograd counts the new shape as a change of the
// tensor.
class Reshape : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        bool had_values = known().has((*stack)[stack->size() - plan_.roles.size()].toTensor());
        before_.callBoxed(op, keys, stack);
        if (had_values)
            known().learn(stack->back().toTensor());
    }
};

// For operators that read the range of their input to place bins, whose number does not depend on it. Both ends of the
// range read as zero, and the operator widens an empty range. As falling numbers, the maximum would be less than the
// minimum.
class Range : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Answered inside;
        Follow::operator()(op, keys, stack);
    }
};

// For allclose. The backward of a matrix decomposition calls it to check that the loss does not depend on the arbitrary
// part of the decomposition.
class Close : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        bool asks = !answered && !phantom_captures_running() && !Call(plan_, *stack).is_known();
        if (!asks || tell(Told::check, "allclose") != yes)
            return before_.callBoxed(op, keys, stack);
        {
            Answered inside;
            before_.callBoxed(op, keys, stack);
        }
        stack->back() = true;
    }
};

// For equal. Its CUDA kernel computes the truth value outside the dispatcher and reads it from the device, so the value
// from the CPU kernel replaces it.
class Equal : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Call call(plan_, *stack);
        Stack host;
        bool computed = !phantom_captures_running() && call.is_known() && call.run(op, host);
        {
            std::optional<Answered> inside; // the kernel may raise, for tensors on two devices
            if (computed)
                inside.emplace();
            before_.callBoxed(op, keys, stack);
        }
        if (computed && !answered && call.is_copied())
            tell(Told::copied, "equal");
        if (computed)
            stack->back() = host.back();
    }
};

} // namespace values

#endif
