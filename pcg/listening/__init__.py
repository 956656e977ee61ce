"""Blind listening tests: what is asked, who hears what when, what was answered, what it means.

`study` holds a test (a JSON file beside its clips), `plan` gives every listener a balanced order,
`store` keeps the votes, `desk` runs a session, `routes` puts it on HTTP, and `analysis` turns votes
into estimates with intervals.
"""

from pcg.listening.study import Clip, Item, Study, load_study, save_study

__all__ = ["Clip", "Item", "Study", "load_study", "save_study"]
