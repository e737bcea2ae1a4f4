"""The site generator: a plan, retries and a web search, background agents, Japanese."""

from typing import Final

from tests.builders.blocks import Json, redacted_thinking, thinking, tool, tool_reference
from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, edit, grep, read, write

__all__ = ["stories"]

_CWD: Final = "/home/ada/sites/gravel"
_FEED: Final = f"{_CWD}/gravel/feed.py"

_FEED_CODE: Final = '''"""Write the Atom feed."""

from xml.sax.saxutils import escape


def entry(title: str, link: str) -> str:
    """Return one entry."""
    return f"<entry><title>{title}</title><link href='{link}'/></entry>"
'''

_PLAN: Final = """# Drafts

1. A page with `draft: true` is left out of the build, the feed and the index.
2. `gravel serve --drafts` shows them, marked.
3. One test for each of the three places.
"""


def stories() -> list[Session]:
    """Return the sessions of this project, oldest first."""
    return [_drafts(), _feed(), _links(), _japanese()]


def _drafts() -> Session:
    """Plan mode, and two sub-agents at once."""
    made = begin("2.1.200", seed="gravel-1", cwd=_CWD, start="2026-11-06T19:25:00.000Z", permission="plan")
    made.plan(_PLAN).user("Plan how drafts should work. Do not change anything yet.")
    place = f"/home/ada/.claude/plans/{made.slug}.md"
    made.attach("plan_mode", reminderType="full", isSubAgent=False, planFilePath=place, planExists=False)
    calls = [
        tool(
            "Agent",
            description=f"Where are {what} made",
            subagent_type="Explore",
            prompt=f"Where does the generator collect {what}?",
        )
        for what in ("pages", "feed entries")
    ]
    made.assistant("I'll find out where pages are collected.", *calls)
    made.agent(_pages).agent(_entries)
    made.assistant(tool("ExitPlanMode", plan=_PLAN)).result("The plan was accepted.")
    made.permission_mode("acceptEdits")
    made.assistant(
        edit(f"{_CWD}/gravel/pages.py", "return pages", "return [page for page in pages if not page.draft]")
    ).result()
    made.assistant(bash("python -m pytest -q", "Run the tests")).wait(3).result("58 passed in 2.12s")
    return (
        made.assistant(
            "The plan's first step is done: drafts are left out in all three places, because all three ask `collect()`."
        )
        .rename("Drafts")
        .done()
    )


def _pages(agent: Session) -> None:
    agent.assistant(grep("def collect", f"{_CWD}/gravel")).result("gravel/pages.py:31:def collect(")
    agent.assistant("`collect()` in `gravel/pages.py` is the only place.")


def _entries(agent: Session) -> None:
    agent.assistant(grep("collect\\(", f"{_CWD}/gravel"))
    agent.result("gravel/feed.py:22:    for page in collect(root):\ngravel/index.py:9: collect(root)")
    agent.assistant("The feed and the index both call `collect()`.")


def _feed() -> Session:
    """Requests that fail and are tried again, a search for tools and one on the web."""
    made = begin(seed="gravel-2", cwd=_CWD, start="2026-11-08T11:00:00.000Z")
    made.have(_FEED, _FEED_CODE)
    made.user("Some readers reject the feed. Is the ampersand in a title the reason?")
    made.api_error(529, "Overloaded").api_error(529, "Overloaded", 2).api_error(500, "Unavailable", 3)
    made.assistant(
        thinking("The title goes in unescaped."), redacted_thinking(), "Very likely. Let me see.", read(_FEED)
    ).result()
    made.assistant(
        "I'd like to check the rule before I rely on it.", tool("ToolSearch", query="web search", max_results=5)
    )
    names = ["WebFetch", "WebSearch"]
    made.result(
        [tool_reference(name) for name in names],
        detail={"matches": names, "query": "web search", "total_deferred_tools": 6},
    )
    made.assistant(tool("WebSearch", query="atom feed escape ampersand in title"))
    made.wait(2).result(_found()[0], detail=_found()[1])
    made.assistant(edit(_FEED, "<title>{title}</title>", "<title>{escape(title)}</title>")).result()
    return made.assistant(
        "Yes. A title is text, so `&` has to be written `&amp;`. `escape` was imported and never "
        "used; it is now.\n\n> [Atom titles](https://example.com/atom-titles)"
    ).exit()


def _found() -> tuple[str, Json]:
    links = [
        {"title": "Atom titles", "url": "https://example.com/atom-titles"},
        {"title": "Feed validator notes", "url": "https://example.com/validator"},
    ]
    words = "Titles are plain text unless they say otherwise; escape the ampersand."
    results = [{"tool_use_id": "srvtoolu_01gravel", "content": links}, words]
    detail: Json = {
        "query": "atom feed escape ampersand in title",
        "results": results,
        "durationSeconds": 1.84,
        "searchCount": 1,
    }
    return f"Links: Atom titles, Feed validator notes\n\n{words}", detail


def _links() -> Session:
    """Sub-agents in the background: one reports between turns, one inside a turn."""
    made = begin(seed="gravel-3", cwd=_CWD, branch="links", start="2026-11-10T08:30:00.000Z")
    made.user("Check all links of the site, inside and outside, and fix what is broken.")
    calls = [
        tool(
            "Agent",
            description=f"Check {what} links",
            subagent_type="general-purpose",
            prompt=f"Check every {what} link and list the broken ones.",
        )
        for what in ("inside", "outside")
    ]
    made.assistant("Both run in the background.", *calls)
    made.agent(_inside, background=True).agent(_outside, background=True)
    made.assistant("Two checks are running.").wait(65).notify()
    made.assistant(
        "One broken link inside the site; I fix it now.", bash("grep -rl old-about content/", "Find the page")
    )
    made.wait(2).result("content/index.md").notify(absorbed=True)
    made.assistant(write(f"{_CWD}/content/index.md", "Welcome. See [about](/about).\n")).result()
    return made.assistant(
        "Inside: one link mended (`/old-about`). Outside: two pages are gone, "
        "listed in the report; I left them for you to decide."
    ).exit()


def _inside(agent: Session) -> None:
    agent.assistant(bash("gravel check --inside", "Check the links"))
    agent.wait(20).result("1 broken: /old-about (content/index.md)")
    agent.assistant("One broken link: `/old-about`, in `content/index.md`.")


def _outside(agent: Session) -> None:
    agent.assistant(bash("gravel check --outside", "Check the links"))
    agent.wait(30).result("2 broken: https://example.org/notes, https://example.org/map")
    agent.assistant("Two pages are gone: `example.org/notes` and `example.org/map`.")


def _japanese() -> Session:
    """Another script, wide characters, a combining mark and an emoji."""
    made = begin(seed="gravel-4", cwd=_CWD, branch="日本語", start="2026-11-13T07:10:00.000Z")
    page = f"{_CWD}/content/ja/潮汐.md"
    made.have(page, "---\ntitle: 潮汐の話\n---\n\n満潮と干潮は、一日に二回ずつ訪れます。\n")
    made.user("日本語のページの見出しが文字化けします。原因を調べて直してください。")
    made.assistant(
        "まずページと、スラッグを作る処理を確認します。", read(page), grep("def slug", f"{_CWD}/gravel")
    ).result()
    made.result('gravel/slug.py:4:def slug(title: str) -> str:  # "潮汐の話" → ""')
    made.assistant(
        edit(
            f"{_CWD}/gravel/slug.py", 'title.encode("ascii", "ignore").decode()', 'unicodedata.normalize("NFC", title)'
        )
    ).result()
    return (
        made.assistant(
            "原因は `slug()` が ASCII 以外の文字をすべて捨てていたことでした。\n\n"
            "| 題名 | 前 | 後 |\n|---|---|---|\n| 潮汐の話 | (空) | 潮汐の話 |\n| 港のがいど | (空) | 港のがいど |\n\n"
            "濁点の結合文字 (か\u3099) も一つの文字 (が) にまとめるので、同じ見出しが二重になりません。🌊"
        )
        .ai_title("日本語ページの見出しを直す")
        .exit()
    )
