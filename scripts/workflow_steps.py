"""workflow_steps.py JOB [WORKFLOW]: prints a bash script that runs the commands of a job without GitHub.

WORKFLOW is .github/workflows/ci.yml by default. Run the script as root, in a container or on a machine like
the job's, in a checkout. Or run it in an empty directory, with a command in the variable CHECKOUT that fills
the directory in place of actions/checkout. The script stops at the first step that fails. What only GitHub
can do, such as an expression or a condition, is an error."""

import shlex
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

WORKFLOW = Path(__file__).resolve().parents[1] / ".github/workflows/ci.yml"
_KEYS_OF_JOBS = {"name", "runs-on", "timeout-minutes", "container", "env", "steps"}
_KEYS_OF_STEPS = {"name", "run", "env", "working-directory", "uses", "with"}


class Unsupported(Exception):
    """The script cannot do what the workflow asks for."""


def exports(where: dict[str, Any]) -> list[str]:
    return [f"export {name}={shlex.quote(str(value))}" for name, value in where.get("env", {}).items()]


def lines_of_step(step: dict[str, Any]) -> list[str]:
    if unknown := step.keys() - _KEYS_OF_STEPS:
        raise Unsupported(f"a step has {', '.join(sorted(unknown))}")
    if "run" not in step:
        if not step["uses"].startswith("actions/checkout@"):
            raise Unsupported(f"a step uses {step['uses']}")
        return ["", f"# In place of {step['uses']}", 'eval "${CHECKOUT:-true}"']
    if "${{" in str(step):
        raise Unsupported(f"an expression in: {step['run']}")
    folder = [f"cd {shlex.quote(step['working-directory'])}"] if "working-directory" in step else []
    return [
        "",
        f"echo {shlex.quote('== ' + step.get('name', step['run'].splitlines()[0]))}",
        "(",
        *folder,
        *exports(step),
        step["run"].rstrip("\n"),
        ")",
    ]


def script(workflow: dict[str, Any], name: str) -> str:
    if name not in workflow["jobs"]:
        raise Unsupported(f"no job {name}; there are {', '.join(workflow['jobs'])}")
    job = workflow["jobs"][name]
    if unknown := job.keys() - _KEYS_OF_JOBS:
        raise Unsupported(f"job {name} has {', '.join(sorted(unknown))}")
    if workflow.get("defaults") != {"run": {"shell": "bash"}}:
        raise Unsupported("the default shell is not bash")
    image = job.get("container", job["runs-on"])
    lines = [
        "#!/usr/bin/env bash",
        f"# Job {name}, for {image if isinstance(image, str) else ' '.join(map(str, image.values()))}",
        "set -eo pipefail",
        'export CI=true GITHUB_WORKSPACE="$PWD"',
        *exports(workflow),
        *exports(job),
    ]
    for step in job["steps"]:
        lines += lines_of_step(step)
    return "\n".join(lines) + "\n"


def main() -> int:
    path = Path(sys.argv[2]) if len(sys.argv) > 2 else WORKFLOW
    try:
        print(script(YAML(typ="safe", pure=True).load(path), sys.argv[1]), end="")
    except Unsupported as problem:
        print(f"workflow_steps.py: {path}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
