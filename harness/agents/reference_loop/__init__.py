"""What runs inside the container for the `reference` agent: a tool loop, on its own and without the project."""
