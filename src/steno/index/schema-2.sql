-- The figures of a session as on its page: `turns` and `failed` are those of the conversation, and
-- `rewound` is the number of rewinds.

ALTER TABLE sessions ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;      -- duration of its turns
ALTER TABLE sessions ADD COLUMN compactions INTEGER NOT NULL DEFAULT 0;
-- Sub-agents inside the file; for a sub-agent's own file 1, unless it was only a warm-up.
ALTER TABLE sessions ADD COLUMN agents INTEGER NOT NULL DEFAULT 0;
-- The file of a sub-agent's session; for a session its own file.
ALTER TABLE sessions ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_owner ON sessions (owner);
