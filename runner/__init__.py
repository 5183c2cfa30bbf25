"""One run from one file: what is run, its steps as processes of their own, how it stands, what it may cost."""
