"""Configuration: options, settings, models, skills and slash commands, project files."""
