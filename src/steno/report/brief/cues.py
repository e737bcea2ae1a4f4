"""Words that state a decision, or that only weigh one, in the languages agents are mostly spoken to.

They are few on purpose: a sentence that is missed costs less than one that decides nothing.
"""

import re
from typing import Final

__all__ = ["ENDS", "POLITE", "STATES", "UNSURE", "asks"]

_STATING: Final = {
    "en": (
        r"\b(?:I|we)(?:'ve| have)? (?:decided|chose|opted|settled on|went with|agreed)\b",
        r"\b(?:I'll|we'll|I will|we will|let's|I'm going to|I am going to|going to) (?:go|stick|stay) with\b",
        r"\b(?:decided|opted) (?:to|on|for|against|not to)\b",
        r"^(?:the )?decision\b[^:]{0,40}:",
        r"\b(?:the )?root cause (?:is|was)\b",
        (
            r"\b(?:best|right|better|simplest|cleanest|safest|correct) (?:approach|fix|solution|option|choice|way)"
            r"(?: here)? (?:is|was|would be)\b"
        ),
        r"\b(?:I|we)(?:'ll|'ve|'m| will| have| am| are)? \w+(?: \w+){0,8}? (?:instead of|rather than)\b",
        (
            r"\b(?:I'll|we'll|I will|we will) (?:use|keep|leave|skip|drop|avoid|add|put|make)\b[^.]{3,200}?"
            r"\b(?:because|since|so that|to avoid)\b"
        ),
        r"\b(?:I|we)(?:'ve| have)? (?:deliberately|intentionally)\b",
    ),
    "de": (
        r"\b(?:ich habe mich|wir haben uns)\b[^.]{3,160}\bentschieden\b",
        (
            r"\b(?:ich|wir) (?:nehme|verwende|behalte|lasse|bleibe)n?\b[^.]{3,200}"
            r"\b(?:statt|anstatt|anstelle|weil|damit)\b"
        ),
        r"^(?:die )?entscheidung\b[^:]{0,40}:",
        r"\bdie (?:eigentliche )?ursache (?:ist|war|liegt)\b",
    ),
    "fr": (
        r"\b(?:j'ai|nous avons|on a) (?:décidé|choisi|opté)\b",
        (
            r"\b(?:je vais|nous allons|on va) (?:utiliser|garder|conserver|laisser|partir sur)\b[^.]{3,200}"
            r"\b(?:plutôt que|au lieu de|car|parce que|afin de)\b"
        ),
        r"^(?:la )?décision\b[^:]{0,40}:",
        r"\bla cause (?:racine|première|profonde|réelle) (?:est|était)\b",
    ),
    "es": (
        r"\b(?:he|hemos) (?:decidido|elegido|optado)\b|\b(?:decidí|decidimos|elegí|elegimos|opté|optamos)\b",
        (
            r"\b(?:voy a|vamos a) (?:usar|utilizar|mantener|dejar)\b[^.]{3,200}"
            r"\b(?:en lugar de|en vez de|porque|ya que|para evitar)\b"
        ),
        r"^(?:la )?decisión\b[^:]{0,40}:",
        r"\bla causa (?:raíz|principal) (?:es|era|fue)\b",
    ),
    "pt": (
        r"\b(?:decidi|decidimos|escolhi|escolhemos|optei|optamos)\b",
        (
            r"\b(?:vou|vamos) (?:usar|utilizar|manter|deixar)\b[^.]{3,200}"
            r"\b(?:em vez de|ao invés de|porque|pois|para evitar)\b"
        ),
        r"^(?:a )?decisão\b[^:]{0,40}:",
        r"\ba causa raiz (?:é|era|foi)\b",
    ),
    "it": (
        r"\b(?:ho|abbiamo) (?:deciso|scelto|optato)\b",
        (
            r"\b(?:userò|useremo|terrò|terremo|manterrò|lascio|lasciamo)\b[^.]{3,200}"
            r"\b(?:invece di|anziché|perché|per evitare)\b"
        ),
        r"^(?:la )?decisione\b[^:]{0,40}:",
        r"\bla causa (?:principale|radice|vera) (?:è|era)\b",
    ),
    "nl": (
        r"\b(?:ik heb|we hebben|wij hebben)\b[^.]{0,80}\b(?:besloten|gekozen)\b",
        r"^(?:het )?besluit\b[^:]{0,40}:",
        r"\bde (?:eigenlijke )?oorzaak (?:is|was|ligt)\b",
    ),
    "ru": (
        r"\b(?:я|мы) (?:решил|решила|решили|выбрал|выбрала|выбрали)\b",
        r"\b(?:первопричина|корневая причина|причина проблемы)\b",
    ),
    "zh": (
        r"(?:我|我们|我們)?(?:决定|決定|选择|選擇)(?:使用|采用|採用|保留|不|改|用|将|將|先)",
        r"^(?:决定|決定)[:\uff1a]",
        r"(?:根本原因|根因)(?:是|在于|在於)",
        r"(?:我|我们|我們)(?:会|會|将|將)(?:使用|采用|採用|保留)[^。]{2,120}(?:而不是|因为|因為)",
    ),
    "ja": (
        r"ことに(?:しました|決めました|します|した)",
        r"を(?:採用|選択)(?:しました|します)",
        r"^(?:決定|方針)[:\uff1a]",
        r"(?:根本)?原因は[^。]{2,120}(?:です|でした|だった)",
    ),
    "ko": (
        r"기로 (?:했습니다|결정했습니다|하겠습니다|했다)",
        r"^결정[:\uff1a]",
        r"근본 원인은",
    ),
}
STATES: Final = re.compile(
    "|".join(each for cues in _STATING.values() for each in cues), re.IGNORECASE
)
_WEIGHING: Final = (
    r"[?\uff1f]\s*$",
    r"\b(?:if you|would you|do you|should we|should I|let me|could|might|maybe|perhaps)\b",
    r"\b(?:wenn du|wenn sie|möchtest du|möchten sie|soll ich|sollen wir|vielleicht|könnten?)\b",
    r"\b(?:si vous|si tu|voulez-vous|veux-tu|peut-être|pourrai[st]|pourrait)\b",
    r"\b(?:si quieres|si prefieres|tal vez|quizás?|podría)\b|\b(?:se você|se quiser|talvez|poderia)\b",
    r"\b(?:se vuoi|se preferisci|forse|potrebbe)\b|\b(?:als je|misschien|zou kunnen)\b",
    r"\b(?:если|возможно|может быть)\b",
    r"如果|也许|也許|或许|或許|可能|要不要|吗[。\uff1f]?$|嗎[。\uff1f]?$",
    r"もし|かもしれ|でしょうか|ますか|만약|아마|까요",
)
UNSURE: Final = re.compile("|".join(_WEIGHING), re.IGNORECASE)
ENDS: Final = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-ÖØ-ÞА-ЯЁ`\"'(*¿¡«„])|(?<=[。\uff01\uff1f])\s*")
POLITE: Final = re.compile(
    r"(?:how (?:can|may) I help|what (?:would you like|can I (?:do|help)|should I)|(?:is there )?anything"
    r" else|how would you like|(?:kann ich|soll ich) (?:\w+ )?(?:sonst|noch etwas)|(?:was|wie) (?:kann|soll)"
    r" ich|(?:autre chose|puis-je (?:vous|t')|que (?:puis-je|souhaitez))|(?:algo más|en qué puedo|qué más)"
    r"|(?:mais alguma|como posso)|(?:altro|come posso|posso aiutar)|(?:kan ik (?:verder|nog)|nog iets)"
    r"|(?:чем (?:ещё|еще|могу)|что-нибудь ещё))\b|(?:还有|還有|还需要|還需要|有什么|有什麼)|(?:他に|ほかに|何か)|더 (?:도와|필요)",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"[?\uff1f؟]$|(?:ますか|ですか|でしょうか|까요|나요)[。.]?$")


def asks(sentence: str) -> bool:
    """Say whether a sentence is a question.

    >>> asks("Soll ich das einspielen?"), asks("進めてもよろしいでしょうか。"), asks("Done.")
    (True, True, False)
    """
    return bool(_ASKS.search(sentence))
