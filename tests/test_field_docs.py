"""docs/field.md is true: its files are made, its commands run, and they say what the page says."""

import re
import shlex

import pytest
from conftest import ROOT
from test_docs import sessions, skeleton, stale

PAGE = (ROOT / "docs" / "field.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M))


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_example_is_real(tdc, tmp_path, monkeypatch, title):
    monkeypatch.chdir(tmp_path)
    (lines,) = re.findall(r"```python\n(.*?)```", EXAMPLES[title], re.S)
    exec(compile(lines, title, "exec"), {})
    ((line, output),) = sessions(EXAMPLES[title])
    result = tdc(*shlex.split(line)[1:])
    assert result.exit_code == 0, result.stderr
    told, output = result.stderr + result.stdout, output.rstrip("\n") + "\n"
    assert skeleton(told) == skeleton(output)
    assert not stale(output, told)
