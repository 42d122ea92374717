/* Two bugs that have nothing to do with each other: pages are counted without a lock, and a tray is looked at in one step
   and emptied in another one. -DPAGES_FIXED and -DTRAY_FIXED mend one of them each. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t tray_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static int tray = 1;
static int pages;

static void count_page(void)
{
#ifdef PAGES_FIXED
    pthread_mutex_lock(&page_lock);
#endif
    pages = pages + 1;
#ifdef PAGES_FIXED
    pthread_mutex_unlock(&page_lock);
#endif
}

static void take_sheet(void)
{
#ifdef TRAY_FIXED
    pthread_mutex_lock(&tray_lock);
    if (tray > 0)
        tray = tray - 1;
    pthread_mutex_unlock(&tray_lock);
#else
    if (__atomic_load_n(&tray, __ATOMIC_RELAXED) > 0)
        __atomic_sub_fetch(&tray, 1, __ATOMIC_RELAXED);
#endif
}

static void *print(void *unused)
{
    take_sheet();
    for (int side = 0; side < 2; side++)
        count_page();
    return unused;
}

int main(void)
{
    pthread_t printers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&printers[i], 0, print, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(printers[i], 0);
    assert(pages == 4);
    assert(tray == 0);
    return 0;
}
