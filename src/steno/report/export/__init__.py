"""Sessions for others: in a format that they can read, without what must not leave the machine.

opened      a session as it leaves: masked first, read afterwards
levels      how much of a session is told
telling     a session as plain pieces: prompts, steps, answers
markdown    to read, with headings and fences
plain       to read, as plain text
lossless    every record, with where it stood
messages    input that the API accepts
steps       steps.jsonl and metadata.json
parquet     the tables of the index
names       what the files are called
put         files, written whole or not at all

The HTML is drawn in `steno.web.export`, from the templates of the explorer.
"""
