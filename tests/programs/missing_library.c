/* Two libraries are asked for that are not there. The dynamic linker notes the first error in an object
   that it frees when a look-up in between goes well: nothing may be looked up for it while it does that. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    if (dlopen("libmissing_a.so", RTLD_NOW) != NULL || dlopen("libmissing_b.so", RTLD_NOW) != NULL)
        return 0;
    const char *error = dlerror();
    return error == NULL || strstr(error, "libmissing_b.so") == NULL;
}
