"""The agent: loop, conversation and records, tool execution, sub-agents, headless mode.

loop.py               asks the model, runs tool calls, until there is an answer
agent_session.py      builds an agent from options and settings; opens and closes it
conversation.py       the messages in memory; recorder.py: the same as records in a file
tool_executor.py      permissions, hooks and execution of tool calls
hooks/  context/  checkpoints/  config/  mcp/
"""
