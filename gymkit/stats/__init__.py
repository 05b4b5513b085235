"""DataFrame in, DataFrame out: how good, how sure, better than the other one."""
