"""The evidence of a judging: how much is kept, where, and the manifest that covers it."""
