"""The agent: loop, conversation and records, tool execution, sub-agents, headless mode.

loop.py               sends requests and runs tool calls until the model returns an answer
agent_session.py      builds an agent from options and settings; opens and closes it
conversation.py       the messages in memory; recorder.py: the records of the session file
tool_executor.py      permissions, hooks and execution of tool calls
hooks/  context/  checkpoints/  config/  mcp/
"""
