-- Files backed up by Claude Code, some of which have no recorded tool call.

-- Only new backups: every snapshot repeats the earlier ones.
CREATE TABLE file_backups (
  message   INTEGER NOT NULL,           -- the record that names it
  path      TEXT NOT NULL,              -- the whole path
  turn      INTEGER NOT NULL,
  version   INTEGER,                    -- of the backup, where the record has one
  time      INTEGER,
  PRIMARY KEY (message, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_backups_by_path ON file_backups (path);
