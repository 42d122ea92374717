/* Locks and conditions behind a handle, as portable libraries have them. */
typedef struct lock *Lock;
int lock_make(Lock *lock);
int lock_take(Lock *lock);
int lock_give(Lock *lock);
typedef struct condition *Condition;
int condition_make(Condition *condition);
int condition_await(Condition *condition, Lock *lock, long milliseconds);
