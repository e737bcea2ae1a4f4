-- The index of sessions. Times are milliseconds since 1970 UTC, sizes are bytes, flags are 0 or 1.
--
-- No text of a session is stored here: a message is identified by its location, and is read again
-- from its file (or from the archive) when it is shown. The full-text index is in the directory
-- `words` next to this file; a document there has the ID of its message here.
--
-- A message ID encodes the location: the ID of its file times 2^40, plus its offset in the file.
-- So IDs increase along a file, all rows of a file are one range, and the bytes can be located
-- without reading a row.

-- Every known transcript: sessions and their sub-agents.
CREATE TABLE files (
  id        INTEGER PRIMARY KEY,
  root      ANY NOT NULL,               -- the folder it was found below
  path      ANY NOT NULL UNIQUE,        -- bytes where the name is not UTF-8
  size      INTEGER NOT NULL,           -- size, time and identity when it was last looked at
  mtime     INTEGER NOT NULL,           -- in nanoseconds
  device    INTEGER NOT NULL,
  inode     INTEGER NOT NULL,
  done      INTEGER NOT NULL DEFAULT 0, -- up to here it is in the index
  mark      BLOB NOT NULL DEFAULT x'',  -- fingerprint of its first and of its last indexed bytes
  state     BLOB NOT NULL DEFAULT x'',  -- what reading on from there has to know
  gone      INTEGER                     -- when it was first missed; its rows stay
) STRICT;
CREATE INDEX files_by_identity ON files (device, inode);

-- One row per file, for the part that has been read.
CREATE TABLE sessions (
  file      INTEGER PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE,
  id        TEXT NOT NULL,              -- of a sub-agent the session it worked for
  agent     TEXT NOT NULL,              -- the sub-agent's id; empty for a session of its own
  project   TEXT NOT NULL,              -- the folder it began in
  branch    TEXT NOT NULL,              -- the git branch it was last on
  title     TEXT NOT NULL,
  named     INTEGER NOT NULL,           -- whether somebody gave it the title; else it is a prompt
  version   TEXT NOT NULL,              -- of the client that wrote last
  model     TEXT NOT NULL,              -- the one that answered last
  started   INTEGER,
  ended     INTEGER,
  turns     INTEGER NOT NULL,
  messages  INTEGER NOT NULL,
  calls     INTEGER NOT NULL,
  failed    INTEGER NOT NULL,           -- how many calls failed
  hidden    INTEGER NOT NULL,           -- nobody asked anything, or a sub-agent's
  rewound   INTEGER NOT NULL,           -- a prompt hangs on something else than what was said last
  last_uuid TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_by_id ON sessions (id);

-- Turns, in file order.
CREATE TABLE turns (
  file      INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
  number    INTEGER NOT NULL,           -- from 1; what stands before the first prompt is turn 0
  message   INTEGER NOT NULL,           -- the prompt
  started   INTEGER,
  ended     INTEGER,
  messages  INTEGER NOT NULL,
  calls     INTEGER NOT NULL,
  failed    INTEGER NOT NULL,
  PRIMARY KEY (file, number)
) STRICT, WITHOUT ROWID;

-- Every record with searchable text or usage.
CREATE TABLE messages (
  id        INTEGER PRIMARY KEY,        -- file << 40 | offset
  length    INTEGER NOT NULL,
  turn      INTEGER NOT NULL,
  time      INTEGER,
  type      TEXT NOT NULL               -- the record's own
) STRICT;

-- Tool calls.
CREATE TABLE tool_calls (
  message   INTEGER NOT NULL,           -- where it is called
  place     INTEGER NOT NULL,           -- which block of that message
  turn      INTEGER NOT NULL,
  call      TEXT NOT NULL,              -- the id that its result names
  name      TEXT NOT NULL,
  response  TEXT NOT NULL,              -- the response that called it, as in `usage.key`
  path      TEXT NOT NULL,              -- the file it is about, if it is about one
  time      INTEGER,
  result    INTEGER,                    -- the message with its result
  ended     INTEGER,
  failed    INTEGER,
  PRIMARY KEY (message, place)
) STRICT, WITHOUT ROWID;

-- Changes to files.
CREATE TABLE file_edits (
  message   INTEGER NOT NULL,
  place     INTEGER NOT NULL,
  turn      INTEGER NOT NULL,
  path      TEXT NOT NULL,
  tool      TEXT NOT NULL,
  added     INTEGER NOT NULL,           -- lines
  removed   INTEGER NOT NULL,
  time      INTEGER,
  PRIMARY KEY (message, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_edits_by_path ON file_edits (path);

-- Tokens, one row per response and file: its lines repeat the figures, and the highest counts. Copies
-- of a response in other files (resumed, forked) have rows too; one of all rows with a key counts.
CREATE TABLE usage (
  file      INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
  key       TEXT NOT NULL,              -- message.id, else the request's id, else the record's
  message   INTEGER NOT NULL,           -- the line whose figures these are
  lines     INTEGER NOT NULL,           -- how many lines of the file had figures for it
  turn      INTEGER NOT NULL,
  time      INTEGER,                    -- of its first line
  model     TEXT NOT NULL,
  branch    TEXT NOT NULL,
  agent     TEXT NOT NULL,              -- the sub-agent that asked; empty for the session itself
  input     INTEGER NOT NULL,
  output    INTEGER NOT NULL,
  cache_5m  INTEGER NOT NULL,
  cache_1h  INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  searches  INTEGER NOT NULL,
  fast      INTEGER NOT NULL,           -- answered at the price of speed
  estimated INTEGER NOT NULL,           -- the client never wrote the final figure
  copied    INTEGER NOT NULL,           -- the record says that it comes from another session
  counts    INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (file, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_key ON usage (key);
CREATE INDEX usage_by_time ON usage (time);

-- Sums of the counted responses by local day.
CREATE TABLE days (
  day       TEXT NOT NULL,              -- 2026-11-15; empty where the time is not known
  project   TEXT NOT NULL,
  model     TEXT NOT NULL,
  agent     INTEGER NOT NULL,           -- asked by sub-agents
  fast      INTEGER NOT NULL,
  band      INTEGER NOT NULL,           -- how much was read: 1 over 100,000 tokens, 2 over 200,000
  responses INTEGER NOT NULL,
  input     INTEGER NOT NULL,
  output    INTEGER NOT NULL,
  cache_5m  INTEGER NOT NULL,
  cache_1h  INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  searches  INTEGER NOT NULL,
  estimated INTEGER NOT NULL,           -- how many of the responses
  PRIMARY KEY (day, project, model, agent, fast, band)
) STRICT, WITHOUT ROWID;

-- Links between sessions.
CREATE TABLE links (
  file      INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
  message   INTEGER NOT NULL,           -- the record that says so
  kind      TEXT NOT NULL,              -- agent, fork, resume, pr, summary, compacted
  target    TEXT NOT NULL,              -- a sub-agent's or session's id, an address, a record's id
  note      TEXT NOT NULL,              -- what it says of it; of a sub-agent which kind it is
  PRIMARY KEY (file, message, kind, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_target ON links (kind, target);

-- IDs of filter values: projects, models, tools, branches and so on.
CREATE TABLE names (
  id        INTEGER PRIMARY KEY,
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  UNIQUE (kind, name)
) STRICT;

-- Batches of a sync. Documents are committed before the rows here; a batch that is still open when a
-- sync starts was interrupted, and its documents are removed from the full-text index.
CREATE TABLE batches (
  id        INTEGER PRIMARY KEY,
  open      INTEGER NOT NULL
) STRICT;

-- Facts about the index itself.
CREATE TABLE facts (
  name      TEXT PRIMARY KEY,
  value     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
