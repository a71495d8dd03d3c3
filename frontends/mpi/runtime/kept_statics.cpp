// A program may call MPI_Finalize when exit() has destroyed the static objects of all libraries: in a
// destructor of the program or of a library. So the static objects of this library are never destroyed. The
// compiler has their destructors registered by this function, and the linker takes this one in place of the C
// library's.
//
// A constructor may call MPI_Init before the program begins. The option initfirst (CMakeLists.txt) has the
// static objects of this library made before those of any other.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) {  // NOLINT
    return 0;
}
