"""The judge side: rubric, plan, build, serve, browser, witness, judge, refute, adjudicate, score, report."""
