"""What a judge sees of a running application, beyond acting on it: typed results, a deadline on every call.

Each tool takes the open page (`evaluator.replay.stage.Stage`) and gives one model of `results`. It raises
NotShown or ValueError in words for whoever asked, PageHung when the page does not answer in time (the visit is over
then), and a Playwright error when the page goes away.
"""
