// Collectives. The peers are assumed to be copies of this rank, so it receives from each what it sends. The maximum is
// this rank's value, and the sum is this value times the number of ranks. On a real device other ranks may have other
// values, so the phantom GPU reports reads of such results, and of values derived from them.
#ifndef PHANTOM_VALUES_COLLECTIVE_H
#define PHANTOM_VALUES_COLLECTIVE_H

#include "follow.h"

namespace values {

// Follows collectives that write their first argument. Their schemas do not declare that they write it.
class Collective : public Follow {
public:
    using Follow::Follow;

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
        Call call(plan_, *stack);
        int operation;
        phantom_reduction(&operation); // discards an earlier collective's count
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

    // If this rank is not the root, the value that it has is assumed to be the one that the root sent.
    static void broadcasts(const Call& call) {
        int operation;
        if (phantom_reduction(&operation) > 1)
            copied(call.argument(0));
    }

    // Gives a reduction its result. To be called after the reduction, since only the call of NCCL shows the number of
    // ranks and the operation (for truth values torch turns a sum into a maximum). If NCCL was not called, or if this
    // rank may not be the one that gets the result, the value is unknown.
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

    // Fills `to` with copies of `from`. `others` means that `to` is one of several parts, which belong to different
    // ranks. A part may belong to a larger tensor whose rest is known.
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
