"""Tokens of models, code hosts, packages, clouds and hosting."""

from typing import Final

from steno.safe.secret_values import is_random
from steno.safe.token_rows import (
    ALNUM,
    BASE64,
    DOTTED,
    HEX,
    URL_SAFE,
    is_aws,
    is_openai,
    shape_row,
    token_row,
)

__all__ = ["PLATFORM_TOKENS"]

PLATFORM_TOKENS: Final = (
    # Models
    token_row("anthropic-key", "Anthropic keys", "sk-ant-", URL_SAFE, 20, stems="sk-"),
    token_row("openrouter-key", "OpenRouter keys", "sk-or-", URL_SAFE, 24, stems="sk-"),
    shape_row(
        "openai-key",
        "OpenAI keys, and keys of others that begin the same",
        "sk-",
        rb"sk-(?!ant-|or-|lf-)(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{20,512}+|[A-Za-z0-9]{32,128}+"
        rb"|[A-Za-z0-9_-]{20,256}+)",
        is_openai,
        stems="sk-",
    ),
    token_row("xai-key", "xAI keys", "xai-", ALNUM, 40),
    token_row("replicate-token", "Replicate tokens", "r8_", ALNUM, 34),
    token_row("perplexity-key", "Perplexity keys", "pplx-", ALNUM, 32),
    token_row("tavily-key", "Tavily keys", "tvly-", URL_SAFE, 24),
    token_row(
        "huggingface-token", "Hugging Face tokens", "hf_ api_org_", ALNUM, 30, stems="hf_ api_"
    ),
    token_row("groq-key", "Groq keys", "gsk_", ALNUM, 40),
    token_row("fireworks-key", "Fireworks keys", "fw_", ALNUM, 20, strict=True),
    token_row("cerebras-key", "Cerebras keys", "csk-", ALNUM, 40),
    token_row("together-key", "Together keys", "tgp_v1_", URL_SAFE, 36),
    token_row("nvidia-key", "NVIDIA keys", "nvapi-", URL_SAFE, 40),
    token_row(
        "langsmith-key", "LangSmith keys", "lsv2_pt_ lsv2_sk_ ls__", rb"a-f0-9_", 28, stems="lsv2"
    ),
    token_row("voyage-key", "Voyage keys", "pa-", URL_SAFE, 40, strict=True, stems="-"),
    token_row("jina-key", "Jina keys", "jina_", URL_SAFE, 40),
    token_row("elevenlabs-key", "ElevenLabs keys", "sk_", HEX, 44, stems="-"),
    token_row("firecrawl-key", "Firecrawl keys", "fc-", HEX, 30, strict=True, stems="-"),
    token_row("e2b-key", "E2B keys", "e2b_ sk_e2b_", HEX, 36, stems="e2b_"),
    shape_row(
        "modal-token",
        "Modal tokens",
        "ak- as- wk- ws-",
        rb"[aw][ks]-(?P<secret>[A-Za-z0-9]{21,24})(?![A-Za-z0-9_-])",
        is_random,
        stems="-",
    ),
    token_row("runpod-key", "RunPod keys", "rpa_", ALNUM, 36),
    token_row("lambda-key", "Lambda keys", "secret_", DOTTED, 36, strict=True, stems="secre"),
    token_row("brave-key", "Brave Search keys", "BSA", URL_SAFE, 26, strict=True, stems="-"),
    token_row("pinecone-key", "Pinecone keys", "pcsk_", URL_SAFE, 50),
    token_row("apify-token", "Apify tokens", "apify_api_", ALNUM, 30),
    token_row("langfuse-key", "Langfuse keys", "sk-lf- pk-lf-", URL_SAFE, 30, stems="-"),
    token_row("wandb-key", "Weights & Biases keys", "wandb_v1_", URL_SAFE, 40),
    # Code hosts and packages
    token_row("github-token", "GitHub tokens", "ghp_ gho_ ghu_ ghs_ ghr_", ALNUM, 30),
    token_row(
        "github-fine-grained", "GitHub tokens with chosen rights", "github_pat_", rb"A-Za-z0-9_", 22
    ),
    token_row(
        "gitlab-token",
        "GitLab tokens",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- gloas- glft- glimt- glagent- glffct- glwt- GR1348941",
        DOTTED,
        16,
        stems="glpa glrt",
    ),
    token_row(
        "bitbucket-token", "Bitbucket and Atlassian tokens", "ATBB ATCTT3 ATATT3 ATSTT3", BASE64, 24
    ),
    token_row("npm-token", "npm tokens", "npm_", ALNUM, 30),
    token_row("pypi-token", "PyPI tokens", "pypi-Ag", URL_SAFE, 30),
    token_row("rubygems-key", "RubyGems keys", "rubygems_", HEX, 40),
    token_row("crates-token", "Cargo tokens", "cio", ALNUM, 30, strict=True, stems="-"),
    token_row("nuget-key", "NuGet keys", "oy2", rb"a-z0-9", 40, strict=True, stems="-"),
    token_row("clojars-token", "Clojars tokens", "CLOJARS_", HEX, 50),
    token_row("hex-key", "Hex keys", "hex_", ALNUM, 36, strict=True, stems="-"),
    token_row("docker-token", "Docker tokens", "dckr_pat_ dckr_oat_", URL_SAFE, 20),
    token_row(
        "sourcegraph-token", "Sourcegraph tokens", "sgp_ sgd_ slk_", rb"a-f0-9_", 36, stems="sgp_"
    ),
    token_row("sonar-token", "SonarQube tokens", "sqp_ squ_ sqa_", HEX, 36),
    token_row("codecov-token", "Codecov tokens", "codecov_", URL_SAFE, 30, strict=True, stems="-"),
    token_row("artifactory-key", "Artifactory keys", "AKCp cmVmd", ALNUM, 50, stems="AKCp"),
    token_row("buildkite-token", "Buildkite tokens", "bkua_ bkct_ bkpat_", ALNUM, 32, stems="bkua"),
    token_row("circleci-token", "CircleCI tokens", "CCIPAT_ CCIPRJ_", URL_SAFE, 30),
    token_row("snyk-token", "Snyk tokens", "snyk_", DOTTED, 40, strict=True, stems="-"),
    # Clouds and hosting
    shape_row(
        "aws-access-key",
        "AWS access key ids",
        "AKIA ASIA ABIA ACCA",
        rb"A(?:[KSB]I|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])",
        is_aws,
        stems="AKIA ASIA",
    ),
    token_row("bedrock-key", "Amazon Bedrock keys", "ABSK bedrock-api-key-", BASE64, 60),
    token_row(
        "aws-session-token",
        "AWS session tokens",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz",
        BASE64,
        60,
    ),
    shape_row("google-api-key", "Google API keys", "AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    token_row(
        "google-oauth",
        "Google OAuth tokens and secrets",
        "ya29. GOCSPX- 1//0",
        DOTTED,
        20,
        stems="ya29 GOCS",
    ),
    token_row(
        "digitalocean-token", "DigitalOcean tokens", "dop_v1_ doo_v1_ dor_v1_", rb"a-f0-9", 32
    ),
    token_row(
        "cloudflare-token", "Cloudflare tokens", "cfut_ cfat_ cfk_ v1.0-", rb"A-Za-z0-9_-", 40
    ),
    token_row(
        "vercel-token",
        "Vercel tokens",
        "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_",
        URL_SAFE,
        24,
        stems="vcp_ verc",
    ),
    token_row("netlify-token", "Netlify tokens", "nfp_ nfc_ nfo_ nfu_", ALNUM, 32, stems="nfp_"),
    token_row("heroku-key", "Heroku keys", "HRKU-", URL_SAFE, 36),
    token_row("fly-token", "Fly tokens", "fm1r_ fm1a_ fm2_ fo1_", BASE64, 36, stems="fm2_ fo1_"),
    token_row("render-key", "Render keys", "rnd_", ALNUM, 26),
    token_row(
        "scaleway-key", "Scaleway access keys", "SCW", rb"A-Z0-9", 17, strict=True, stems="-"
    ),
    token_row("alibaba-key", "Alibaba access keys", "LTAI", ALNUM, 16),
    token_row("tencent-key", "Tencent access keys", "AKID", ALNUM, 30),
    token_row("yandex-key", "Yandex keys", "AQVN YCAJE t1.9eu", DOTTED, 30),
    token_row("ibm-key", "IBM Cloud keys", "ApiKey-", URL_SAFE, 32, stems="-"),
    token_row("openshift-token", "OpenShift tokens", "sha256~", URL_SAFE, 40),
    token_row("supabase-key", "Supabase keys", "sbp_ sb_secret_ sbp_oauth_", URL_SAFE, 20),
    token_row(
        "planetscale-token",
        "PlanetScale tokens",
        "pscale_tkn_ pscale_pw_ pscale_oauth_",
        DOTTED,
        30,
    ),
    token_row("cockroach-key", "CockroachDB Cloud keys", "CCDB1_", URL_SAFE, 30),
    token_row("dbt-token", "dbt Cloud tokens", "dbtc_ dbtu_", URL_SAFE, 36),
    token_row("neon-key", "Neon keys", "napi_ npg_", ALNUM, 10, strict=True),
    token_row(
        "doppler-token",
        "Doppler tokens",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
        DOTTED,
        36,
        stems="dp.p dp.s",
    ),
    token_row(
        "databricks-token", "Databricks tokens", "dapi dose dkea", rb"a-f0-9", 30, stems="dapi"
    ),
    token_row("vault-token", "Vault tokens", "hvs. hvb. hvr.", URL_SAFE, 24),
    shape_row(
        "terraform-token",
        "Terraform Cloud tokens",
        ".atlasv1.",
        rb"[A-Za-z0-9]{12,16}\.atlasv1\.[A-Za-z0-9_=-]{40,100}+",
        before=ALNUM,
        stems="atlas",
    ),
    token_row("pulumi-token", "Pulumi tokens", "pul-", HEX, 36),
    token_row("infracost-key", "Infracost keys", "ico-", ALNUM, 30, strict=True, stems="-"),
    token_row("tailscale-key", "Tailscale keys", "tskey-", URL_SAFE, 20),
    token_row("prefect-key", "Prefect keys", "pnu_ pnb_", ALNUM, 34),
    token_row("onepassword-token", "1Password tokens", "ops_eyJ", BASE64, 60),
    shape_row(
        "onepassword-key",
        "1Password secret keys",
        "A3-",
        rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])",
        stems="-",
    ),
    shape_row(
        "upstash-token",
        "Upstash tokens",
        "AAIjcD AAIncD ASQgM ASQgN ASQgO",
        rb"A[A-Za-z0-9_-]{1,8}(?:AAI[jn]cD|ASQg)[A-Za-z0-9_=-]{24,120}+",
        before=URL_SAFE,
        stems="-",
    ),
    token_row("mongodb-key", "MongoDB Atlas secrets", "mdb_sa_sk_", URL_SAFE, 30),
    token_row("clickhouse-key", "ClickHouse keys", "4b1d", ALNUM, 38, strict=True, stems="-"),
)
"""Every platform's. The ids are stable: receipts name them."""
