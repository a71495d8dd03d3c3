// LinkedList: an intrusive list. An object is in one list at a time and holds its own links, so removing it
// needs no search. Objects are visited in insertion order, which never depends on their addresses. The list
// owns nothing; objects in it must not be copied or moved. Threads: one.
#pragma once

#include <cstddef>
#include <vector>

namespace offpath {

template <typename T>
class LinkedList;

template <typename T>
class Linked {
  private:
    friend class LinkedList<T>;
    T *previous_ = nullptr, *next_ = nullptr;
};

template <typename T>
class LinkedList {
  public:
    void push_back(T& object) {
        link(object).previous_ = last_;
        link(object).next_ = nullptr;
        (last_ == nullptr ? first_ : link(*last_).next_) = &object;
        last_ = &object;
        ++size_;
    }
    void remove(T& object) {
        Linked<T>& its = link(object);
        (its.previous_ == nullptr ? first_ : link(*its.previous_).next_) = its.next_;
        (its.next_ == nullptr ? last_ : link(*its.next_).previous_) = its.previous_;
        its.previous_ = its.next_ = nullptr;
        --size_;
    }
    bool empty() const { return first_ == nullptr; }
    std::size_t size() const { return size_; }
    T* first() const { return first_; }
    static T* after(const T& object) { return static_cast<const Linked<T>&>(object).next_; }
    // Returns all objects, for a walk during which some may be removed.
    std::vector<T*> all() const {
        std::vector<T*> found;
        found.reserve(size_);
        for (T* each = first_; each != nullptr; each = after(*each))
            found.push_back(each);
        return found;
    }
    bool contains(const T& object) const {
        for (T* each = first_; each != nullptr; each = after(*each))
            if (each == &object) return true;
        return false;
    }

  private:
    static Linked<T>& link(T& object) { return object; }

    T *first_ = nullptr, *last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace offpath
