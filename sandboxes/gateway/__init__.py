"""The gateway: the only way a command-line agent reaches a model, and the only holder of keys.

`client.py` is what a harness uses; everything that imports aiohttp runs in the gateway's own process only.
"""
