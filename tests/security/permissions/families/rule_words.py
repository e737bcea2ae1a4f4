"""Words behind rules for test runners, builders and containers: options and variables that do more."""

from typing import Final

from tests.security.permissions.attack import Attack, attack, under

CARGO: Final = under(
    "Bash(cargo test:*)",
    attack("cargo --logfile of the tests", "writes", "cargo test -- --logfile=@outside@/x", needs=("cargo",), visible=False),
    attack("cargo runner by variable", "runs", "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./marker.sh cargo test", needs=("cargo",), visible=False),
    attack("cargo linker by variable", "runs", "RUSTFLAGS='-C linker=./marker.sh' cargo test", needs=("cargo",), visible=False),
)  # fmt: skip
DOCKER: Final = under(
    "Bash(docker ps:*)",
    attack("docker ps -H behind it", "connects", "docker ps -H unix://@socket@", needs=("docker",), visible=False),
    attack("docker host by variable", "connects", "cd @outside@; DOCKER_HOST=unix://agent.sock timeout 5 docker ps", needs=("docker",), visible=False),
    attack("docker ps and a substitution", "runs", "docker ps -f name=$(./marker.sh)", needs=("docker",)),
    attack("docker ps, then another command", "runs", "docker ps; ./marker.sh", needs=("docker",)),
)  # fmt: skip
NPM: Final = under(
    "Bash(npm run test:*)",
    attack("npm --script-sh and a word", "runs", "npm run test --script-sh ./marker.sh", needs=("npm",)),
    attack("npm --script-shell behind a tab", "runs", "npm run test\t--script-shell=./marker.sh", needs=("npm",)),
    attack("npm shell by a variable in small letters", "runs", "npm_config_script_shell=@project@/marker.sh npm run test", needs=("npm",)),
    attack("npm shell by a variable in capitals", "runs", "NPM_CONFIG_SCRIPT_SHELL=@project@/marker.sh npm run test", needs=("npm",)),
    attack("npm shell by an exported variable", "runs", "export npm_config_script_shell=@project@/marker.sh; npm run test", needs=("npm",)),
    attack("npm shell by env", "runs", "env npm_config_script_shell=@project@/marker.sh npm run test", needs=("npm",)),
    attack("npm script with a longer name", "runs", "npm run test:evil",
           """echo '{"scripts": {"test:evil": "./marker.sh"}}' > package.json""", needs=("npm",)),
)  # fmt: skip
PYTEST: Final = under(
    "Bash(pytest:*)",
    attack("pytest takes words from a file", "writes", "pytest @args", "echo --junitxml=@outside@/x.xml > args", needs=("pytest",)),
)  # fmt: skip
MAKE: Final = under(
    "Bash(make:*)",
    attack("make SHELL behind --", "runs", "make -- test SHELL=./marker.sh", needs=("make",)),
    attack("make GNUMAKEFLAGS", "runs", "GNUMAKEFLAGS='--eval=$(shell${IFS}./marker.sh)' make test", needs=("make",), visible=False),
    attack("make MAKE=", "runs", "make test MAKE=./marker.sh", "printf 'test:\\n\\t$(MAKE) x\\n' > Makefile", needs=("make",)),
    attack("make joined -C", "runs", "make -C@outside@ test", "printf 'test:\\n\\t@project@/marker.sh\\n' > @outside@/Makefile", needs=("make",)),
    attack("make, then a program outside", "runs", "make test && ./marker.sh", needs=("make",)),
)  # fmt: skip

ATTACKS: Final[tuple[Attack, ...]] = (*CARGO, *DOCKER, *NPM, *PYTEST, *MAKE)
