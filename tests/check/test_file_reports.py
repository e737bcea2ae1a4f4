"""Files on disk, checked: sub-agents with their session, trouble as problems, policies."""

from pathlib import Path

import pytest
from tests.builders import Session, session, tool
from tests.conftest import WriteConfig

from steno.check.checkup import RULES, Policy, make_policy
from steno.check.file_reports import FileReport, check_file, check_files, find_all_files, total_bytes, with_agents
from steno.errors import BadRequest, Unreadable
from steno.store.discovery import Problem, discover_file


def talk(seed: str = "one") -> Session:
    return session(seed=seed).turn("One.", "First.").turn("Two.", "Second.")


def delegating(seed: str = "delegating") -> Session:
    made = session(seed=seed).user("Look.")
    made.assistant(tool("Agent", description="look", prompt="Look there."))
    return made.agent(lambda agent: agent.assistant("Seen.")).assistant("It was seen.")


def reports_of(folder: Path, problems: list[Problem] | None = None, policy: Policy | None = None) -> list[FileReport]:
    problems = [] if problems is None else problems
    files = find_all_files(str(folder), problems)
    return list(check_files(files, problems=problems, policy=policy))


def ids(report: FileReport) -> set[str]:
    return {found.id for found in report.findings}


def test_a_sound_session_has_no_finding_and_every_client_resumes_it(config: WriteConfig) -> None:
    (report,) = reports_of(config(talk()))
    assert report.sound
    assert report.worst is None
    assert {verdict.outcome for verdict in report.verdicts} == {"fully"}
    assert report.lost == 0


def test_damage_is_found_and_what_it_costs_is_said(config: WriteConfig) -> None:
    (report,) = reports_of(config(talk().torn_tail()))
    assert "line.torn" in ids(report)
    assert report.worst == "error"
    assert report.number("error") >= 1
    assert not report.sound


def test_sub_agents_are_checked_with_their_session(config: WriteConfig) -> None:
    folder = config(delegating())
    (agent,) = folder.rglob("agent-*.jsonl")
    agent.write_bytes(agent.read_bytes() + b'{"torn')
    (report,) = reports_of(folder)
    assert [each.path for each in report.agents] == [str(agent)]
    assert "line.torn" in ids(report.agents[0])
    assert not report.sound
    assert "sidechain.missing-file" not in ids(report)
    assert report.agents[0].verdicts == ()


def test_a_sub_agent_that_is_gone_is_missed(config: WriteConfig) -> None:
    folder = config(delegating())
    (agent,) = folder.rglob("agent-*.jsonl")
    agent.unlink()
    (report,) = reports_of(folder)
    assert "sidechain.missing-file" in ids(report)


def test_a_copy_elsewhere_is_not_blamed_for_sub_agents_it_left_behind(config: WriteConfig, tmp_path: Path) -> None:
    (path,) = (p for p in config(delegating()).rglob("*.jsonl") if "agent-" not in p.name)
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    report = check_file(with_agents(discover_file(str(copy)), []), problems=[])
    assert "sidechain.missing-file" not in ids(report)


def test_a_sub_agent_without_a_session_is_checked_alone(config: WriteConfig) -> None:
    folder = config(delegating())
    (path,) = (p for p in folder.rglob("*.jsonl") if "agent-" not in p.name)
    path.unlink()
    (report,) = reports_of(folder)
    assert report.role == "agent"
    assert report.verdicts == ()


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_checked(config: WriteConfig) -> None:
    folder = config(talk("one"), talk("two"))
    problems: list[Problem] = []
    files = find_all_files(str(folder), problems)
    Path(files[0].path).unlink()
    reports = list(check_files(files, problems=problems))
    assert [report.path for report in reports] == [files[1].path]
    assert [(each.kind, each.path) for each in problems] == [("missing", files[0].path)]


def test_one_file_that_cannot_be_read_is_said_to_the_caller(config: WriteConfig) -> None:
    (found,) = find_all_files(str(config(talk())), [])
    Path(found.path).unlink()
    with pytest.raises(Unreadable):
        check_file(found, problems=[])


def test_a_sub_agent_that_cannot_be_read_spoils_nothing(config: WriteConfig) -> None:
    folder = config(delegating())
    problems: list[Problem] = []
    files = find_all_files(str(folder), problems)
    Path(files[0].agents[0].path).unlink()
    (report,) = check_files(files, problems=problems)
    assert report.agents == ()
    assert [each.path for each in problems] == [files[0].agents[0].path]


def test_every_byte_is_reported_once(config: WriteConfig) -> None:
    files = find_all_files(str(config(delegating(), talk())), [])
    seen: list[int] = []
    list(check_files(files, problems=[], done=seen.append))
    assert sum(seen) == sum(map(total_bytes, files))
    assert sum(seen) == sum(f.size + sum(a.size for a in f.agents) for f in files)


def test_no_file_stays_open(config: WriteConfig) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files cannot be counted here")
    folder = config(*(talk(str(seed)) for seed in range(20)))
    before = len(list(Path("/proc/self/fd").iterdir()))
    reports = reports_of(folder)
    assert len(reports) == 20
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_only_troubled_sessions_are_judged_when_that_is_enough(config: WriteConfig) -> None:
    files = find_all_files(str(config(talk("one"), talk("two").torn_tail())), [])
    reports = list(check_files(files, problems=[], judge="troubled"))
    assert {bool(report.verdicts): report.sound for report in reports} == {True: False, False: True}


# Policies


def test_a_silent_rule_says_nothing_and_is_not_counted(config: WriteConfig) -> None:
    folder = config(talk().torn_tail())
    (loud,) = reports_of(folder)
    (quiet,) = reports_of(folder, policy=make_policy(["line.torn"]))
    assert ids(quiet) == ids(loud) - {"line.torn"}
    assert not any(rule == "line.torn" for rule, _ in quiet.counts)


def test_a_family_can_be_silent(config: WriteConfig) -> None:
    (quiet,) = reports_of(config(talk().torn_tail()), policy=make_policy(["line.*"]))
    assert not [each for each in ids(quiet) if each.startswith("line.")]


def test_a_rule_can_weigh_something_else(config: WriteConfig) -> None:
    policy = make_policy(severity={"line.torn": "info"})
    (report,) = reports_of(config(talk().torn_tail()), policy=policy)
    assert {f.severity for f in report.findings if f.id == "line.torn"} == {"info"}
    assert report.counts["line.torn", "info"] == 1


def test_a_rule_counts_more_than_its_family() -> None:
    policy = make_policy(severity={"line.torn": "info", "line.*": "warning"})
    assert policy.severity_of("line.torn", "error") == "info"
    assert policy.severity_of("line.glued", "error") == "warning"


def test_what_does_no_harm_where_it_stands_stays_mild() -> None:
    assert RULES["line.torn"].severity == "error"
    policy = make_policy(severity={"line.torn": "warning"})
    assert policy.severity_of("line.torn", "info") == "info"


@pytest.mark.parametrize("name", ["line.tron", "torn", "lines.*", "*", "", "line."])
def test_a_rule_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="unknown rule"):
        make_policy([name])
    with pytest.raises(BadRequest, match="unknown rule"):
        make_policy(severity={name: "info"})


def test_near_names_are_offered() -> None:
    with pytest.raises(BadRequest) as refused:
        make_policy(["line.tron"])
    assert "line.torn" in refused.value.hint


def test_a_severity_that_is_none_is_refused() -> None:
    with pytest.raises(BadRequest, match="fatal") as refused:
        make_policy(severity={"line.torn": "fatal"})
    assert "error, warning, info" in refused.value.hint


def test_a_session_is_judged_alone_as_it_is_beside_others(config: WriteConfig) -> None:
    made = session(seed="odd").user("Q").assistant("A")
    folder = config(made)
    (path,) = folder.rglob("*.jsonl")
    block = b'{"type":"text","text":"A"}'
    assert block in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(block, b'{"type":"hologram"}'))
    (alone,) = reports_of(folder)
    assert alone.newest is not None
    assert alone.newest.rejected.startswith("message.unknown-block")
    beside = {each.path: each for each in reports_of(config(talk()))}
    assert len(beside) == 2
    assert beside[alone.path].verdicts == alone.verdicts
