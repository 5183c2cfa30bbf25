"""The verbs of the command line, a module for each part; `cdb.py` puts them together.

A verb imports what it needs when it runs: a test holds which modules `cdb --help` may load.
"""
