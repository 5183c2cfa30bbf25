"""Digests of attachments: what a recording, a document or a picture holds, as text and pictures anyone can use.

`digest.py` is the way in. A file is read in a process of its own with bounded memory and time (`read.py`), because
readers of media crash on damaged files; `shown.py` writes what was found. Both sides use the same digests: agents
under the condition `media: digest`, judges always.
"""
