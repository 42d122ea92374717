/* Locks behind a handle, as portable libraries have them. */
typedef struct lock *Lock;
int lock_make(Lock *lock);
int lock_take(Lock *lock);
int lock_give(Lock *lock);
