-- The figures of a session, as its page has them: `turns` and `failed` are of the conversation, and
-- `rewound` says how often somebody went back and went on differently.

ALTER TABLE sessions ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;      -- what its turns took
ALTER TABLE sessions ADD COLUMN compactions INTEGER NOT NULL DEFAULT 0;
-- Sub-agents inside the file; of a sub-agent's own file 1, unless it only warmed up.
ALTER TABLE sessions ADD COLUMN agents INTEGER NOT NULL DEFAULT 0;
-- The file of the session that a sub-agent worked for; of a session its own.
ALTER TABLE sessions ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_owner ON sessions (owner);
