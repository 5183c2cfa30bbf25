"""The agents that can be run: each says what to start in the container and how."""
