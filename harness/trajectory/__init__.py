"""What an agent and its model said to each other, in the Agent Trajectory Interchange Format."""
