"""Sessions made to order: the builders of test fixtures, and the demo made with them.

* `builder.session()` is the door to the fluent builder.
* `generations` says what each version of the real client writes, and how; `shapes` has messages
  and usage in a generation's own field order, `outcomes` what its tools give back.
* `core`, `sides`, `systems`, `attach`, `requests`, `turns`, `asides`, `agents`, `damage` and
  `output` are the builder's layers, from the ground up.
* `dialects` has the two published dialects that no real client writes.
* `stories` are the demo's sessions; `write.write_demo()` puts them on disk.
"""
