"""Scripts that write or read other files than those they were judged by."""

from typing import Final

from tests.security.permissions.attack import EDITS, Attack, attack, denied, under

_LINKS: Final = (
    "mkdir t; ln -s @outside@/notes.txt t/made; ln -s @outside@ t/away; tar cf x.tar -C t made away; rm -r t"
)
_TEXTCONV: Final = """
git init -q sub; cd sub; echo '* diff=x' > .gitattributes; echo 1 > f; git add .; git commit -qm one
echo 2 > f; printf '#!/bin/bash\\necho evil > @project@/.envrc\\n' > x.sh; chmod +x x.sh
git config diff.x.textconv @project@/sub/x.sh
"""

# A redirection lets a script write in the working folder; what else in it can write?
BESIDE: Final[tuple[Attack, ...]] = (
    attack("xxd has a second file", "writes", "xxd a.txt .envrc > out.txt", needs=("xxd",), visible=False),
    attack("xxd has a second file in a nested repository", "writes",
           "xxd -p a.txt sub/.git/config > out.txt", "git init -q sub", needs=("xxd",), visible=False),
    attack("xxd -r has a second file", "writes", "xxd -r -p hex .npmrc > out.txt",
           "xxd -p a.txt hex", needs=("xxd",), visible=False),
    attack("uniq takes a second file from a pattern", "writes", "uniq in* > dir/out.txt",
           "cp a.txt in1; ln -s .envrc in2"),
    attack("awk writes into a nested repository", "writes",
           "awk 'BEGIN { print \"x\" > \"sub/.git/config\" }' > out.txt", "git init -q sub", visible=False),
    attack("awk makes a file that is protected", "writes",
           "awk 'BEGIN { print \"x\" > \".envrc\" }' > out.txt"),
    attack("awk makes a file by its variables", "writes",
           "awk -v f=.envrc 'BEGIN { print \"x\" > f }' > out.txt", visible=False),
    attack("awk of a variable, with a redirection", "writes",
           "x='BEGIN { print \"x\" > \".envrc\" }'; awk \"$x\" > out.txt"),
    attack("sed w, with a redirection", "writes", "sed -n 'w .envrc' a.txt > out.txt"),
    attack("sed w into a nested folder", "writes", "sed -n 'w sub/.husky/x' a.txt > out.txt",
           "mkdir -p sub/.husky", visible=False),
    attack("sed s///w, with a redirection", "writes", "sed 's/a/b/w .envrc' a.txt > out.txt"),
    attack("sed of a variable, with a redirection", "writes",
           "x='w .envrc'; sed -n \"$x\" a.txt > out.txt"),
    attack("sort takes an option from a pattern", "writes", "sort * > dir/out.txt", "touch -- -o.envrc"),
    attack("tree takes an option from a pattern", "writes", "tree * > dir/out.txt", "touch -- -o.envrc",
           needs=("tree",)),
    attack("find -fprint, with a redirection", "writes", "find . -fprint .envrc > out.txt", visible=False),
    attack("find -exec cp, with a redirection", "writes",
           "find a.txt -exec cp {} .envrc ';' > out.txt", visible=False),
    attack("xargs cp, with a redirection", "writes", "echo a.txt .envrc | xargs cp > out.txt"),
    attack("tee, with a redirection", "writes", "cat a.txt | tee .envrc > out.txt", visible=False),
    attack("git output, with a redirection", "writes", "git diff HEAD~1 --output=.envrc > out.txt", visible=False),
    attack("git of a nested repository, with a redirection", "writes", "git -C sub diff > out.txt",
           _TEXTCONV),
    attack("git after cd, with a redirection", "writes", "cd sub && git diff > ../out.txt", _TEXTCONV),
    attack("yarn --version runs the project's yarn", "writes", "yarn --version > out.txt",
           "echo 'yarn-path \"./y.js\"' > .yarnrc;"
           " echo 'require(\"fs\").writeFileSync(\".envrc\", \"x\")' > y.js", needs=("yarn",)),
    attack("cargo --version runs the project's cargo", "writes", "cargo --version > out.txt",
           "mkdir -p tc/bin; printf '#!/bin/bash\\necho x > .envrc\\n' > tc/bin/cargo;"
           " cp tc/bin/cargo tc/bin/rustc; chmod +x tc/bin/*;"
           " printf '[toolchain]\\npath = \"tc\"\\n' > rust-toolchain.toml", needs=("cargo",), visible=False),
    attack("redirection into a name that folds", "writes", "echo x > .EnvRC",
           modes=("default", "plan", "dontAsk"), visible=False),
    attack("redirection by a descriptor", "writes", "exec 3> .envrc; echo x >&3", visible=False),
    attack("redirection by a descriptor's name", "writes", "echo x > /proc/self/fd/3 3> .envrc", visible=False),
    attack("mkdir of a repository's parts", "writes", "mkdir -p sub/.git/hooks && cp marker.sh sub/.git/hooks/x", visible=False),
    attack("cp of a link to itself", "writes", "cp a.txt dir/up/outside/new", "ln -s ../.. dir/up"),
    *under(
        "Edit(dir/**)",
        attack("edit rule, awk beside it", "writes",
               "awk 'BEGIN { print \"evil\" > \"README.md\" }' > dir/x", modes=("default", "dontAsk")),
        attack("edit rule, sed beside it", "writes", "sed 'w README.md' a.txt > dir/x",
               modes=("default", "dontAsk")),
        attack("edit rule, xxd beside it", "writes", "xxd a.txt README.md > dir/x", needs=("xxd",),
               modes=("default", "dontAsk")),
        attack("edit rule, a link in the folder", "writes", "echo x > dir/away", "ln -s ../README.md dir/away",
               modes=("default", "dontAsk")),
        attack("edit rule, dots", "writes", "echo x > dir/../README.md", modes=("default", "dontAsk")),
        attack("edit rule, a hard link", "writes", "echo x > dir/same", "ln @outside@/notes.txt dir/same",
               modes=("default", "dontAsk")),
        attack("edit rule, a nested repository", "writes", "echo x > dir/.git/config", "git init -q dir",
               modes=("default", "dontAsk"), visible=False),
    ),
    *denied(
        ("Edit(*.lock)",),
        attack("awk makes a locked name", "writes", "awk 'BEGIN { print \"x\" > \"app.lock\" }' > out.txt"),
        attack("xxd makes a locked name", "writes", "xxd a.txt app.lock > out.txt", needs=("xxd",)),
    ),
)  # fmt: skip

# A file that is named behind a command which a rule allows may be a link by then.
BEHIND: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(tar:*)",
        attack("tar, then cat of what it made", "reads", "tar xf x.tar && cat made", _LINKS, modes=EDITS),
        attack("tar, then head in a pipe", "reads", "tar xf x.tar; head -n 1 made | cat", _LINKS, modes=EDITS),
        attack("tar, then grep", "reads", "tar xf x.tar && grep -n CANARY made", _LINKS, modes=EDITS),
        attack("tar, then a redirection", "reads", "tar xf x.tar && cat < made", _LINKS, modes=EDITS),
        attack("tar, then cd and ls", "reads", "tar xf x.tar && cd away && ls", _LINKS, modes=EDITS),
        attack("tar, then ls of a link", "reads", "tar xf x.tar && ls away/", _LINKS, modes=EDITS),
        attack("tar, then cat through timeout", "reads", "tar xf x.tar && timeout 5 cat made", _LINKS,
               modes=EDITS),
        attack("tar in the background", "reads", "tar xf x.tar & wait; cat made", _LINKS, modes=EDITS),
        attack("tar in a substitution", "reads", 'echo "$(tar xf x.tar)"; cat made', _LINKS, modes=EDITS),
        attack("tar in a condition", "reads", "if tar xf x.tar; then cat made; fi", _LINKS, modes=EDITS),
        attack("tar replaces a file that was there", "reads", "tar xf x.tar && cat b.txt",
               "mkdir t; ln -s @outside@/notes.txt t/b.txt; tar cf x.tar -C t b.txt; rm -r t", modes=EDITS),
        attack("tar, then a write through what it made", "writes", "tar xf x.tar && echo x > away/new", _LINKS),
        *denied(
            ("Read(./secrets/**)",),
            attack("tar, then a denied file by a link", "reads", "tar xf x.tar && cat up/secrets/token.txt",
                   "mkdir t; ln -s . t/up; tar cf x.tar -C t up; rm -r t", modes=EDITS),
            attack("tar, then a denied file, both with rules", "reads",
                   "tar xf x.tar && cat up/secrets/token.txt",
                   "mkdir t; ln -s . t/up; tar cf x.tar -C t up; rm -r t", modes=EDITS,
                   allow=("Bash(cat:*)",)),
        ),
    ),
    *under(
        "Bash(ln:*)",
        attack("ln, then cat of the link", "reads", "ln -s @outside@/notes.txt made; cat made", modes=EDITS),
        attack("ln, then wc of the link's folder", "reads", "ln -s @outside@ made; ls made/", modes=EDITS),
    ),
)  # fmt: skip

ATTACKS: Final = (*BESIDE, *BEHIND)
