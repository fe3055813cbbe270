/* What wine 8 has only by name in ucrtbase.dll, which stands for Microsoft's C library: complex
   functions of C99, from MinGW's library. scripts/wine.py forwards the rest. Microsoft's long double
   is a double. */
#include <complex.h>
#include <stdlib.h>
#include <windows.h>
#define ONE(name) double complex hil_##name(double complex z) { return name(z); } \
    float complex hil_##name##f(float complex z) { return name##f(z); }
#define REAL(name) double hil_##name(double complex z) { return name(z); } \
    float hil_##name##f(float complex z) { return name##f(z); }
REAL(cabs) REAL(carg) REAL(cimag) REAL(creal)
ONE(catan) ONE(ccos) ONE(ccosh) ONE(cexp) ONE(clog) ONE(csin) ONE(csinh) ONE(csqrt) ONE(ctan) ONE(ctanh)
double complex hil_cpow(double complex x, double complex y) { return cpow(x, y); }
float complex hil_cpowf(float complex x, float complex y) { return cpowf(x, y); }
float complex hil__FCbuild(float re, float im) { return __builtin_complex(re, im); }
double complex hil__LCbuild(double re, double im) { return __builtin_complex(re, im); }
/* Microsoft's fenv_t has 8 bytes, MinGW's 28. Exceptions are masked from the start. */
int hil_feholdexcept(void *env) {
    HMODULE ucrt = GetModuleHandleA("ucrtbase.dll");
    int (*get)(void *) = (int (*)(void *))(void *)GetProcAddress(ucrt, "fegetenv");
    unsigned (*clear)(void) = (unsigned (*)(void))(void *)GetProcAddress(ucrt, "_clearfp");
    int failed = get(env);
    clear();
    return failed;
}
void hil__invoke_watson(void) { abort(); }
