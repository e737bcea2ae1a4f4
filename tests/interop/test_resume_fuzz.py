"""Fresh random sessions, resumed by the real client, against what is predicted.

Run by `make interop`; the generator of the sessions lies beside the shared corpus.
"""

import os
from pathlib import Path

import pytest
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import fresh, predicted, seed, sent

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

VERSION = "2.1.325"
CASES = int(os.environ.get("STENO_INTEROP_CASES", "4" if QUICK else "300"))
SEED = seed()


def test_fresh_random_sessions_are_predicted(shared: Path, tmp_path: Path) -> None:
    made = fresh(shared, tmp_path, SEED, CASES, sound=0.35)
    files = {name: each.data for name, each in made.items()}
    answers = resume_all(VERSION, [Job(data) for data in files.values()])
    wrong = [
        name
        for (name, data), answer in zip(files.items(), answers, strict=True)
        if sent(answer) != predicted(data, VERSION)
    ]
    assert len(answers) == CASES
    assert len(wrong) <= CASES // 100, wrong
