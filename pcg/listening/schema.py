"""The tables: tests, listeners (a random id and an order number), clips served, votes.

Nothing else about a person is stored: no address, no browser, no account.
"""

SCHEMA = """
CREATE TABLE IF NOT EXISTS studies (
    id TEXT PRIMARY KEY, created REAL NOT NULL, definition TEXT NOT NULL, owner TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS listeners (
    study TEXT NOT NULL REFERENCES studies(id), listener TEXT NOT NULL, number INTEGER NOT NULL,
    consented REAL NOT NULL, device TEXT, check_correct INTEGER, check_of INTEGER,
    PRIMARY KEY (study, listener), UNIQUE (study, number));
CREATE TABLE IF NOT EXISTS servings (
    token TEXT PRIMARY KEY, study TEXT NOT NULL, listener TEXT NOT NULL, trial INTEGER NOT NULL,
    slot TEXT NOT NULL, item TEXT NOT NULL, system TEXT NOT NULL, seconds REAL NOT NULL,
    fetched REAL, UNIQUE (study, listener, trial, slot));
CREATE TABLE IF NOT EXISTS votes (
    study TEXT NOT NULL, listener TEXT NOT NULL, trial INTEGER NOT NULL, item TEXT NOT NULL,
    practice INTEGER NOT NULL, answer TEXT NOT NULL, voted REAL NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (study, listener, trial));
"""
