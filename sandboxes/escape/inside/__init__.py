"""What is tried inside a container: standard library only, each attempt a process of its own (see `__main__`).

The folder is copied into the container as it is. On the host it is only read for the list of attempts. An attempt
that succeeds does no harm: it opens for writing and does not write, sets the clock to the time it shows, and so on.
"""
