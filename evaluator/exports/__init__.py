"""Judged results in other people's formats: tables, Inspect logs, Harbor tasks; and Harbor jobs brought in."""
