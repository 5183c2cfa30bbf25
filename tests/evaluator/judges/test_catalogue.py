"""Which name stands for which judge, and what is said before anything is spent when one stands for nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.model_server import ModelServer, say
from judge_desk import Desk

from bench.errors import UsageError
from evaluator.cases import Case, CriterionText
from evaluator.judges.catalogue import find_chat, find_judges
from evaluator.judges.judge import Exhibits
from evaluator.judges.model.claude_cli.chat import ClaudeCliChat, upstream
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, ModelSettings
from evaluator.judges.recorded import RecordedJudge
from evaluator.plans import SHIPPED, plan_case
from evaluator.records import Replay
from evaluator.rubric import read_rubric
from evaluator.witness import Witness, witness_schema


def test_recorded_needs_no_model() -> None:
    judge, refuter = find_judges("recorded")
    assert isinstance(judge, RecordedJudge)
    assert refuter is None


@pytest.mark.parametrize("name", ["the best one", "opus;ls", "--help", "-opus"])
def test_c137_a_name_that_can_be_no_model_is_refused_with_the_forms_there_are(name: str) -> None:
    with pytest.raises(UsageError, match=r"no judge for model .*PROVIDER/MODEL.*claude-cli"):
        find_judges(name)


def test_a_bare_name_is_the_command_line_with_that_name_passed_through() -> None:
    judge, refuter = find_judges("opus[1m]")
    assert isinstance(judge, ModelJudge)
    assert (judge.name, isinstance(judge.chat, ClaudeCliChat)) == ("claude-cli", True)
    assert isinstance(refuter, ModelRefuter)
    assert refuter.only_flagged, "only what speaks to its evaluator forces a refutation"


def test_a_login_token_or_a_named_key_is_held_by_the_gateway_only() -> None:
    login = upstream(ModelSettings(model="opus"), {"CLAUDE_CODE_OAUTH_TOKEN": "t"})
    assert (login.auth, login.key_env) == ("bearer", "CLAUDE_CODE_OAUTH_TOKEN")
    named = upstream(ModelSettings(model="opus", key_env="MY_KEY", api_base="http://h:1/"), {"MY_KEY": "k"})
    assert (named.auth, named.key_env, named.base_url) == ("x-api-key", "MY_KEY", "http://h:1")


def test_c137_a_provider_misspelt_is_refused_with_what_was_probably_meant() -> None:
    with pytest.raises(UsageError, match="did you mean anthropic/opus"):
        find_judges("antropic/opus")


def test_c137_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set ANTHROPIC_API_KEY"):
        find_chat("anthropic/claude-sonnet-4-5").check()


@pytest.mark.parametrize(("status", "said"), [(404, "near names: .*gpt-4"), (401, "check the key")])
def test_c137_an_unknown_model_or_a_wrong_key_costs_one_call(desk: Desk, status: int, said: str) -> None:
    desk.server.play({"turns": [[say("x")]], "faults": [{"at": 0, "times": -1, "status": status}]})
    with pytest.raises(UsageError, match=f"nothing was judged.*{said}"):
        desk.chat("openai/gpt-4.1-minni").check()
    assert len(desk.server.requests()) == 1


def test_an_address_and_a_key_come_from_a_yaml_file(model_server: ModelServer, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    file = tmp_path / "local.yaml"
    file.write_text(f"model: openai/local\napi_base: {model_server.address}/v1\nkey_env: MY_KEY\nvision: false\n")
    model_server.play({"turns": [[say("ready")]]})
    with pytest.raises(UsageError, match="MY_KEY is not set"):
        find_chat(str(file)).check()
    monkeypatch.setenv("MY_KEY", "sk-mine")
    find_chat(str(file)).check()
    [request] = model_server.requests()
    assert ["Authorization", "Bearer sk-mine"] in request["headers"]


def test_an_address_comes_from_the_provider_s_usual_variable(model_server: ModelServer,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("OPENAI_BASE_URL", f"{model_server.address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    model_server.play({"turns": [[say("ready")]]})
    find_chat("openai/anything").check()
    assert len(model_server.requests()) == 1


def test_c138_a_misspelt_setting_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "judge.yaml"
    file.write_text("model: openai/x\nvison: false\n")
    with pytest.raises(UsageError, match=r"known keys: .*vision"):
        find_chat(str(file))


def test_the_lock_holds_prompts_and_settings_but_no_key_and_no_knob_that_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    quiet = find_judges("openai/x", caps=Caps(case_usd=1)).judge.describe()
    richer = find_judges("openai/x", caps=Caps(case_usd=5)).judge.describe()
    assert quiet == richer
    assert len(quiet["prompts_sha256"]) == 64
    assert "sk-secret" not in str(quiet)
    blind = find_judges("openai/x", vision=False).judge
    assert isinstance(blind, ModelJudge)
    assert blind.describe() != quiet
    assert ModelSettings(model="openai/x", patience_s=1).describe() == ModelSettings(model="openai/x").describe()


def test_the_prompt_teaches_every_word_of_the_witness_language() -> None:
    from evaluator.judges.model.prompts import render

    taught = render("witness")
    words = {
        word
        for part in witness_schema()["$defs"].values()
        for key in ("do", "expect")
        for told in [part.get("properties", {}).get(key, {})]
        for word in told.get("enum", [told["const"]] if "const" in told else [])
    }
    assert len(words) > 35
    assert [word for word in sorted(words) if word not in taught] == []


def test_one_module_of_the_evaluator_imports_litellm_and_recorded_judging_never_does() -> None:
    root = Path(__file__).parents[3]
    importing = [
        path.name
        for path in (root / "evaluator").rglob("*.py")
        if re.search(r"^\s*(?:import|from) litellm\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert importing == ["litellm_chat.py"]
    script = "import sys; from evaluator.judges.catalogue import find_judges; find_judges('recorded'); print('litellm' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=True)
    assert ended.stdout.strip() == "False"


def test_the_recorded_judge_claims_what_its_witnesses_show(tmp_path: Path) -> None:
    judge = find_judges("recorded").judge
    judge.check()
    judge.carry([])
    plan, _ = plan_case("plant-shop", read_rubric(SHIPPED / "plant-shop"), None)
    case = cast(Case, SimpleNamespace(case="plant-shop"))
    text = CriterionText(criterion_index=3, rubric_id="r", criterion="The code takes 15 % off.")

    def attempt(sub: str, _witness: Witness) -> Replay:
        return Replay(app="submission", purpose="propose", outcome="held" if sub == "a" else "failed")

    proposal = judge.in_case(cast(Exhibits, None)).judge(case, text, plan.criteria[2], attempt)
    assert [(claim.sub, claim.holds) for claim in proposal.claims] == [("a", True), ("b", False)]
    judge.stop()
