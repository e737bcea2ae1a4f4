-- What the list rule of a published description needs, and what a list says about the file.

-- User and assistant records outside of sub-agents: one line each in `steps.jsonl`. Not `steps`,
-- which are tool calls and the like.
ALTER TABLE sessions ADD COLUMN step_records INTEGER NOT NULL DEFAULT 0;
-- Whether one of them is an assistant message with text and without a tool call.
ALTER TABLE sessions ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
-- The dialect the file is written in: `claude`, or that of a published description.
ALTER TABLE sessions ADD COLUMN dialect TEXT NOT NULL DEFAULT 'claude';
DROP INDEX sessions_listed;
CREATE INDEX sessions_listed ON sessions (
  listed, project, model, branch, ended, grown, active, last, ending, gone, size, failed,
  compactions, rewound, step_records, answered
);
