"""Disposable containers and the only way out of them: images, limits, registry mirror, trees in and out."""
