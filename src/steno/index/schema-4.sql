-- Columns for the list rule of a published description, and for the file column of lists.

-- User and assistant records outside sub-agents, each one line in `steps.jsonl`. Unlike `steps`,
-- which counts tool calls and similar.
ALTER TABLE sessions ADD COLUMN step_records INTEGER NOT NULL DEFAULT 0;
-- Whether one of them is an assistant message with text and without a tool call.
ALTER TABLE sessions ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
-- The dialect of the file: `claude`, or that of a published description.
ALTER TABLE sessions ADD COLUMN dialect TEXT NOT NULL DEFAULT 'claude';
DROP INDEX sessions_listed;
CREATE INDEX sessions_listed ON sessions (
  listed, project, model, branch, ended, grown, active, last, ending, gone, size, failed,
  compactions, rewound, step_records, answered
);
