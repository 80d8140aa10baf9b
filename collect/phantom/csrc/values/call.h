// One call of an operator: its arguments, and which values of its results are known.
#ifndef PHANTOM_VALUES_CALL_H
#define PHANTOM_VALUES_CALL_H

#include "host.h"
#include "known.h"
#include "phantom.h"
#include "plan.h"

#include <map>
#include <utility>
#include <vector>

namespace values {

using torch::jit::Stack;

// Calls f with each defined tensor in a value, until f returns false.
template <class F>
bool all_tensors(const c10::IValue& value, F f) {
    if (value.isTensor())
        return !value.toTensor().defined() || f(value.toTensor());
    if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
            if (tensor.defined() && !f(tensor))
                return false;
    } else if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
            if (tensor && tensor->defined() && !f(*tensor))
                return false;
    } else if (value.isList()) { // a list of lists, as collectives take it
        for (const c10::IValue& item : value.toListRef())
            if (!all_tensors(item, f))
                return false;
    }
    return true;
}

inline bool is_known(const at::Tensor& tensor) {
    return tensor.numel() == 0 || !tensor.is_cuda() ? tensor.is_cuda() || tensor.device().is_cpu()
                                                    : known().has(tensor);
}

class Call {
public:
    Call(const Plan& plan, const Stack& stack)
        : plan_(plan), arguments_(stack.end() - plan.roles.size(), stack.end()) {}

    const c10::IValue& argument(size_t i) const { return arguments_[i]; }

    // Whether all values that the operator reads are known, and those that it writes can become known.
    bool is_known() const {
        for (size_t i : plan_.tensors) {
            Role role = plan_.roles[i];
            bool ok = all_tensors(arguments_[i], [role](const at::Tensor& tensor) {
                if (role == Role::read || role == Role::changed)
                    return values::is_known(tensor) && (role == Role::read || tensor.is_cuda());
                return is_plain(tensor);
            });
            if (!ok)
                return false;
        }
        return true;
    }

    // Whether the operator reads values of this rank that stand for all ranks' values (collective.h).
    bool is_copied() const {
        bool found = false;
        for (size_t i : plan_.tensors)
            if (plan_.roles[i] == Role::read || plan_.roles[i] == Role::changed)
                all_tensors(arguments_[i], [&found](const at::Tensor& tensor) {
                    found |= known().is_copied(tensor);
                    return !found;
                });
        return found;
    }

    // Marks the results as values of this rank that stand for all ranks' values, or removes this mark.
    void copied(const Stack& stack, bool is) const {
        auto mark = [is](const at::Tensor& tensor) {
            known().copied(tensor, is);
            return true;
        };
        auto mark_written = [is](const at::Tensor& tensor) {
            if (is || covers(tensor)) // a part that is the same on all ranks says nothing about the rest
                known().copied(tensor, is);
            return true;
        };
        for (size_t i : plan_.tensors)
            if (written(i))
                all_tensors(arguments_[i], mark_written);
        for (size_t i = 0; i < plan_.results; i++)
            if (plan_.fresh[i])
                all_tensors(stack[stack.size() - plan_.results + i], mark);
    }

    // Keeps what compute() needs of the tensors that the operator writes. To be called before the CUDA kernel, since
    // operators inside the kernel may change these tensors.
    void keep() {
        for (size_t i : plan_.tensors) {
            if (!written(i))
                continue;
            all_tensors(arguments_[i], [this](const at::Tensor& tensor) {
                if (known().has(tensor))
                    before_.push_back(tensor.storage().unsafeGetStorageImpl());
                if (plan_.changes)
                    copies_.try_emplace(tensor.storage().unsafeGetStorageImpl(), copy(tensor));
                return true;
            });
        }
    }

    // Runs the operator's CPU kernel and gives its results in `host`.
    bool run(const c10::OperatorHandle& op, Stack& host) const {
        host.clear();
        for (size_t i = 0; i < arguments_.size(); i++)
            host.push_back(to_host(i));
        return run_on_host(op, host) && host.size() == plan_.results;
    }

    // Computes the values of the results. To be called after the CUDA kernel. Returns false if that fails; the values
    // are then unknown.
    bool compute(const c10::OperatorHandle& op, const Stack& stack) {
        if (!results_are_small(stack))
            return false;
        Stack host;
        if (!run(op, host))
            return false;
        for (size_t i : plan_.tensors)
            if (written(i))
                all_tensors(arguments_[i], [this](const at::Tensor& tensor) {
                    learn_written(tensor);
                    return true;
                });
        learn_results(stack, host);
        return true;
    }

    void learn_results(const Stack& stack, const Stack& host) const {
        for (size_t i = 0; i < plan_.results; i++)
            if (plan_.fresh[i])
                learn_result(stack[stack.size() - plan_.results + i], host[i]);
    }

    void forget(const Stack& stack) const {
        bool capturing = phantom_captures_running();
        auto drop = [capturing](const at::Tensor& tensor) {
            capturing ? known().capture(tensor) : known().forget(tensor);
            return true;
        };
        for (size_t i : plan_.tensors)
            if (written(i))
                all_tensors(arguments_[i], drop);
        if (!plan_.returns_views)
            for (size_t i = 0; i < plan_.results; i++)
                all_tensors(stack[stack.size() - plan_.results + i], drop);
    }

    // Takes over autograd's count of the changes of each written tensor. To be called after autograd has counted.
    void count(uint64_t since) const {
        for (size_t i : plan_.tensors)
            if (written(i))
                all_tensors(arguments_[i], [since](const at::Tensor& tensor) {
                    known().count(tensor, since);
                    return true;
                });
    }

private:
    // Gives the tensors that the CUDA kernel returned the values of the tensors that the CPU kernel returned.
    static void learn_result(const c10::IValue& result, const c10::IValue& value) {
        if (result.isTensorList() && value.isTensorList()) {
            auto results = result.toTensorVector(), host = value.toTensorVector();
            for (size_t i = 0; i < results.size() && i < host.size(); i++)
                learn_result(results[i], host[i]);
        } else if (result.isTensor() && value.isTensor() && result.toTensor().defined()) {
            const at::Tensor &tensor = result.toTensor(), &host = value.toTensor();
            bool same = host.defined() && is_plain(tensor) && is_small(tensor) && host.sizes() == tensor.sizes() &&
                        host.dtype() == tensor.dtype();
            if (!same)
                return known().forget(tensor);
            if (!tensor.numel())
                return;
            {
                OnHost guard;
                on_host(tensor).copy_(host);
            }
            // The whole storage counts as known: no tensor has a view of the part outside this new result.
            known().learn(tensor);
        }
    }

    bool written(size_t i) const {
        bool reads_only = plan_.training < arguments_.size() && arguments_[plan_.training].isBool() &&
                          !arguments_[plan_.training].toBool();
        return !reads_only && (plan_.roles[i] == Role::changed || plan_.roles[i] == Role::overwritten);
    }

    static c10::Storage copy(const at::Tensor& tensor) {
        size_t bytes = tensor.storage().nbytes();
        c10::DataPtr data = c10::GetCPUAllocator()->allocate(bytes);
        std::memcpy(data.get(), tensor.storage().data(), bytes);
        return c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(data), nullptr, false);
    }

    at::Tensor to_host(const at::Tensor& tensor) const {
        if (!tensor.defined() || !tensor.is_cuda())
            return tensor;
        auto copied = copies_.find(tensor.storage().unsafeGetStorageImpl());
        return copied == copies_.end() ? on_host(tensor) : view(tensor, copied->second);
    }

    c10::IValue to_host(size_t i) const {
        const c10::IValue& value = arguments_[i];
        if (value.isTensor())
            return to_host(value.toTensor());
        if (value.isTensorList()) {
            c10::List<at::Tensor> list;
            for (const at::Tensor& tensor : value.toTensorVector())
                list.push_back(to_host(tensor));
            return list;
        }
        if (value.isOptionalTensorList()) {
            c10::List<std::optional<at::Tensor>> list;
            for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
                list.push_back(tensor ? std::optional<at::Tensor>(to_host(*tensor)) : tensor);
            return list;
        }
        return value.isDevice() ? c10::IValue(c10::Device(c10::kCPU)) : value;
    }

    bool results_are_small(const Stack& stack) const {
        auto fits = [](const at::Tensor& tensor) { return is_plain(tensor) && is_small(tensor); };
        for (size_t i : plan_.tensors)
            if (written(i) && !all_tensors(arguments_[i], fits))
                return false;
        for (size_t i = 0; i < plan_.results; i++)
            if (!all_tensors(stack[stack.size() - plan_.results + i], fits))
                return false;
        return true;
    }

    void learn_written(const at::Tensor& tensor) {
        auto* storage = tensor.storage().unsafeGetStorageImpl();
        auto copied = copies_.find(storage);
        if (copied != copies_.end() && storage->data())
            std::memcpy(const_cast<void*>(storage->data()), copied->second.data(),
                        std::min(storage->nbytes(), copied->second.nbytes()));
        bool was_known = std::find(before_.begin(), before_.end(), storage) != before_.end();
        // A storage does not become known when only a part of it was written.
        was_known || covers(tensor) ? known().learn(tensor) : known().forget(tensor);
    }

    const Plan& plan_;
    std::vector<c10::IValue> arguments_;
    std::vector<c10::StorageImpl*> before_;
    std::map<c10::StorageImpl*, c10::Storage> copies_;
};

} // namespace values

#endif
