#include "datatypes.h"

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>

#include "gpu_packing.h"
#include "known_types.h"
#include "runtime/runtime.h"
#include "type_contents.h"

namespace offpath::mpi {
namespace {

int layout_keyval = MPI_KEYVAL_INVALID;

int on_delete_layout(MPI_Datatype, int, void* value, void*) {
    release(*static_cast<Layout*>(value));
    return MPI_SUCCESS;
}

bool has_no_gaps(MPI_Datatype type) {
    MPI_Count lower = 0;
    MPI_Count extent = 0;
    PMPI_Type_get_extent_x(type, &lower, &extent);
    return lower == 0 && extent == static_cast<MPI_Count>(type_bytes(type));
}

bool is_contiguous(MPI_Datatype type);

// Whether the blocks of a structure are contiguous and plain bytes.
bool blocks_follow(const TypeContents& contents) {
    std::int64_t next = 0;
    for (std::size_t i = 0; i < contents.types().size(); ++i) {
        const auto [count, place] = contents.block(i);
        const MPI_Datatype type = contents.types()[i];
        if (count == 0) continue;
        if (place != next || !is_contiguous(type)) return false;
        next += count * static_cast<std::int64_t>(type_bytes(type));
    }
    return true;
}

// Whether an array of `type` is its bytes one after the other *in the order of the type map*. Size and extent
// alone do not show this: an indexed type may visit every byte once and yet in another order.
bool is_contiguous(MPI_Datatype type) {
    const TypeContents contents(type);
    bool inner = false;
    switch (contents.combiner()) {
        case MPI_COMBINER_NAMED:
        case MPI_COMBINER_F90_REAL:
        case MPI_COMBINER_F90_COMPLEX:
        case MPI_COMBINER_F90_INTEGER:
            inner = true;
            break;
        case MPI_COMBINER_CONTIGUOUS:
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            inner = is_contiguous(contents.types()[0]);
            break;
        case MPI_COMBINER_STRUCT:
            inner = blocks_follow(contents);
            break;
        default:
            break;
    }
    return inner && has_no_gaps(type);
}

// Not a duplicate: MPI_Type_dup would call the copy callbacks of the user's attributes. Predefined types need
// none, and it would never be freed.
MPI_Datatype type_of_one(MPI_Datatype type) {
    if (is_predefined(type)) return type;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(1, type, &made);
    PMPI_Type_commit(&made);
    return made;
}

bool is_committed(MPI_Datatype type) {
    char nothing = 0;
    int position = 0;
    return PMPI_Pack(&nothing, 0, type, &nothing, 1, &position, runtime().service) == MPI_SUCCESS;
}

Layout* make_layout(MPI_Datatype type) {
    auto* layout = new Layout;
    MPI_Aint lower = 0;
    layout->bytes = type_bytes(type);
    layout->contiguous = is_contiguous(type);
    PMPI_Type_get_extent(type, &lower, &layout->extent);
    if (!layout->contiguous) layout->held = type_of_one(type);
    return layout;
}

Layout* layout_of(MPI_Datatype type) {
    void* value = nullptr;
    int found = 0;
    PMPI_Type_get_attr(type, layout_keyval, static_cast<void*>(&value), &found);
    if (found != 0) return static_cast<Layout*>(value);
    static std::mutex one_maker;
    const std::lock_guard lock(one_maker);
    PMPI_Type_get_attr(type, layout_keyval, static_cast<void*>(&value), &found);
    if (found != 0) return static_cast<Layout*>(value);
    if (!is_committed(type)) return nullptr;
    Layout* layout = make_layout(type);
    PMPI_Type_set_attr(type, layout_keyval, layout);
    return layout;
}

// MPICH 4.0 packs no elements at MPI_BOTTOM. This class makes them elements some bytes before an address that
// MPICH accepts.
class BottomElements {
  public:
    BottomElements(const Layout& layout, const void* elements)
        : type_(layout.held), first_(static_cast<const char*>(elements)) {
        if (elements != MPI_BOTTOM) return;
        constexpr MPI_Aint shift = 4096;
        const int one = 1;
        const MPI_Aint back = -shift;
        PMPI_Type_create_hindexed(1, &one, &back, layout.held, &shifted_);
        PMPI_Type_commit(&shifted_);
        type_ = shifted_;
        first_ += shift;
    }
    ~BottomElements() {
        if (shifted_ != MPI_DATATYPE_NULL) PMPI_Type_free(&shifted_);
    }
    BottomElements(const BottomElements&) = delete;
    BottomElements& operator=(const BottomElements&) = delete;

    MPI_Datatype type() const { return type_; }
    const char* at(MPI_Aint offset) const { return first_ + offset; }

  private:
    MPI_Datatype type_;
    MPI_Datatype shifted_ = MPI_DATATYPE_NULL;
    const char* first_;
};

// MPI_Pack counts bytes in an int.
std::size_t parts_a_call(std::size_t bytes) {
    return std::max<std::size_t>(1, (std::size_t{1} << 30) / std::max<std::size_t>(1, bytes));
}

// Packs or unpacks `count` elements; the packed ones have `bytes` bytes. More elements than an int can count
// must be passed as one.
bool pack_some(const void* elements, std::size_t count, MPI_Datatype type, char* packed, std::size_t bytes) {
    const MPI_Comm comm = runtime().service;
#if MPI_VERSION >= 4
    MPI_Count position = 0;
    const int result = PMPI_Pack_c(elements, static_cast<MPI_Count>(count), type, packed,
                                   static_cast<MPI_Count>(bytes), &position, comm);
#else
    if (bytes > INT_MAX) return false;
    int position = 0;
    const int result =
        PMPI_Pack(elements, static_cast<int>(count), type, packed, static_cast<int>(bytes), &position, comm);
#endif
    return result == MPI_SUCCESS && static_cast<std::size_t>(position) == bytes;
}

bool unpack_some(const char* packed, std::size_t bytes, void* elements, std::size_t count,
                 MPI_Datatype type) {
    const MPI_Comm comm = runtime().service;
#if MPI_VERSION >= 4
    MPI_Count position = 0;
    const int result = PMPI_Unpack_c(packed, static_cast<MPI_Count>(bytes), &position, elements,
                                     static_cast<MPI_Count>(count), type, comm);
#else
    if (bytes > INT_MAX) return false;
    int position = 0;
    const int result = PMPI_Unpack(packed, static_cast<int>(bytes), &position, elements,
                                   static_cast<int>(count), type, comm);
#endif
    return result == MPI_SUCCESS;
}

}  // namespace

void remember_bytes(MPI_Datatype type) {
    KnownType& known = known_type(type);
    if (known.type == type || type == MPI_DATATYPE_NULL) return;
    const bool predefined = is_predefined(type);
    known = {type, predefined ? type_bytes(type) : KnownType::unknown, predefined && has_no_gaps(type)};
}

TypeUse use_type(MPI_Datatype type) {
    TypeUse use;
    if (is_predefined(type) && has_no_gaps(type)) {
        use.usable = true;
        use.bytes = type_bytes(type);
        use.extent = static_cast<MPI_Aint>(use.bytes);
        return use;
    }
    Layout* layout = layout_of(type);
    if (layout == nullptr) return use;
    use.usable = true;
    use.bytes = layout->bytes;
    use.extent = layout->extent;
    use.layout = layout->contiguous ? nullptr : layout;
    return use;
}

Layout& layout_in_gpu(std::size_t bytes) {
    static std::mutex mutex;
    static std::map<std::size_t, Layout> layouts;
    const std::lock_guard lock(mutex);
    Layout& layout = layouts[bytes];
    layout.bytes = bytes;
    layout.extent = static_cast<MPI_Aint>(bytes);
    layout.in_gpu = true;
    return layout;
}

TypeUse use_type(MPI_Datatype type, const void* elements) {
    TypeUse use = use_type(type);
    if (!use.usable || use.bytes == 0 || !gpu::is_device_memory(elements)) return use;
    gpu::count_staged();
    if (use.contiguous()) use.layout = &layout_in_gpu(use.bytes);
    return use;
}

MPI_Datatype hold_type(MPI_Datatype type) {
    if (is_predefined(type)) return MPI_DATATYPE_NULL;
    MPI_Datatype held = type_of_one(type);
    Layout* layout = layout_of(type);
    if (layout != nullptr && layout->parts > 1) {
        retain(*layout);
        PMPI_Type_set_attr(held, layout_keyval, layout);
    }
    return held;
}

int free_type(MPI_Datatype* type) {
    void* value = nullptr;
    int found = 0;
    if (active() && *type != MPI_DATATYPE_NULL)
        PMPI_Type_get_attr(*type, layout_keyval, static_cast<void*>(&value), &found);
    if (found != 0 && static_cast<Layout*>(value)->held != MPI_DATATYPE_NULL)
        PMPI_Type_delete_attr(*type, layout_keyval);
    return PMPI_Type_free(type);
}

void retain(Layout& layout) {
    layout.references.fetch_add(1, std::memory_order_relaxed);
}

void release(Layout& layout) {
    if (layout.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (layout.held != MPI_DATATYPE_NULL && !is_predefined(layout.held)) free_type(&layout.held);
    delete &layout;
}

void set_parts(MPI_Datatype type, MPI_Datatype element, std::size_t count) {
    const TypeUse use = use_type(element);
    auto* layout = new Layout;
    layout->parts = count;
    layout->bytes = count * use.bytes;
    layout->extent = static_cast<MPI_Aint>(count) * use.extent;
    layout->held = type_of_one(element);
    PMPI_Type_set_attr(type, layout_keyval, layout);
}

bool pack_parts(const Layout& layout, const void* elements, std::size_t count, void* packed) {
    if (gpu::are_in_gpu(layout, elements)) return gpu::pack(layout, elements, count, packed);
    const std::size_t size = part_bytes(layout);
    const std::size_t most = parts_a_call(size);
    const BottomElements all(layout, elements);
    for (std::size_t done = 0; done < count; done += most) {
        const std::size_t now = std::min(most, count - done);
        if (!pack_some(all.at(static_cast<MPI_Aint>(done) * part_extent(layout)), now, all.type(),
                       static_cast<char*>(packed) + done * size, now * size))
            return false;
    }
    return true;
}

bool unpack_parts(const Layout& layout, const void* packed, void* elements, std::size_t count) {
    if (gpu::are_in_gpu(layout, elements)) return gpu::unpack(layout, packed, elements, count);
    const std::size_t size = part_bytes(layout);
    const std::size_t most = parts_a_call(size);
    const BottomElements all(layout, elements);
    for (std::size_t done = 0; done < count; done += most) {
        const std::size_t now = std::min(most, count - done);
        if (!unpack_some(static_cast<const char*>(packed) + done * size, now * size,
                         const_cast<char*>(all.at(static_cast<MPI_Aint>(done) * part_extent(layout))), now,
                         all.type()))
            return false;
    }
    return true;
}

bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed) {
    return pack_parts(layout, elements, count * layout.parts, packed);
}

bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count) {
    return unpack_parts(layout, packed, elements, count * layout.parts);
}

void open_datatypes() {
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete_layout, &layout_keyval, nullptr);
}

void close_datatypes() {
    PMPI_Type_free_keyval(&layout_keyval);
}

}  // namespace offpath::mpi
