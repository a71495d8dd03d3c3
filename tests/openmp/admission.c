/* Says where a target region runs, and as which user. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int host = 0, user = -1;
#pragma omp target map(tofrom : host, user)
    {
        host = omp_is_initial_device();
        user = (int)getuid();
    }
    if (host)
        printf("on the host\n");
    else
        printf("on the device as user %d\n", user);
    return 0;
}
