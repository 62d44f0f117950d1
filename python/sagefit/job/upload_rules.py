"""What may not be uploaded: secrets, what belongs to the machine, and more than Terraform should carry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rich.filesize import decimal

from sagefit.job.key import Key, dotted
from sagefit.job.left_out import LeftOut, pattern_of, rendered
from sagefit.job.model import Job
from sagefit.job.problem import Problem
from sagefit.job.project import FIELD, KERNEL, inside, named_folders, platform_file, project_of
from sagefit.job.secret_texts import secrets_in
from sagefit.job.secrets import secret_file
from sagefit.job.uploads import MOST_FILES, Found, Look, Upload, kind_of
from sagefit.job.values import Source
from sagefit.paths import display

MOST_BYTES = 5 * 1000**3
"""Of one upload: Terraform reads all of it for the plan and again for the apply."""

_MOST_NAMED = 3
_MOST_LISTED = 20
_STAYS = "and what is uploaded stays in the versions of a bucket"
_FROM_TEXT = "let the script read it from Secrets Manager with the execution role; or "
_IN_S3 = "copy the data to S3 and give its s3:// uri"


def upload_problems(job: Job) -> Iterator[Problem]:
    """Every problem of the uploads of ``job`` that paths and names show: no file is opened."""
    for upload in job.uploads:
        misplaced = _misplaced(job, upload)
        if misplaced:
            yield misplaced
        elif _is_there(upload):
            yield from _inside(job, upload)


def check_texts(job: Job) -> None:
    """Raise SagefitError where a small text file that ``job`` uploads holds a credential."""
    found: list[Problem] = []
    for upload in job.uploads:
        if _is_there(upload):
            texts = secrets_in([path for path in upload.files() if upload.name(path) not in upload.allowed])
            names = [(upload.name(path), line, what) for path, (line, what) in texts.items()]
            found += _secrets(upload, [(f"{name}:{line}", name, what) for name, line, what in names], _FROM_TEXT)
    if found:
        raise job.refusal(found)


def outside_problems(job: Job, folders: Iterable[str]) -> Iterator[Problem]:
    """Uploads from outside of the project that the applied platform, with its ``folders``, does not allow."""
    allowed = (project_of(job.path), *(Path(folder) for folder in folders))
    for upload in job.uploads:
        if not inside(upload.path, allowed):
            yield _outside(upload, f"the platform {job.platform} as it is applied", f"apply it with {FIELD}")


def not_local(field: Key, source: Source) -> Iterator[Problem]:
    """Problems of an input that is not local and has lists of local files."""
    knob = "remove it, or give a local path as uri"
    if source.exclude:
        message = "leaves files of a local path out, and this input has none"
        yield Problem((*field, "exclude"), message, knob)
    if source.allow_sensitive:
        message = "lets files of a local path be uploaded, and this input has none"
        yield Problem((*field, "allow_sensitive"), message, knob)


def _is_there(upload: Upload) -> bool:
    """Whether the upload exists; the rules of its field report a missing one."""
    with suppress(OSError, ValueError):  # what no file system can hold
        return upload.path.is_dir() or (not upload.is_code and upload.path.exists())
    return False


def _misplaced(job: Job, upload: Upload) -> Problem | None:
    path = upload.path
    if inside(path, KERNEL):
        message = f"{upload.written!r} is in /{path.parts[1]}, where the kernel shows devices and processes"
        return Problem(upload.field, message, "name files or folders of data")
    if not _is_there(upload):
        return None
    if special := kind_of(path.stat().st_mode):
        return Problem(upload.field, f"{upload.written!r} is {special}, and no file", "name a file or folder of data")
    if inside(path, (project_of(job.path),)) or inside(path, named_folders(job.platform)):
        return None
    where = f"{display(platform_file(job.platform))}"
    return _outside(upload, where, f'let the platform allow it, in {where}: {FIELD} = ["{path.parent}"]')


def _outside(upload: Upload, where: str, knob: str) -> Problem:
    message = f"{upload.written!r} ({upload.path}) is outside of the job's project, and {where} does not allow it"
    return Problem(upload.field, message, f"move it into the project, copy it to S3 and give its uri, or {knob}")


def _inside(job: Job, upload: Upload) -> Iterator[Problem]:
    found = upload.look()
    yield from _links(job, upload, found)
    for name, kind in found.special[:_MOST_NAMED]:
        yield Problem(upload.field, f"{name} is {kind}, and no file", _leave_out(upload, [pattern_of(name)]))
    yield from _foreign(upload, found.foreign)
    yield from _named_secrets(job, upload, found)
    if not upload.is_code and not found.files and not found.links and not found.foreign:
        message = f"{upload.written!r} is an empty folder: no file is in it"
        if upload.path.is_dir() and any(path.is_file() for path in upload.path.rglob("*")):
            message = f"exclude leaves no file of {upload.written!r}"
        yield Problem(upload.field, message, "put the data there, or name another folder")
    size = sum(found.files.values())
    if len(found.files) > MOST_FILES:
        message = f"{upload.written!r} has {len(found.files):,} files, and Terraform uploads {MOST_FILES:,}"
        yield Problem(upload.field, message, f"leave some out with {_exclude(upload)}, or {_IN_S3}")
    elif size > MOST_BYTES:
        message = f"{upload.written!r} has {decimal(size)}, and Terraform uploads {decimal(MOST_BYTES)}"
        yield Problem(upload.field, message, f"leave some out with {_exclude(upload)}, or {_IN_S3}")


def _links(job: Job, upload: Upload, found: Look) -> Iterator[Problem]:
    """A link must lead to a file: for code in the code's folder, for an input anywhere in the project."""
    place = "the folder" if upload.is_code else "the project"
    folders = (upload.path,) if upload.is_code else (upload.path, project_of(job.path))
    for name in found.links:
        path = upload.path / name
        if name not in found.files or not _leads_inside(path, job, folders, is_code=upload.is_code):
            message = f"{name} is a link to a folder, to nothing, or out of {place}"
            knob = f"copy what it points to, or {_leave_out(upload, [pattern_of(name)])}"
            yield Problem(upload.field, message, knob)


def _leads_inside(path: Path, job: Job, folders: tuple[Path, ...], *, is_code: bool) -> bool:
    target = path.resolve()
    return inside(target, folders) or (not is_code and inside(target, named_folders(job.platform)))


def _named_secrets(job: Job, upload: Upload, found: Look) -> Iterator[Problem]:
    secrets, own = dict(found.secrets), job.path.with_name(rendered(job.name))
    is_sent = own.is_relative_to(upload.path) and not LeftOut(upload.patterns).file(upload.name(own))
    if is_sent and (what := secret_file(str(own)) or secret_file(str(own.resolve()))):
        secrets[upload.name(own)] = what  # it is written there before the plan
    yield from _secrets(upload, [(name, name, secrets[name]) for name in sorted({*secrets} - {*upload.allowed})])
    for index, name in enumerate(upload.allowed):
        if name not in found.files and not (is_sent and name == upload.name(own)):
            message, knob = f"no file {name!r} is uploaded", "write a path as it is below the folder, or remove it"
            yield Problem((*upload.knob, "allow_sensitive", index), message, knob)


def _secrets(upload: Upload, found: Sequence[tuple[str, str, str]], first: str = "") -> Iterator[Problem]:
    """``found``: the place, the name of the file, and the kind of secret. ``first``: the remedy to try first."""
    if not found:
        return
    said = [f"{what}, {where}" for where, _, what in found[:_MOST_NAMED]]
    said += [f"{len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    names = list(dict.fromkeys(name for _, name, _ in found))[:_MOST_LISTED]
    knob = _leave_out(upload, [pattern_of(name) for name in names]) if upload.path.is_dir() else "name another file"
    allow = f"{dotted((*upload.knob, 'allow_sensitive'))}: {_json([*upload.allowed, *names])}"
    message = f"{upload.written!r} holds {', and '.join(said)}; {_STAYS}"
    yield Problem(upload.field, message, f"{first}{knob}; or, if nothing in it is secret, name it: {allow}")


def _foreign(upload: Upload, found: Sequence[Found]) -> Iterator[Problem]:
    groups: dict[str, list[Found]] = {}
    for one in found:
        groups.setdefault(one.kind.pattern(one.folder), []).append(one)
    if not groups:
        return
    said = [_said(group) for group in groups.values()]
    rest = [f"{len(said) - _MOST_NAMED} more"] if len(said) > _MOST_NAMED else []
    names = ", and ".join([*said[:_MOST_NAMED], *rest])
    of = "the code" if upload.is_code else "a local input"
    own = "" if upload.is_code else "; or, as data, give it an input of its own"
    message = f"{upload.written!r} holds {names}, and every file of {of} is uploaded"
    yield Problem(upload.field, message, _leave_out(upload, list(groups)) + own)


def _said(group: Sequence[Found]) -> str:
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return f"{group[0].kind.what}, {group[0].folder}{more} ({decimal(sum(one.size for one in group))})"


def _leave_out(upload: Upload, patterns: Sequence[str]) -> str:
    """How to leave more out, as people write it in a job file."""
    of = "" if upload.is_code else ", beside uri"
    return f"leave it out{of}: {_exclude(upload)}: {_json([*upload.exclude, *patterns])}"


def _exclude(upload: Upload) -> str:
    return "code.exclude" if upload.is_code else "exclude"


def _json(words: Iterable[str]) -> str:
    return json.dumps(list(dict.fromkeys(words)), ensure_ascii=False)
