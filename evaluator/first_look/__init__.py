"""What is found out about start and submission before any judge looks: facts of each, flows, and what differs."""
