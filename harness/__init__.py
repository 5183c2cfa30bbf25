"""The solver side: agents, prompt, trial, run. Never sees a rubric."""
