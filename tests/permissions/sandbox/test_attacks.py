"""Programs that try to get out: each succeeds unconfined, and fails confined."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.permissions.sandbox.boxes import Box, World, as_user, folder_for, give

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason="the system has no Python")


def _succeeds_only_unconfined(box: Box, world: World, argv: list[str]) -> None:
    confined = box.ask(argv, world.policy)
    assert confined.error == ""
    assert confined.code != 0, (argv, confined.out)
    plain = box.ask(argv, world.policy, confined=False)
    assert plain.code == 0, (argv, plain.err)


READS = {
    "outside": "cat {base}/outside/secret.txt",
    "outside through a link": "cat link/secret.txt",
    "outside by dots": "cat sub/../../outside/secret.txt",
    "outside through /proc": "cat /proc/self/cwd/../outside/secret.txt",
    "list outside": "ls {base}/outside | grep secret",
    "list outside by the shell": 'for x in {base}/outside/*; do [ "$x" = "{base}/outside/*" ] && exit 1; done; exit 0',
    "denied file": "cat secret.txt | grep content",
    "denied file through a link": "cat secret-link | grep content",
    "denied file by another name": "cat sub/other-name | grep content",
    "denied file with grep": "grep -r 'content of secret' .",
    "denied folder": "ls hidden | grep inner",
    "file in a denied folder": "cat hidden/inner.txt",
    "file of a denied folder by another name": "cat sub/other-inner | grep content",
    "denied by xargs": "xargs -a secret.txt echo | grep content",
    "copy of a denied file": "cp secret.txt $TMPDIR/x; grep content $TMPDIR/x || grep content secret.txt",
    "hard link to a denied file": "ln secret.txt {base}/scratch/copy && cat {base}/scratch/copy",
    "the system's settings": "cat /etc/debian_version /etc/hostname /etc/os-release >/dev/null; ls /etc/init.d /etc/cron.d",
    "the system's data": "ls /var/lib | grep .",
    "the kernel's settings": "ls /sys/kernel | grep .",
    "other processes": "cat /proc/{sleeper}/cmdline | grep -a sleep",
    "other processes' environment": "tr '\\0' '\\n' < /proc/{sleeper}/environ | grep CANARY",
    "list of processes": "ls /proc | grep -x {sleeper}",
    "the kernel's command line": "cat /proc/cmdline",
}


@pytest.fixture
def sleeper(box: Box) -> Iterator[int]:
    process = subprocess.Popen(["/bin/sleep", "600"], env={"CANARY": "1"}, **as_user(box))
    yield process.pid
    process.kill()
    process.wait()


def test_nothing_else_is_read(box: Box, world: World, sleeper: int) -> None:
    for script in READS.values():
        filled = script.format(base=world.base, sleeper=sleeper)
        _succeeds_only_unconfined(box, world, ["bash", "-c", filled])
        shutil.rmtree(world.scratch)
        world.scratch.mkdir()
        give(world.scratch, box)


def test_an_administrator_reads_no_passwords_and_no_home(box: Box, world: World) -> None:
    if box.user:
        pytest.skip("only for an administrator")
    for script in ("cat /etc/shadow", "ls -a /root | grep .bashrc", "ls /var/log"):
        _succeeds_only_unconfined(box, world, ["bash", "-c", script])


def test_an_administrator_reads_the_projects_files_of_others(box: Box, world: World) -> None:
    if box.user:
        pytest.skip("only for an administrator")
    path = world.work / "theirs"
    path.write_text("theirs", encoding="utf-8")
    path.chmod(0o600)
    os.chown(path, 12345, 12345)
    assert box.bash("cat theirs", world.policy).out == "theirs"


WRITES = {
    "new file": "echo x > new",
    "new file outside": "echo x > {base}/outside/new",
    "change": "echo x >> open.txt",
    "change outside": "echo x >> {base}/outside/secret.txt",
    "change through a link": "echo x > link/new",
    "remove": "rm -f open.txt && ! [ -e open.txt ]",
    "rename": "mv open.txt renamed",
    "move to scratch": "mv open.txt {base}/scratch/ && ! [ -e open.txt ]",
    "folder": "mkdir new",
    "link": "ln -s open.txt new",
    "hard link": "ln open.txt new",
    "pipe": "mkfifo new",
    "mode": "chmod 777 open.txt",
    "mode outside": "chmod 777 {base}/outside/secret.txt",
    "time": "touch -d 2001-01-01 open.txt",
    "time outside": "touch -d 2001-01-01 {base}/outside/secret.txt",
    "touch": "touch open.txt",
    "truncate": "truncate -s 0 open.txt",
    "truncate with perl": "perl -e 'truncate(\"open.txt\", 0) or exit 1'",
    "temporary files": "echo x > /tmp/steno-attack-{pid} && [ -e /var/tmp ] && rm /tmp/steno-attack-{pid}",
    "shared memory": "echo x > /dev/shm/steno-attack-{pid} && rm /dev/shm/steno-attack-{pid}",
}
PYTHON_WRITES = {
    "open to truncate": "os.open('open.txt', os.O_RDONLY | os.O_TRUNC)",
    "open to truncate, without access": "os.open('open.txt', 3 | os.O_TRUNC)",
    "mode of an open file": "os.fchmod(os.open('open.txt', os.O_RDONLY), 0o777)",
    "times of an open file": "os.utime(os.open('open.txt', os.O_RDONLY), (1, 1))",
    "attribute": "os.setxattr('open.txt', 'user.x', b'x')",
    "attribute of an open file": "os.setxattr(os.open('open.txt', 0), 'user.x', b'x')",
    "flags": "fcntl.ioctl(os.open('open.txt', 0), 0x40086602, struct.pack('l', 0x80))",
    "owner": "os.chown('open.txt', os.getuid(), os.getgid())",
    "read-only file through /proc": "os.open(f\"/proc/self/fd/{os.open('open.txt', 0)}\", 1)",
}


def _state(folder: Path) -> list[object]:
    rows: list[object] = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        times = () if path.is_dir() else (status.st_mtime_ns, status.st_ctime_ns)
        text = path.read_bytes() if path.is_file() else b""
        rows.append((str(path), status.st_mode, status.st_uid, status.st_size, times, text))
    return rows


def _changes_only_unconfined(box: Box, world: World, argv: list[str]) -> None:
    before = (_state(world.work), _state(world.outside))
    confined = box.ask(argv, world.policy)
    assert confined.error == ""
    assert (_state(world.work), _state(world.outside)) == before
    assert confined.code != 0, confined.out
    plain = box.ask(argv, world.policy, confined=False, env={"PATH": "/usr/bin:/bin"})
    assert plain.code == 0, plain.err


def test_nothing_is_written(box: Box) -> None:
    for attack, script in WRITES.items():
        # With namespaces, /tmp is the scratch folder.
        if attack != "temporary files" or box.landlock_alone:
            for base in folder_for():
                filled = script.format(base=base, pid=os.getpid())
                _changes_only_unconfined(box, World(base, box), ["bash", "-c", filled])


@needs_python
def test_nothing_is_written_by_system_calls(box: Box) -> None:
    for code in PYTHON_WRITES.values():
        for base in folder_for():
            argv = [PYTHON, "-c", f"import os, fcntl, struct; {code}"]
            _changes_only_unconfined(box, World(base, box), argv)


def test_scratch_is_written_and_is_the_folder_for_temporary_files(box: Box, world: World) -> None:
    script = (
        'echo one > "$TMPDIR/a" && mkdir "$TMPDIR/d" && touch "$TMPDIR/b" && mv "$TMPDIR/a"'
        ' "$TMPDIR/d/c" && cat "$TMPDIR/d/c" && mktemp >/dev/null && sort <<< "two" && rm -r "$TMPDIR/d"'
    )
    done = box.bash(script, world.policy)
    assert (done.code, done.out) == (0, "one\ntwo\n"), done.err
    assert (world.scratch / "b").exists()


CONNECTIONS = {
    "tcp": "s = socket.socket(); s.connect(('127.0.0.1', {tcp}))",
    "udp": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', {udp}))",
    "ipv6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "unix": "s = socket.socket(socket.AF_UNIX); s.connect('{base}/socket')",
    "unix datagram": "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', '{base}/datagrams')",
    "unix datagram from a pair": "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', '{base}/datagrams')",
    "unix datagram, connected again": "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.connect('{base}/datagrams')",
    "abstract": "s = socket.socket(socket.AF_UNIX); s.connect('\\0steno-{pid}')",
    "listening": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
    "unix packets": "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
}


@needs_python
def test_there_is_no_network(box: Box, world: World) -> None:
    with ExitStack() as stack:
        tcp, udp, path, datagrams, abstract = (
            stack.enter_context(socket.socket(*kind))
            for kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        path.bind(str(world.work / "socket"))
        datagrams.bind(str(world.work / "datagrams"))
        abstract.bind(f"\0steno-{os.getpid()}")
        for each in (tcp, path, abstract):
            each.listen()
        for name in ("socket", "datagrams"):
            (world.work / name).chmod(0o777)
        names = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        for attack in CONNECTIONS.values():
            code = attack.format(base=world.work, pid=os.getpid(), **names)
            _succeeds_only_unconfined(box, world, [PYTHON, "-c", f"import socket; {code}"])


def test_bash_connects_to_nothing(box: Box, world: World) -> None:
    with socket.socket() as served:
        served.bind(("127.0.0.1", 0))
        served.listen()
        port = served.getsockname()[1]
        _succeeds_only_unconfined(box, world, ["bash", "-c", f"exec 5<>/dev/tcp/127.0.0.1/{port}"])


PROCESSES = {
    "signal": "os.kill({sleeper}, 0)",
    "signal a thread": "assert libc.syscall({tgkill}, {sleeper}, {sleeper}, 0) == 0",
    "signal by descriptor": "signal.pidfd_send_signal(os.pidfd_open({sleeper}), 0)",
    "signal by a pipe": (
        "r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, {sleeper}); fcntl.fcntl(r, 10, 17);"
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')"
    ),
    "limits": "resource.prlimit({sleeper}, resource.RLIMIT_CORE)",
    "memory": "open('/proc/{sleeper}/mem', 'rb')",
    "working folder": "os.readlink('/proc/{sleeper}/cwd')",
    "files": "os.listdir('/proc/{sleeper}/fd')",
    "root": "os.listdir('/proc/{sleeper}/root/')",
    "trace": "assert libc.ptrace(16, {sleeper}, 0, 0) == 0",
    "affinity": "os.sched_setaffinity({sleeper}, os.sched_getaffinity(0))",
}


@needs_python
def test_other_processes_are_out_of_reach(box: Box, world: World, sleeper: int) -> None:
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    imports = "import ctypes, fcntl, os, resource, signal; libc = ctypes.CDLL(None)"
    for name, attack in PROCESSES.items():
        code = attack.format(sleeper=sleeper, tgkill=tgkill)
        argv = [PYTHON, "-c", f"{imports}\n{code}"]
        if name == "trace" and box.user and _tracing_is_limited():
            assert box.ask(argv, world.policy).code
        else:
            _succeeds_only_unconfined(box, world, argv)
    assert box.bash(f"kill -9 {sleeper}", world.policy).code != 0
    if box.landlock_alone:
        # Its supervisor would not end what the command started.
        assert box.bash("kill -0 $PPID", world.policy).code != 0
    assert Path(f"/proc/{sleeper}/environ").read_bytes() != b""


def _tracing_is_limited() -> bool:
    """Whether this kernel lets nobody trace processes that are not their own children."""
    setting = Path("/proc/sys/kernel/yama/ptrace_scope")
    return setting.exists() and setting.read_text(encoding="ascii").strip() != "0"


SYSCALLS = {
    "unshare": (272, 97, (0,)),
    "setns": (308, 268, (-1, 0)),
    "clone of a user": (56, 220, (0x10000000, 0, 0, 0, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "bpf": (321, 280, (9999, 0, 0)),
    "keyctl": (250, 219, (9999, 0, 0, 0, 0)),
    "io_uring": (425, 425, (0, 0)),
    "perf": (298, 241, (0, 0, 0, 0, 0)),
    "userfaultfd": (323, 282, (0xFFFF,)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "clone3": (435, 435, (0, 0)),
    "ptrace": (101, 117, (9999, 1, 0, 0)),
    "process_vm_readv": (310, 270, (-1, 0, 0, 0, 0, 0)),
    "shmget": (29, 194, (0, 0, 0)),
    "a call of the future": (470, 470, (0, 0, 0, 0)),
    "fsopen": (430, 430, (0, 0)),
}


@needs_python
def test_kernel_interfaces_are_closed(box: Box, world: World) -> None:
    column = ("x86_64", "aarch64").index(os.uname().machine)
    calls = {name: (row[column], *row[2]) for name, row in SYSCALLS.items()}
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, call in {calls!r}.items():
    ctypes.set_errno(0)
    result = libc.syscall(*map(ctypes.c_long, call))
    if result == 0 and name.startswith("clone"): os._exit(0)
    print(name, ctypes.get_errno(), sep="=")
"""
    done = box.ask([PYTHON, "-c", code], world.policy)
    numbers = dict(line.split("=") for line in done.out.splitlines())
    assert set(numbers) == set(SYSCALLS), done.err
    assert set(numbers.values()) <= {"1", "38"}
    if not box.user:
        plain = box.ask([PYTHON, "-c", code], world.policy, confined=False)
        open_calls = dict(line.split("=") for line in plain.out.splitlines())
        same = {name for name in numbers if numbers[name] == open_calls.get(name)}
        assert same <= {"a call of the future", "keyctl", "userfaultfd", "perf"}


@needs_python
def test_nothing_is_gained_and_nothing_is_inherited(box: Box, world: World) -> None:
    code = """
import ctypes, os, json
libc = ctypes.CDLL(None)
opened = []
for number in range(200):
    try: os.fstat(number); opened.append(number)
    except OSError: pass
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, data)
import resource
print(json.dumps({
    "nnp": libc.prctl(39, 0, 0, 0, 0), "fds": opened, "env": dict(os.environ),
    "caps": data[1] | data[4] << 32, "core": resource.getrlimit(resource.RLIMIT_CORE),
    "leader": os.getsid(0) == os.getpgrp() == os.getpid(), "stdin": os.read(0, 1).hex(),
    "passed": os.read(77, 99).decode(),
}))
"""
    env = {"PATH": "/usr/bin:/bin", "ONE": "two"}
    done = box.ask([PYTHON, "-I", "-c", code], world.policy, env=env, pass_fds=[77])
    found = json.loads(done.out)
    assert found["nnp"] == 1
    assert found["fds"] == [0, 1, 2, 77]
    assert found["passed"] == "passed"
    assert {k: v for k, v in found["env"].items() if k != "LC_CTYPE"} == {**env, "TMPDIR": str(world.scratch)}
    assert found["caps"] == (0 if box.user else 0b110)
    assert found["core"] == [0, 0]
    assert found["leader"]
    assert found["stdin"] == ""


def test_a_program_with_a_set_user_bit_gains_nothing(box: Box, world: World) -> None:
    if os.geteuid():
        pytest.skip("only an administrator can make such a program")
    program = world.work / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 12345, 12345)
    program.chmod(0o4755)
    assert box.bash("./id -u", world.policy, confined=False).out == "12345\n"
    assert box.bash("./id -u", world.policy).out == f"{box.user}\n"


def test_ordinary_commands_work(box: Box, world: World) -> None:
    policy = world.plain_policy()
    done = box.bash(
        "set -e; ls; cat open.txt; grep -r content . | wc -l; diff <(echo a) <(echo a); cat < /dev/null;"
        "head -c 4 /dev/urandom | wc -c; ls -l open.txt | wc -l; find . -name '*.txt' | sort | head -2;"
        "echo x > /dev/null; cat <<< here; sh -c 'exit 0'; perl -e 'print 1+1, qq(\\n)'; whoami",
        policy,
    )
    assert done.code == 0, done.err
    assert "content of open.txt" in done.out
    assert done.err == ""
    assert done.out.splitlines()[-1] == ("nobody" if box.user else "root")


def test_git_reads_a_repository(box: Box, world: World) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(world.scratch), "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
    for argv in (
        ["git", "init", "-q"],
        ["git", "add", "open.txt"],
        ["git", "-c", "user.name=a", "-c", "user.email=b@c", "commit", "-qm", "first"],
    ):
        subprocess.run(argv, cwd=world.work, env=env, check=True, **as_user(box))
    (world.work / "open.txt").write_text("changed\n", encoding="utf-8")
    done = box.bash(
        "git log --format=%s; git status --short open.txt; git diff --stat | tail -1", world.plain_policy(), env=env
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:2] == ["first", " M open.txt"]


def test_exit_codes_and_signals_are_reported(box: Box, world: World) -> None:
    assert box.bash("exit 7", world.policy).code == 7
    assert box.bash("exec perl -e 'sleep 1 while not $x++; exit 3'", world.policy).code == 3
    assert "No such file" in box.ask(["no-such-program"], world.policy).error
    if box.mechanism not in {"landlock-4", "landlock-1"}:
        assert box.bash("kill -TERM $$; sleep 60", world.policy).code == -15
    assert box.bash("kill -9 0; sleep 60", world.policy).code == -9
