"""Token families of platforms and services, by the vendor's token prefix.

One row per family: ID, description, prefixes, the characters that follow and their minimum number. Lengths are slightly
below the documented ones, because tokens get cut off. IDs are stable: receipts name them.
"""

import string
from collections.abc import Callable
from typing import Final

from steno.sanitize.secret_family import (
    LazyPattern,
    SecretFamily,
    SecretMatch,
    is_random,
    is_varied,
    pattern_matcher,
    starts_word,
    token_matcher,
    with_encoded_tail,
)

ALNUM: Final = rb"A-Za-z0-9"
URL_SAFE: Final = rb"A-Za-z0-9_-"
BASE64: Final = rb"A-Za-z0-9+/=_-"
HEX: Final = rb"a-fA-F0-9"
DOTTED: Final = rb"A-Za-z0-9_.-"
UPPER: Final = rb"A-Z0-9"
_STEM_LENGTH: Final = 4
_PREFIX_FAMILIES: Final = frozenset(
    (
        *("openai-key", "aws-access-key", "google-api-key", "sendgrid-key", "mailgun-key"),
        *("slack-token", "onepassword-key"),
    )
)
"""Pattern families whose needles are prefixes."""


def token_family(
    name: str, description: str, needles: str, letters: bytes, min_length: int, *, strict: bool = False, stems: str = ""
) -> SecretFamily:
    """Return a family of tokens that begin with a prefix; with `strict`, the rest must be random."""
    texts = tuple(needle_text.encode() for needle_text in needles.split())
    # The longest matching needle is the prefix of the token.
    longest = sorted(texts, key=len, reverse=True)
    examine = token_matcher(letters, min_length, strict=strict)

    def match_at(data: bytes, place: int) -> SecretMatch | None:
        for needle in longest:
            if data.startswith(needle, place):
                return examine(needle, data, place)
        return None

    return SecretFamily(name, description, texts, match_at, _family_stems(texts, stems), prefix=not strict)


def pattern_family(
    name: str,
    description: str,
    needles: str,
    pattern: bytes,
    fits: Callable[[bytes], bool] = is_varied,
    *,
    before: bytes = b"",
    stems: str = "",
) -> SecretFamily:
    """Return a family of tokens that match a pattern, from the needle or from the characters before it."""
    texts = tuple(needle_text.encode() for needle_text in needles.split())
    # A word does not begin after a run of characters; the pattern covers the text before it.
    at = pattern_matcher(pattern, fits, own_word=not before, before=before)
    return SecretFamily(name, description, texts, at, _family_stems(texts, stems), prefix=name in _PREFIX_FAMILIES)


def _family_stems(needles: tuple[bytes, ...], stems: str) -> tuple[bytes, ...]:
    if stems == "-":
        return ()
    explicit = tuple(word.encode() for word in stems.split())
    return explicit or tuple(dict.fromkeys(each[:_STEM_LENGTH] for each in needles))


AIRTABLE_LETTERS: Final = "".join(
    character for character in string.ascii_letters + string.digits if character not in "chits"
)
"""Characters after `pat` in an Airtable token, without those that would match `path` and `pattern`."""


def discord_prefixes() -> str:
    """Return the possible base64 prefixes of a number: a Discord token begins with a user ID."""
    seconds = {"M": "TjzD", "N": "DTjz", "O": "DT"}
    return " ".join(
        first + second + third
        for first, second_letters in seconds.items()
        for second in second_letters
        for third in "AEIMQUYcgk"
    )


_RUN: Final = LazyPattern(rb"[A-Za-z0-9_-]*+")
_MIN_JWT_PART: Final = 8
_JWE_PART_COUNT: Final = 4
"""Number of parts of an encrypted token after its header."""


def match_jwt(data: bytes, place: int) -> SecretMatch | None:
    """Find a JSON web token: a header, a payload and a signature, or the five parts of JWE."""
    if not starts_word(data, place):
        return None
    first = _run_end(data, place)
    end = first
    parts: list[int] = []
    while data[end : end + 1] == b"." and len(parts) < _JWE_PART_COUNT:
        begin, end = end + 1, _run_end(data, end + 1)
        parts.append(end - begin)
    has_payload = data.startswith(b"eyJ", first + 1)
    is_encrypted = len(parts) == _JWE_PART_COUNT and parts[2] >= _MIN_JWT_PART
    if first - place < _MIN_JWT_PART or not parts or not (has_payload or is_encrypted):
        # No other token begins within the same run.
        return SecretMatch((), first)
    if has_payload:
        # Accepted without its signature, which may be cut off; a short part after it is other text.
        end = first + 1 + parts[0]
        if len(parts) > 1 and parts[1] >= _MIN_JWT_PART:
            end += 1 + parts[1]
    if not is_varied(data[max(place, end - 256) : end]):
        return SecretMatch((), first)
    return with_encoded_tail(data, place, end)


def _run_end(data: bytes, place: int) -> int:
    run = _RUN.match(data, place)
    return run.end() if run else place


_LONG_KEY: Final = 50
_MIN_DISTINCT: Final = 8


def is_openai_key(token: bytes) -> bool:
    """Return whether a word that begins with `sk-` is a key rather than hyphenated words."""
    return is_random(token[3:]) or (len(token) > _LONG_KEY and is_varied(token))


def is_aws_key_id(token: bytes) -> bool:
    """Return whether a key ID is more than a placeholder."""
    return len(set(token)) >= _MIN_DISTINCT


PLATFORM_TOKENS: Final = (
    # Models
    token_family("anthropic-key", "Anthropic keys", "sk-ant-", URL_SAFE, 20, stems="sk-"),
    token_family("openrouter-key", "OpenRouter keys", "sk-or-", URL_SAFE, 24, stems="sk-"),
    pattern_family(
        "openai-key",
        "OpenAI keys, and keys of other vendors with the same prefix",
        "sk-",
        rb"sk-(?!ant-|or-|lf-)(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{20,512}+|[A-Za-z0-9]{32,128}+"
        rb"|[A-Za-z0-9_-]{20,256}+)",
        is_openai_key,
        stems="sk-",
    ),
    token_family("xai-key", "xAI keys", "xai-", ALNUM, 40),
    token_family("replicate-token", "Replicate tokens", "r8_", ALNUM, 34),
    token_family("perplexity-key", "Perplexity keys", "pplx-", ALNUM, 32),
    token_family("tavily-key", "Tavily keys", "tvly-", URL_SAFE, 24),
    token_family("huggingface-token", "Hugging Face tokens", "hf_ api_org_", ALNUM, 30, stems="hf_ api_"),
    token_family("groq-key", "Groq keys", "gsk_", ALNUM, 40),
    token_family("fireworks-key", "Fireworks keys", "fw_", ALNUM, 20, strict=True),
    token_family("cerebras-key", "Cerebras keys", "csk-", ALNUM, 40),
    token_family("together-key", "Together keys", "tgp_v1_", URL_SAFE, 36),
    token_family("nvidia-key", "NVIDIA keys", "nvapi-", URL_SAFE, 40),
    token_family("langsmith-key", "LangSmith keys", "lsv2_pt_ lsv2_sk_ ls__", rb"a-f0-9_", 28, stems="lsv2"),
    token_family("voyage-key", "Voyage keys", "pa-", URL_SAFE, 40, strict=True, stems="-"),
    token_family("jina-key", "Jina keys", "jina_", URL_SAFE, 40),
    token_family("elevenlabs-key", "ElevenLabs keys", "sk_", HEX, 44, stems="-"),
    token_family("firecrawl-key", "Firecrawl keys", "fc-", HEX, 30, strict=True, stems="-"),
    token_family("e2b-key", "E2B keys", "e2b_ sk_e2b_", HEX, 36, stems="e2b_"),
    pattern_family(
        "modal-token",
        "Modal tokens",
        "ak- as- wk- ws-",
        rb"[aw][ks]-(?P<secret>[A-Za-z0-9]{21,24})(?![A-Za-z0-9_-])",
        is_random,
        stems="-",
    ),
    token_family("runpod-key", "RunPod keys", "rpa_", ALNUM, 36),
    token_family("lambda-key", "Lambda keys", "secret_", DOTTED, 36, strict=True, stems="secre"),
    token_family("brave-key", "Brave Search keys", "BSA", URL_SAFE, 26, strict=True, stems="-"),
    token_family("pinecone-key", "Pinecone keys", "pcsk_", URL_SAFE, 50),
    token_family("apify-token", "Apify tokens", "apify_api_", ALNUM, 30),
    token_family("langfuse-key", "Langfuse keys", "sk-lf- pk-lf-", URL_SAFE, 30, stems="-"),
    token_family("wandb-key", "Weights & Biases keys", "wandb_v1_", URL_SAFE, 40),
    # Code hosts and package registries
    token_family("github-token", "GitHub tokens", "ghp_ gho_ ghu_ ghs_ ghr_", ALNUM, 30),
    token_family("github-fine-grained", "GitHub fine-grained tokens", "github_pat_", rb"A-Za-z0-9_", 22),
    token_family(
        "gitlab-token",
        "GitLab tokens",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- gloas- glft- glimt- glagent- glffct- glwt- GR1348941",
        DOTTED,
        16,
        stems="glpa glrt",
    ),
    token_family("bitbucket-token", "Bitbucket and Atlassian tokens", "ATBB ATCTT3 ATATT3 ATSTT3", BASE64, 24),
    token_family("npm-token", "npm tokens", "npm_", ALNUM, 30),
    token_family("pypi-token", "PyPI tokens", "pypi-Ag", URL_SAFE, 30),
    token_family("rubygems-key", "RubyGems keys", "rubygems_", HEX, 40),
    token_family("crates-token", "Cargo tokens", "cio", ALNUM, 30, strict=True, stems="-"),
    token_family("nuget-key", "NuGet keys", "oy2", rb"a-z0-9", 40, strict=True, stems="-"),
    token_family("clojars-token", "Clojars tokens", "CLOJARS_", HEX, 50),
    token_family("hex-key", "Hex keys", "hex_", ALNUM, 36, strict=True, stems="-"),
    token_family("docker-token", "Docker tokens", "dckr_pat_ dckr_oat_", URL_SAFE, 20),
    token_family("sourcegraph-token", "Sourcegraph tokens", "sgp_ sgd_ slk_", rb"a-f0-9_", 36, stems="sgp_"),
    token_family("sonar-token", "SonarQube tokens", "sqp_ squ_ sqa_", HEX, 36),
    token_family("codecov-token", "Codecov tokens", "codecov_", URL_SAFE, 30, strict=True, stems="-"),
    token_family("artifactory-key", "Artifactory keys", "AKCp cmVmd", ALNUM, 50, stems="AKCp"),
    token_family("buildkite-token", "Buildkite tokens", "bkua_ bkct_ bkpat_", ALNUM, 32, stems="bkua"),
    token_family("circleci-token", "CircleCI tokens", "CCIPAT_ CCIPRJ_", URL_SAFE, 30),
    token_family("snyk-token", "Snyk tokens", "snyk_", DOTTED, 40, strict=True, stems="-"),
    # Clouds and hosting
    pattern_family(
        "aws-access-key",
        "AWS access key IDs",
        "AKIA ASIA ABIA ACCA",
        rb"A(?:[KSB]I|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])",
        is_aws_key_id,
        stems="AKIA ASIA",
    ),
    token_family("bedrock-key", "Amazon Bedrock keys", "ABSK bedrock-api-key-", BASE64, 60),
    token_family("aws-session-token", "AWS session tokens", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", BASE64, 60),
    pattern_family("google-api-key", "Google API keys", "AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    token_family(
        "google-oauth", "Google OAuth tokens and secrets", "ya29. GOCSPX- 1//0", DOTTED, 20, stems="ya29 GOCS"
    ),
    token_family("digitalocean-token", "DigitalOcean tokens", "dop_v1_ doo_v1_ dor_v1_", rb"a-f0-9", 32),
    token_family("cloudflare-token", "Cloudflare tokens", "cfut_ cfat_ cfk_ v1.0-", rb"A-Za-z0-9_-", 40),
    token_family(
        "vercel-token", "Vercel tokens", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", URL_SAFE, 24, stems="vcp_ verc"
    ),
    token_family("netlify-token", "Netlify tokens", "nfp_ nfc_ nfo_ nfu_", ALNUM, 32, stems="nfp_"),
    token_family("heroku-key", "Heroku keys", "HRKU-", URL_SAFE, 36),
    token_family("fly-token", "Fly tokens", "fm1r_ fm1a_ fm2_ fo1_", BASE64, 36, stems="fm2_ fo1_"),
    token_family("render-key", "Render keys", "rnd_", ALNUM, 26),
    token_family("scaleway-key", "Scaleway access keys", "SCW", rb"A-Z0-9", 17, strict=True, stems="-"),
    token_family("alibaba-key", "Alibaba access keys", "LTAI", ALNUM, 16),
    token_family("tencent-key", "Tencent access keys", "AKID", ALNUM, 30),
    token_family("yandex-key", "Yandex keys", "AQVN YCAJE t1.9eu", DOTTED, 30),
    token_family("ibm-key", "IBM Cloud keys", "ApiKey-", URL_SAFE, 32, stems="-"),
    token_family("openshift-token", "OpenShift tokens", "sha256~", URL_SAFE, 40),
    token_family("supabase-key", "Supabase keys", "sbp_ sb_secret_ sbp_oauth_", URL_SAFE, 20),
    token_family("planetscale-token", "PlanetScale tokens", "pscale_tkn_ pscale_pw_ pscale_oauth_", DOTTED, 30),
    token_family("cockroach-key", "CockroachDB Cloud keys", "CCDB1_", URL_SAFE, 30),
    token_family("dbt-token", "dbt Cloud tokens", "dbtc_ dbtu_", URL_SAFE, 36),
    token_family("neon-key", "Neon keys", "napi_ npg_", ALNUM, 10, strict=True),
    token_family(
        "doppler-token",
        "Doppler tokens",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
        DOTTED,
        36,
        stems="dp.p dp.s",
    ),
    token_family("databricks-token", "Databricks tokens", "dapi dose dkea", rb"a-f0-9", 30, stems="dapi"),
    token_family("vault-token", "Vault tokens", "hvs. hvb. hvr.", URL_SAFE, 24),
    pattern_family(
        "terraform-token",
        "Terraform Cloud tokens",
        ".atlasv1.",
        rb"[A-Za-z0-9]{12,16}\.atlasv1\.[A-Za-z0-9_=-]{40,100}+",
        before=ALNUM,
        stems="atlas",
    ),
    token_family("pulumi-token", "Pulumi tokens", "pul-", HEX, 36),
    token_family("infracost-key", "Infracost keys", "ico-", ALNUM, 30, strict=True, stems="-"),
    token_family("tailscale-key", "Tailscale keys", "tskey-", URL_SAFE, 20),
    token_family("prefect-key", "Prefect keys", "pnu_ pnb_", ALNUM, 34),
    token_family("onepassword-token", "1Password tokens", "ops_eyJ", BASE64, 60),
    pattern_family(
        "onepassword-key",
        "1Password secret keys",
        "A3-",
        rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])",
        stems="-",
    ),
    pattern_family(
        "upstash-token",
        "Upstash tokens",
        "AAIjcD AAIncD ASQgM ASQgN ASQgO",
        rb"A[A-Za-z0-9_-]{1,8}(?:AAI[jn]cD|ASQg)[A-Za-z0-9_=-]{24,120}+",
        before=URL_SAFE,
        stems="-",
    ),
    token_family("mongodb-key", "MongoDB Atlas secrets", "mdb_sa_sk_", URL_SAFE, 30),
    token_family("clickhouse-key", "ClickHouse keys", "4b1d", ALNUM, 38, strict=True, stems="-"),
)
"""Token families of platforms. IDs are stable: receipts name them."""


SERVICE_TOKENS: Final = (
    # Payments and commerce
    token_family(
        "stripe-key",
        "Stripe keys",
        "sk_live_ sk_test_ pk_live_ rk_live_ rk_test_ sk_prod_ rk_prod_",
        ALNUM,
        16,
        stems="k_li k_te",
    ),
    token_family("webhook-secret", "webhook signing secrets", "whsec_", rb"A-Za-z0-9+/=", 16),
    token_family(
        "square-token", "Square tokens", "sq0atp- sq0csp- sq0idp- EAAA", URL_SAFE, 22, strict=True, stems="sq0a"
    ),
    token_family(
        "shopify-token", "Shopify tokens", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", HEX, 30, stems="shpa"
    ),
    token_family("shippo-token", "Shippo tokens", "shippo_live_ shippo_test_", HEX, 36),
    token_family("easypost-key", "EasyPost keys", "EZAK EZTK", ALNUM, 50),
    token_family("paddle-key", "Paddle keys", "pdl_live_ pdl_sdbx_", rb"A-Za-z0-9_", 40),
    token_family("flutterwave-key", "Flutterwave keys", "FLWSECK_ FLWSECK-", rb"A-Za-z0-9_-", 12, strict=True),
    token_family(
        "plaid-token", "Plaid tokens", "access-sandbox- access-development- access-production-", rb"a-f0-9-", 30
    ),
    token_family("razorpay-key", "Razorpay keys", "rzp_live_ rzp_test_", ALNUM, 14),
    token_family("braintree-token", "Braintree tokens", "access_token$", rb"a-z0-9$", 40, stems="-"),
    # Email and messaging
    pattern_family("sendgrid-key", "SendGrid keys", "SG.", rb"SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+"),
    pattern_family(
        "mailgun-key",
        "Mailgun keys",
        "key- pubkey-",
        rb"(?:pub)?key-[a-z0-9]{32}(?![A-Za-z0-9])",
        lambda token: is_random(token.split(b"-")[1]),
        stems="-",
    ),
    pattern_family(
        "mailchimp-key",
        "Mailchimp keys",
        "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9",
        rb"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
        before=rb"a-f0-9",
        stems="-",
    ),
    token_family("brevo-key", "Brevo keys", "xkeysib- xsmtpsib-", rb"A-Za-z0-9-", 60),
    token_family("resend-key", "Resend keys", "re_", rb"A-Za-z0-9_", 24, strict=True, stems="-"),
    token_family("mailersend-token", "MailerSend tokens", "mlsn.", ALNUM, 40),
    token_family("mandrill-key", "Mandrill keys", "md-", URL_SAFE, 22, strict=True, stems="-"),
    pattern_family(
        "twilio-key",
        "Twilio keys",
        " ".join(f"SK{digit}" for digit in "0123456789abcdef"),
        rb"SK[a-f0-9]{32}(?![A-Za-z0-9])",
        stems="-",
    ),
    pattern_family(
        "slack-token",
        "Slack tokens",
        "xox xapp- xwfp-",
        rb"(?:xox[abcdeoprs](?:\.xox[bp])?|xapp|xwfp)-[A-Za-z0-9%-]{16,512}+",
        stems="xox xapp",
    ),
    pattern_family(
        "telegram-token",
        "Telegram bot tokens",
        ":AA",
        rb"[0-9]{6,12}:AA[A-Za-z0-9_-]{30,34}(?![A-Za-z0-9_-])",
        before=rb"0-9",
        stems=":AA",
    ),
    pattern_family(
        "discord-token",
        "Discord bot tokens",
        discord_prefixes(),
        rb"(?:mfa\.)?[MNO][A-Za-z0-9_-]{21,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}+",
        stems="-",
    ),
    token_family("intercom-token", "Intercom tokens", "dG9rO", BASE64, 40),
    token_family("facebook-token", "Facebook tokens", "EAAC EAAB EAAG EAAM", ALNUM, 80, stems="-"),
    token_family("x-token", "X bearer tokens", "AAAAAAAAAAAAAAAAAAAAA", rb"A-Za-z0-9%", 60, strict=True, stems="-"),
    # Productivity
    token_family("linear-key", "Linear keys", "lin_api_ lin_oauth_", ALNUM, 32),
    token_family("notion-token", "Notion tokens", "ntn_", ALNUM, 40),
    token_family("figma-token", "Figma tokens", "figd_ figu_ figr_ figo_ figh_", URL_SAFE, 36, stems="figd"),
    pattern_family(
        "airtable-token",
        "Airtable tokens",
        " ".join(f"pat{letter}" for letter in AIRTABLE_LETTERS),
        rb"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])",
        stems="-",
    ),
    pattern_family(
        "asana-token",
        "Asana tokens",
        " ".join(f"{kind}/{digit}" for kind in "012" for digit in "123456789"),
        rb"[0-2]/[0-9]{12,20}(?:/[0-9]{12,20})?:[a-f0-9]{32}(?![A-Za-z0-9])",
        stems="-",
    ),
    token_family("dropbox-token", "Dropbox tokens", "sl.A sl.B sl.C sl.u.", URL_SAFE, 100, stems="-"),
    token_family("trello-token", "Trello tokens", "ATTA", ALNUM, 60),
    token_family("contentful-token", "Contentful tokens", "CFPAT-", URL_SAFE, 40),
    token_family("typeform-token", "Typeform tokens", "tfp_", DOTTED, 40),
    token_family(
        "hubspot-token", "HubSpot tokens", "pat-na1- pat-eu1- pat-na2- pat-eu2-", rb"a-fA-F0-9-", 32, stems="-"
    ),
    token_family("postman-key", "Postman keys", "PMAK-", rb"a-fA-F0-9-", 50),
    token_family("matrix-token", "Matrix access tokens", "syt_", URL_SAFE, 30),
    token_family("readme-key", "ReadMe keys", "rdme_", rb"a-z0-9", 60),
    pattern_family("okta-token", "Okta tokens", "SSWS", rb"SSWS[ ]{1,2}(?P<secret>[A-Za-z0-9_-]{36,60}+)", stems="-"),
    token_family("workos-key", "WorkOS keys", "sk_", ALNUM, 40, strict=True, stems="-"),
    pattern_family(
        "seed-phrase",
        "wallet seed phrases",
        "mnemonic Mnemonic MNEMONIC seed_phrase seedPhrase SEED_PHRASE",
        rb"(?i:mnemonic|seed_?phrase)\\{0,7}[\"']?[ ]{0,3}[:=][ ]{0,3}\\{0,7}[\"'`]?"
        rb"(?P<secret>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8}+)(?![a-z])",
        bool,
        stems="-",
    ),
    token_family("calcom-key", "Cal.com keys", "cal_live_ cal_test_", ALNUM, 24),
    # Monitoring
    token_family("grafana-token", "Grafana tokens", "glsa_ glc_", rb"A-Za-z0-9+/=_", 32),
    token_family(
        "sentry-token", "Sentry tokens", "sntrys_ sntryu_ sntrya_ sntryi_", rb"A-Za-z0-9+/=_", 32, stems="sntr"
    ),
    token_family("newrelic-key", "New Relic keys", "NRAK- NRII- NRJS- NRRA- NRSP-", URL_SAFE, 19, stems="NRAK NRII"),
    token_family(
        "dynatrace-token", "Dynatrace tokens", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", DOTTED, 60, stems="dt0c"
    ),
    token_family("posthog-key", "PostHog keys", "phc_ phx_ phs_ phr_", ALNUM, 36),
    token_family("honeycomb-key", "Honeycomb keys", "hcaik_ hcbik_ hcamk_ hcxik_", ALNUM, 30),
    token_family("launchdarkly-key", "LaunchDarkly keys", "sdk- mob- api-", rb"a-f0-9-", 36, strict=True, stems="-"),
    token_family("logfire-token", "Logfire tokens", "pylf_v1_ pylf_v2_", URL_SAFE, 30),
    token_family("axiom-token", "Axiom tokens", "xaat- xapt-", rb"a-f0-9-", 32),
    token_family("statsig-key", "Statsig keys", "secret-", ALNUM, 36, strict=True, stems="-"),
    token_family("trigger-key", "Trigger.dev keys", "tr_dev_ tr_prod_ tr_pat_", ALNUM, 18),
    token_family("mapbox-token", "Mapbox tokens", "pk.eyJ sk.eyJ tk.eyJ", DOTTED, 60, stems="-"),
    token_family("duffel-token", "Duffel tokens", "duffel_test_ duffel_live_", URL_SAFE, 36),
    token_family("frameio-token", "Frame.io tokens", "fio-u-", URL_SAFE, 50),
    token_family("adobe-secret", "Adobe client secrets", "p8e- p8-", rb"A-Za-z0-9_-", 32, strict=True, stems="-"),
    token_family("ngrok-token", "ngrok keys", "ak_2 ek_2 cr_2", ALNUM, 25, strict=True, stems="-"),
    pattern_family(
        "maxmind-key", "MaxMind keys", "_mmk", rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", before=rb"A-Za-z0-9_", stems="-"
    ),
    pattern_family(
        "azure-client-secret",
        "Azure client secrets",
        "1Q~ 2Q~ 3Q~ 4Q~ 5Q~ 6Q~ 7Q~ 8Q~ 9Q~",
        rb"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
        before=rb"A-Za-z0-9_~.-",
        stems="-",
    ),
    pattern_family(
        "azure-openai-key",
        "Azure keys with an embedded signature",
        "JQQJ99",
        rb"[A-Za-z0-9]{20,60}?JQQJ99[A-Za-z0-9]{8,40}+",
        before=ALNUM,
        stems="-",
    ),
    SecretFamily("jwt", "JSON web tokens", (b"eyJ",), match_jwt, (b"eyJ",)),
    token_family("age-key", "age keys", "AGE-SECRET-KEY-1 AGE-PLUGIN-", UPPER, 40, stems="AGE-"),
    token_family("minisign-key", "minisign secret keys", "RWRTY0Iy RWRCSw", rb"A-Za-z0-9+/=", 100, stems="-"),
    token_family("nostr-key", "Nostr keys", "nsec1", rb"a-z0-9", 50),
    token_family("bitcoin-key", "wallet keys", "xprv tprv yprv zprv", ALNUM, 90, stems="xprv"),
)
"""Token families of services. IDs are stable: receipts name them."""
