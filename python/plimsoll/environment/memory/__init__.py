"""Memory as the kernel manages it: page cache, swap, huge pages, vm settings, what a killed server leaves behind."""
