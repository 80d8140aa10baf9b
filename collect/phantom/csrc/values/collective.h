// Collectives. The peers are copies of this rank, so it receives from each what it sends. The maximum is its own
// value, and the sum is its own times the number of ranks. On a device other ranks may have other values, so reads
// of these, and of values derived from them, are reported.
#ifndef PHANTOM_VALUES_COLLECTIVE_H
#define PHANTOM_VALUES_COLLECTIVE_H

#include "follow.h"

namespace values {

// Their schemas do not say what is written: it is the first argument.
class Collective : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Call call(plan_, *stack);
        int operation;
        phantom_reduction(&operation); // one that nobody asked about
        before_.callBoxed(op, keys, stack);
        if (plan_.base == "broadcast_")
            return broadcasts(call);
        auto unknown = [](const at::Tensor& tensor) {
            phantom_captures_running() ? known().capture(tensor) : known().forget(tensor);
            return true;
        };
        if (phantom_captures_running() || !(is_reduction() ? reduces(call) : gathers(call)))
            all_tensors(call.argument(0), unknown);
    }

private:
    bool is_reduction() const {
        static constexpr std::array<std::string_view, 3> names{"allreduce_", "allreduce_coalesced_", "reduce_"};
        return is_one_of(plan_.base, names);
    }

    static void copied(const c10::IValue& tensors) {
        all_tensors(tensors, [](const at::Tensor& tensor) {
            known().copied(tensor, true);
            return true;
        });
    }

    // The value here is assumed to be what the root sent.
    static void broadcasts(const Call& call) {
        int operation;
        if (phantom_reduction(&operation) > 1)
            copied(call.argument(0));
    }

    // To be called after it, since only NCCL is told the number of ranks and the effective operation (for truth
    // values the sum is whether one holds). If NCCL was not asked, or this rank may not be the one that gets the
    // sum, the value is unknown.
    bool reduces(const Call& call) const {
        enum { sum, product, max, min, average };
        int operation, ranks = phantom_reduction(&operation);
        if (ranks == 1)
            return true;
        if (ranks == 0 || operation == product || operation > average || operation == sum && plan_.base == "reduce_")
            return false;
        if (operation == sum)
            all_tensors(call.argument(0), [ranks](const at::Tensor& tensor) {
                OnHost guard;
                if (known().has(tensor))
                    on_host(tensor).mul_(ranks);
                return true;
            });
        copied(call.argument(0));
        return true;
    }

    bool gathers(const Call& call) const {
        if (plan_.base == "_allgather_base_")
            return gather(call.argument(0).toTensor(), call.argument(1).toTensor(), false);
        if (plan_.base != "allgather_" || !call.argument(0).isList())
            return false;
        std::vector<at::Tensor> given = call.argument(1).toTensorVector();
        size_t i = 0;
        bool all = true;
        for (const c10::IValue& gathered : call.argument(0).toListRef()) {
            std::vector<at::Tensor> parts = gathered.toTensorVector();
            for (const at::Tensor& to : parts)
                all &= i < given.size() && gather(to, given[i], parts.size() > 1);
            i++;
        }
        return all;
    }

    // others: whether it is one of several parts, and all other parts belong to other ranks. A part may belong to a
    // larger tensor, whose rest was known before.
    static bool gather(const at::Tensor& to, const at::Tensor& from, bool others) {
        if (!is_known(from) || !is_plain(to) || !is_small(to) || !from.numel() || to.numel() % from.numel() ||
            to.dtype() != from.dtype() || !to.is_contiguous() || !from.is_contiguous())
            return false;
        auto* data = static_cast<char*>(const_cast<void*>(to.storage().data())) + to.storage_offset() * to.itemsize();
        auto* source = static_cast<const char*>(from.storage().data()) + from.storage_offset() * from.itemsize();
        size_t bytes = from.numel() * from.itemsize();
        for (size_t at = 0; at < to.numel() * to.itemsize(); at += bytes)
            std::memcpy(data + at, source, bytes);
        known().learn(to);
        known().copied(to, others || to.numel() > from.numel() || known().is_copied(from));
        return true;
    }
};

} // namespace values

#endif
