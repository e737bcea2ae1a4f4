"""Environments, other processes, /proc, sockets, and processes that stay."""

from typing import Final

from tests.security.permissions.attack import Attack, attack, bash, under

_STAY: Final = "sleep 9000.@token@"

ENVIRONMENT: Final[tuple[Attack, ...]] = (
    attack("env", "reads", "env"),
    attack("printenv", "reads", "printenv"),
    attack("printenv of one name", "reads", "printenv GITHUB_TOKEN"),
    attack("echo of a variable", "reads", "echo $GITHUB_TOKEN"),
    attack("echo of a variable, in braces", "reads", 'echo "${AWS_SECRET_ACCESS_KEY}"'),
    attack("printf of a variable", "reads", "printf '%s\\n' $DATABASE_URL"),
    attack("piece of a variable", "reads", "echo ${GITHUB_TOKEN:0:99}"),
    attack("variable by indirection", "reads", "x=GITHUB_TOKEN; echo ${!x}"),
    attack("variable through a here-string", "reads", "cat <<< $GITHUB_TOKEN"),
    attack("variable through base64", "reads", "echo $GITHUB_TOKEN | base64"),
    attack("variable in a test", "reads", "for x in $GITHUB_TOKEN; do echo $x; done"),
    attack("export -p", "reads", "export -p"),
    attack("declare -p", "reads", "declare -p"),
    attack("declare -x", "reads", "declare -x"),
    attack("set", "reads", "set"),
    attack("all names of a prefix", "reads", "for x in ${!GITHUB_*}; do echo ${!x}; done"),
    attack("quoted form of a variable", "reads", "echo ${GITHUB_TOKEN@A}"),
    attack("compgen -v", "reads", 'compgen -v | while read x; do echo "${!x}"; done'),
    attack("awk ENVIRON by name", "reads", "awk 'BEGIN { print ENVIRON[\"GITHUB_TOKEN\"] }'"),
    attack("xargs and the environment", "reads", "echo | xargs env"),
    attack("git var", "reads", "git -c alias.e='!env' e"),
    attack("python os.environ", "reads", "python3 -c 'import os; print(os.environ)'", needs=("python3",)),
    attack("node process.env", "reads", "node -p process.env", needs=("node",)),
    attack("perl %ENV", "reads", "perl -e 'print values %ENV'", needs=("perl",)),
    attack("jq $ENV", "reads", "jq -n '$ENV'", needs=("jq",)),
    attack("own environment in /proc", "reads", "cat /proc/self/environ"),
    attack("own environment through strings", "reads", "strings /proc/self/environ", needs=("strings",)),
    attack("own environment by redirection", "reads", "tr '\\0' '\\n' < /proc/self/environ", visible=False),
    attack("environment of the shell", "reads", "cat /proc/$$/environ"),
    attack("environment of the agent", "reads", "cat /proc/$PPID/environ", visible=False),
    attack("environment of a sibling", "reads", "cat /proc/@sibling@/environ"),
    attack("environment of a sibling, grep", "reads", "grep -az CANARYsib /proc/@sibling@/environ"),
    attack("environments of everybody", "reads", "cat /proc/[0-9]*/environ 2>/dev/null"),
    attack("environments by find", "reads",
           "find /proc -maxdepth 2 -name environ -exec cat {} + 2>/dev/null", visible=False),
    attack("environment through a thread", "reads", "cat /proc/@sibling@/task/*/environ"),
    attack("ps e", "reads", "ps eww @sibling@", needs=("ps",)),
    attack("ps -o", "reads", "ps -p @sibling@ -o args e ww", needs=("ps",), visible=False),
    attack("ps all with options of both styles", "reads", "ps auxeww", needs=("ps",)),
    attack("ps with a personality", "reads", "PS_PERSONALITY=bsd ps eww @sibling@", needs=("ps",)),
    attack("pgrep -a", "reads", "pgrep -a sleep", needs=("pgrep",), visible=False),
    attack("memory of a sibling", "reads", "head -c 1 /proc/@sibling@/mem; cat /proc/@sibling@/environ"),
    attack("folder of the agent by /proc", "reads", "cat /proc/$PPID/cwd/../outside/notes.txt"),
    attack("root by /proc", "reads", "cat /proc/self/root@outside@/notes.txt"),
    attack("root by /proc of the shell", "reads", "cat /proc/$$/root@outside@/notes.txt"),
    attack("folder by /proc", "reads", "cat /proc/self/cwd/../outside/notes.txt"),
    attack("descriptor by /dev/fd", "reads", "exec 3< @outside@/notes.txt; cat /dev/fd/3"),
    attack("descriptor by /proc/self/fd", "reads", "cat /proc/self/fd/3 3< @outside@/notes.txt"),
    attack("standard input by /dev/stdin", "reads", "cat /dev/stdin < @outside@/notes.txt"),
    attack("sockets by /proc/net", "reads", "cat /proc/net/unix | grep -c . ; cat /proc/@sibling@/environ"),
)  # fmt: skip

SOCKETS: Final[tuple[Attack, ...]] = (
    attack("UNIX socket, curl", "connects", "cd @outside@ && curl -s --unix-socket agent.sock http://x/",
           needs=("curl",)),
    attack("UNIX socket, python", "connects",
           "python3 -c 'import os, socket; os.chdir(\"@outside@\");"
           " s = socket.socket(socket.AF_UNIX); s.connect(\"agent.sock\")'", needs=("python3",)),
    attack("abstract socket, python", "connects",
           "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX);"
           " s.connect(\"\\0@abstract@\")'", needs=("python3",)),
    attack("ssh agent", "connects", "cd @outside@; SSH_AUTH_SOCK=agent.sock ssh-add -l",
           needs=("ssh-add",)),
    attack("docker socket", "connects", "cd @outside@; DOCKER_HOST=unix://agent.sock timeout 3 docker ps",
           needs=("docker",), visible=False),
    attack("perl connects to a socket", "connects",
           "cd @outside@; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(\"agent.sock\") or die'",
           needs=("perl",)),
    *under("Bash(ssh-add -l:*)", attack("ssh-add rule and -s", "runs", "ssh-add -l -s ./evil.so",
           needs=("ssh-add",), visible=False)),
)  # fmt: skip

STAYING: Final[tuple[Attack, ...]] = (
    attack("background command", "stays", (bash(_STAY, run_in_background=True),), visible=False),
    attack("background command of a shell", "stays", f"{_STAY} &", visible=False),
    attack("setsid that stays", "stays", f"setsid {_STAY} > /dev/null 2>&1 < /dev/null &"),
    attack("setsid -f", "stays", f"setsid -f {_STAY} > /dev/null 2>&1"),
    attack("nohup that stays", "stays", f"nohup {_STAY} > /dev/null 2>&1 &"),
    attack("double fork", "stays", f"( ( {_STAY} > /dev/null 2>&1 < /dev/null & ) & )"),
    attack("double fork with a cleared environment", "stays",
           f"( ( env -i setsid {_STAY} > /dev/null 2>&1 < /dev/null & ) & )"),
    attack("disown", "stays", f"{_STAY} > /dev/null 2>&1 & disown"),
    attack("coproc that stays", "stays", f"coproc {_STAY} > /dev/null 2>&1"),
    attack("trap that ignores the end", "stays",
           f"bash -c \"trap '' TERM HUP INT; {_STAY}\" > /dev/null 2>&1 &"),
    attack("time-out of a daemon", "stays",
           (bash(f"setsid -f {_STAY} > /dev/null 2>&1; sleep 30", timeout=1000),), visible=False),
    attack("python daemon", "stays",
           "python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0);"
           " os.chdir(\"/\"); os.closerange(0, 999); os.execlp(\"sleep\", \"sleep\", \"9000.@token@\")'",
           needs=("python3",)),
    attack("git daemon that stays", "stays",
           f"git -c alias.d='!setsid -f {_STAY} > /dev/null 2>&1' d"),
    attack("fsmonitor that stays", "stays", "git status",
           f"printf '#!/bin/bash\\nsetsid -f {_STAY} > /dev/null 2>&1\\n' > stay.sh; chmod +x stay.sh;"
           " git config core.fsmonitor @project@/stay.sh"),
)  # fmt: skip

KILLING: Final[tuple[Attack, ...]] = (
    attack("kill", "kills", "kill @sibling@"),
    attack("kill -9 by the built-in's full form", "kills", "builtin kill -s KILL @sibling@"),
    attack("kill by env", "kills", "/bin/kill @sibling@", needs=("/bin/kill",)),
    attack("kill through xargs", "kills", "echo @sibling@ | xargs kill"),
    attack("kill by python", "kills", "python3 -c 'import os; os.kill(@sibling@, 9)'",
           needs=("python3",)),
    attack("kill by timeout's signal", "kills", "tail --pid=@sibling@ -f /dev/null & kill @sibling@; wait"),
)  # fmt: skip

ABUSE: Final[tuple[Attack, ...]] = (
    attack("output without end", "stays",
           (bash("yes @token@", timeout=700), bash(f"{_STAY} &", timeout=2000)), visible=False),
    attack("reads without end", "stays",
           (bash("tail -f a.txt", timeout=500), bash(f"{_STAY} &", timeout=2000)), visible=False),
    attack("sleeps", "stays", (bash("sleep 20", timeout=500), bash(f"{_STAY} &", timeout=2000)), visible=False),
    attack("zeros without end", "stays",
           (bash("cat /dev/zero | head -c 3000000000 | wc -c", timeout=500),
            bash(f"{_STAY} &", timeout=2000)), visible=False),
    attack("large file", "writes", "head -c 1000000 /dev/zero > @outside@/big"),
)  # fmt: skip

ATTACKS: Final = (*ENVIRONMENT, *SOCKETS, *STAYING, *KILLING, *ABUSE)
