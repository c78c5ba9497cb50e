cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    static int avx2_is_there(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") != 0;
    }
    #else
    static int avx2_is_there(void) { return 0; }
    #endif
    """
    bint avx2_is_there() noexcept
