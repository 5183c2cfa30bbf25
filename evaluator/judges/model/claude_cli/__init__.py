"""The claude-cli back end: the real command line in a container, its tools ours, its key held by the gateway."""
