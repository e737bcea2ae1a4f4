-- The files that the client itself backed up: of some of them no tool call is recorded.

-- Only new backups: every snapshot names again what was backed up before.
CREATE TABLE file_backups (
  message   INTEGER NOT NULL,           -- the record that names it
  path      TEXT NOT NULL,              -- the whole path
  turn      INTEGER NOT NULL,
  version   INTEGER,                    -- of the backup, where the record has one
  time      INTEGER,
  PRIMARY KEY (message, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_backups_by_path ON file_backups (path);
