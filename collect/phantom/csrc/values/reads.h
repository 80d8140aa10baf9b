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

// The name under which a read is reported. A truth value that does not come from falling.h has a name of its own,
// since a loop may wait for it.
inline const char* name_of_read(const at::Tensor& tensor, const char* otherwise) {
    return tensor.scalar_type() != c10::kBool ? otherwise : known().is_given(tensor) ? "judged" : "truth";
}

// Turns the value that a read would return into the other one: false into true, zero into one, and a number from
// falling.h, which is less than one, into its inverse. Or makes it true.
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
            to.copy_(on_host(from)); // the phantom's own copies end at a limit
            if (way != usual)
                turn(to.data_ptr(), to.scalar_type(), way);
        } else if (uniform || way != usual)
            to.fill_(way != usual || first_byte(from));
        else if (to.is_non_overlapping_and_dense()) // of whatever kind: not all can be filled
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
        // A part says nothing about the rest.
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
        // Inside an operator that was answered a read is no news, but what an earlier tenant left is no value there
        // either.
        char before[16]; // a value that is turned is so for this read alone
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

// Changes a tensor's shape, which autograd counts as a change of it, and leaves its values.
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

// Reads the range of its input to place its bins, which does not change its size. Both ends read as zero here, and
// the operator widens a range that is a point. As falling numbers, its maximum would be less than its minimum.
class Range : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Answered inside;
        Follow::operator()(op, keys, stack);
    }
};

// The backward of a decomposition uses it to check that a loss does not depend on the arbitrary part of the
// decomposition.
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

// Gives a truth value that its CUDA kernel reads from what it computed behind the dispatcher's back.
class Equal : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Call call(plan_, *stack);
        Stack host;
        bool computed = !phantom_captures_running() && call.is_known() && call.run(op, host);
        {
            std::optional<Answered> inside; // the kernel may raise: of tensors on two devices
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
