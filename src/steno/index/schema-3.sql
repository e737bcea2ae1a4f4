-- Columns to show the status of sessions in a list, and to page without reading every row.

-- Ending of its records (`steno.session.session_status`); the status also depends on the time.
ALTER TABLE sessions ADD COLUMN ending TEXT NOT NULL DEFAULT '';
-- Time at which its file was last seen growing.
ALTER TABLE sessions ADD COLUMN grown INTEGER;
ALTER TABLE sessions ADD COLUMN active INTEGER
  GENERATED ALWAYS AS (max(coalesce(ended, 0), coalesce(grown, 0))) VIRTUAL;
ALTER TABLE sessions ADD COLUMN last INTEGER GENERATED ALWAYS AS (coalesce(ended, 0)) VIRTUAL;
ALTER TABLE sessions ADD COLUMN listed INTEGER
  GENERATED ALWAYS AS (agent = '' AND NOT hidden) VIRTUAL;
CREATE INDEX sessions_by_last ON sessions (listed, last);
CREATE INDEX sessions_by_activity ON sessions (listed, active);

-- Size and deletion of its file, as in `files`, so that counting a list needs no other table.
ALTER TABLE sessions ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN gone INTEGER;
CREATE TRIGGER files_to_sessions AFTER UPDATE OF size, gone ON files BEGIN
  UPDATE sessions SET size = new.size, gone = new.gone WHERE file = new.id;
END;
UPDATE sessions SET (size, gone) = (SELECT size, gone FROM files WHERE id = file);
CREATE INDEX sessions_listed ON sessions (
  listed, project, model, branch, ended, grown, active, last, ending, gone, size, failed,
  compactions, rewound
);
CREATE INDEX sessions_with_agents ON sessions (owner) WHERE agents > 0;
