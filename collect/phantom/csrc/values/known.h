// Which storages of CUDA tensors hold, in the phantom device's memory, the values that a device would hold, or
// replacements for them.
//
// A storage is identified by a weak reference, so its entry ends with it. A Python finalizer of the storage would give
// each tensor a Python object, and autograd would then no longer take over its gradient.
#ifndef PHANTOM_VALUES_KNOWN_H
#define PHANTOM_VALUES_KNOWN_H

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace values {

// The largest integer or boolean tensor, and the largest other tensor, whose values are followed: more would cost the
// host more time than known values are worth. A recommender's batch of ids for several tables is some MiB.
constexpr size_t integer_bytes = 8 << 20;
constexpr size_t other_bytes = 64 << 10;

inline bool is_integral(const at::Tensor& tensor) { return c10::isIntegralType(tensor.scalar_type(), true); }

// Whether it is a strided CUDA tensor: not nested, quantized, a zero tensor or a Python subclass with a dispatch of its
// own.
inline bool is_plain(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_cuda() && tensor.has_storage() && tensor.layout() == c10::kStrided &&
           !tensor.is_nested() && !tensor.is_quantized() && !tensor._is_zerotensor() &&
           !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

inline bool is_small(const at::Tensor& tensor) {
    return tensor.storage().nbytes() <= (is_integral(tensor) ? integer_bytes : other_bytes);
}

// Whether the tensor covers all of its storage.
inline bool covers(const at::Tensor& tensor) {
    return size_t(tensor.numel()) * tensor.itemsize() == tensor.storage().nbytes() &&
           tensor.is_non_overlapping_and_dense();
}

class Known {
public:
    // How the values of a storage are known. every: each value. uniform: all elements have one value. given: unknown,
    // but reads return the value that falling.h put there.
    enum How { every, uniform, given };

    bool has(const at::Tensor& tensor) {
        if (!is_plain(tensor) || !is_small(tensor))
            return false;
        std::lock_guard<std::mutex> guard(lock_);
        return is(tensor, every);
    }

    // Whether all elements of the tensor's storage are known to have one value, which is in its first element.
    bool is_uniform(const at::Tensor& tensor) {
        if (!is_plain(tensor))
            return false;
        std::lock_guard<std::mutex> guard(lock_);
        return is(tensor, uniform);
    }

    bool is_given(const at::Tensor& tensor) {
        if (!is_plain(tensor))
            return false;
        std::lock_guard<std::mutex> guard(lock_);
        return is(tensor, given);
    }

    // Whether a storage holds values of this rank that stand for the values of all ranks.
    bool is_copied(const at::Tensor& tensor) {
        if (!any_copied_ || !is_plain(tensor))
            return false;
        std::lock_guard<std::mutex> guard(lock_);
        Entry* entry = find(tensor);
        return entry && entry->copied && current(*entry, tensor);
    }

    // Sets or removes the mark that a storage holds values of this rank in place of all ranks' values.
    void copied(const at::Tensor& tensor, bool is) {
        if (is)
            any_copied_ = true;
        if (!any_copied_ || !is_plain(tensor))
            return;
        std::lock_guard<std::mutex> guard(lock_);
        if (Entry* entry = find(tensor))
            entry->copied = is;
    }

    void learn(const at::Tensor& tensor, How how = every) {
        auto* storage = tensor.storage().unsafeGetStorageImpl();
        std::lock_guard<std::mutex> guard(lock_);
        if (captured_.count(storage))
            return;
        auto found = entries_.find(storage);
        if (found == entries_.end()) {
            purge();
            found = entries_.emplace(storage, Entry{weak(tensor)}).first;
        }
        Entry& entry = found->second;
        entry.data = storage->data();
        entry.bytes = storage->nbytes();
        entry.how = how;
        entry.counter = Counter(c10::intrusive_ptr<c10::intrusive_ptr_target>::reclaim_copy(counter(tensor)));
        entry.version = version(tensor);
        entry.learned = ++clock_;
    }

    uint64_t now() {
        std::lock_guard<std::mutex> guard(lock_);
        return clock_;
    }

    // To be called when autograd has counted a change of a tensor. Values learned after `since` already include the
    // change.
    void count(const at::Tensor& tensor, uint64_t since) {
        if (!is_plain(tensor))
            return;
        std::lock_guard<std::mutex> guard(lock_);
        Entry* entry = find(tensor);
        if (entry && entry->learned > since && entry->counter._unsafe_get_target() == counter(tensor))
            entry->version = version(tensor);
    }

    void forget(const at::Tensor& tensor) {
        if (!is_plain(tensor))
            return;
        std::lock_guard<std::mutex> guard(lock_);
        entries_.erase(tensor.storage().unsafeGetStorageImpl());
    }

    // Marks a tensor that a captured operator writes. Each replay writes it unobserved, so its values are never known
    // again.
    void capture(const at::Tensor& tensor) {
        if (!is_plain(tensor))
            return;
        std::lock_guard<std::mutex> guard(lock_);
        entries_.erase(tensor.storage().unsafeGetStorageImpl());
        captured_.emplace(tensor.storage().unsafeGetStorageImpl(), weak(tensor));
    }

    // Forgets the storages that a kernel outside the dispatcher may have written: those that contain the addresses, or
    // all.
    void forget_at(const void* const* addresses, size_t count, bool captured) {
        std::lock_guard<std::mutex> guard(lock_);
        for (auto entry = entries_.begin(); entry != entries_.end();) {
            auto* first = static_cast<const char*>(entry->second.data);
            auto* end = first + entry->second.bytes;
            auto inside = [first, end](const void* address) { return address >= first && address < end; };
            if (addresses && std::none_of(addresses, addresses + count, inside)) {
                entry++;
                continue;
            }
            if (captured)
                captured_.emplace(entry->first, std::move(entry->second.storage));
            entry = entries_.erase(entry);
        }
    }

private:
    using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
    using Counter = c10::weak_intrusive_ptr<c10::intrusive_ptr_target>;

    struct Entry {
        Weak storage;
        const void* data = nullptr; // differs after the storage was resized
        size_t bytes = 0;
        Counter counter = Counter::reclaim(nullptr); // holds a reference, so that no other counter gets its address
        uint32_t version = 0;
        uint64_t learned = 0;
        How how = every;
        bool copied = false;
    };

    static Weak weak(const at::Tensor& tensor) {
        return tensor.storage().getWeakStorageImpl();
    }

    // Writers outside the dispatcher (compiled code, extensions) are noticed by autograd's version counter. Aliases may
    // have different counters (x.data), so versions are compared only if the counter is the same as before.
    static c10::intrusive_ptr_target* counter(const at::Tensor& tensor) {
        static_assert(sizeof(c10::VariableVersion) == sizeof(void*), "a version counter is a pointer");
        c10::intrusive_ptr_target* pointer;
        std::memcpy(&pointer, &tensor.unsafeGetTensorImpl()->version_counter(), sizeof pointer);
        return pointer;
    }

    static uint32_t version(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

    Entry* find(const at::Tensor& tensor) {
        auto found = entries_.find(tensor.storage().unsafeGetStorageImpl());
        return found == entries_.end() ? nullptr : &found->second;
    }

    bool is(const at::Tensor& tensor, How how) {
        Entry* entry = find(tensor);
        return entry && entry->how == how && current(*entry, tensor);
    }

    static bool current(const Entry& entry, const at::Tensor& tensor) {
        auto* storage = tensor.storage().unsafeGetStorageImpl();
        if (entry.data != storage->data() || entry.bytes != storage->nbytes())
            return false;
        return entry.counter._unsafe_get_target() != counter(tensor) || entry.version == version(tensor);
    }

    void purge() {
        if (entries_.size() < limit_)
            return;
        for (auto entry = entries_.begin(); entry != entries_.end();)
            entry = entry->second.storage.expired() ? entries_.erase(entry) : std::next(entry);
        for (auto entry = captured_.begin(); entry != captured_.end();)
            entry = entry->second.expired() ? captured_.erase(entry) : std::next(entry);
        limit_ = std::max<size_t>(1024, 2 * entries_.size());
    }

    std::mutex lock_;
    std::atomic<bool> any_copied_{false}; // false in processes that meet no collectives
    std::unordered_map<c10::StorageImpl*, Entry> entries_;
    std::unordered_map<c10::StorageImpl*, Weak> captured_;
    size_t limit_ = 1024;
    uint64_t clock_ = 0;
};

// The object is never destroyed, since threads may use it after main has ended.
inline Known& known() {
    static Known* all = new Known;
    return *all;
}

} // namespace values

#endif
