"""Doctests import the modules they are collected from: candidates are never imported here, the referee alone runs them."""

collect_ignore_glob = ["attacks/*", "honest/*", "lazy/*", "tasks/*"]
