"""Judge, refuter and planner over a language model: a conversation with tools that ends in a checked answer."""
