"""What is wrong with the image of a job, by the table of AWS's images and the rules of registries and of the API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from sagefit.catalog import instances
from sagefit.job.image_table import Family, algorithms, frameworks, numbers
from sagefit.job.key import Key
from sagefit.job.limits import most
from sagefit.job.model import Image, Job
from sagefit.job.problem import Problem
from sagefit.nearest import did_you_mean
from sagefit_launcher.__main__ import OLDEST

DOCKERFILE = "Dockerfile"
_MOST_BUILT_TAG = 115
_DIGEST = r"sha256:[0-9a-f]{64}"
_XGBOOST = "is a moving target that AWS no longer supports in this form"
_NOT_IN_TABLE = "is not in the table of AWS's images"
_OTHER = "any other image is given by image.uri"
_IN_ECR = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.")


def image_problems(job: Job) -> Iterator[Problem]:
    """Problems of ``job.image``, except those of the instance type (`processor_problems`) and of the region."""
    image = job.image
    ways = ("uri", "repository", "framework", "algorithm", "algorithm_arn")
    given = [way for way in ways if getattr(image, way) is not None]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        message = f"exactly one of {', '.join(ways)} says which image; this job gives {said}"
        yield Problem(("image",), message, "keep one")
        return
    yield from _code_problems(job, given[0])
    yield from _strangers(image, given[0])
    if image.uri is not None:
        yield from _uri_problems(image.uri)
    elif image.repository is not None:
        yield from _repository_problems(job, image)
    elif image.framework is not None:
        yield from _known_problems(job, "framework", image.framework, frameworks())
    elif image.algorithm is not None:
        yield from _known_problems(job, "algorithm", image.algorithm, algorithms())


def processor_problems(job: Job, types: Iterable[tuple[Key, str]]) -> Iterator[Problem]:
    """Instance types that the job's image is not built for, as far as the table knows it."""
    family = _family(job.image)
    groups = [instances().get(group.instance_type) for group in job.resources.instance_groups]
    shared = any(known and known.gpu_count for known in groups)  # groups share one image, which is the one for GPUs
    for field, ml_type in types:
        instance = instances().get(ml_type)
        if family is None or instance is None or (shared and not instance.gpu_count and not instance.trainium):
            continue
        if instance.trainium:
            message = f"the table knows no image of {family.name} for {ml_type} (Trainium)"
            yield Problem(field, message, "give image.uri, or use another type")
        elif (processor := "gpu" if instance.gpu_count else "cpu") not in family.processors:
            only = f"AWS publishes images of {family.name} for {' and '.join(family.processors).upper()} instances only"
            message = f"{ml_type} is a {processor.upper()} instance, and {only}"
            yield Problem(field, message, "use another type, or give image.uri")


def region_problems(job: Job, region: str) -> Iterator[Problem]:
    """Images, those of processing steps too, that are in another region than the platform's, or not published in it."""
    images: list[tuple[Key, Image]] = [(("image",), job.image)]
    images += [
        (("processing", index, "image"), Image(**step.image.model_dump())) for index, step in enumerate(job.processing)
    ]
    for field, image in images:
        family = _family(image)
        exact = family.exact(image.version) if family else None
        if family and exact and region not in (regions := family.regions(exact)):
            message = f"{family.name} {exact} is not published in {region}, but in {', '.join(regions)}"
            knob = "choose another image.version, or copy the image to your own repository and give image.repository"
            yield Problem(field, message, knob)
        way, address = ("uri", image.uri) if image.uri else ("repository", image.repository)
        if (found := _IN_ECR.match(address or "")) and found[1] != region:
            message = f"the image is in {found[1]}, and SageMaker in {region} takes images of its own region only (API)"
            knob = "copy it to a repository there, by a replication rule of ECR for example, and give that one"
            yield Problem((*field, way), message, knob)


def _family(image: Image) -> Family | None:
    return frameworks().get(image.framework or "") or algorithms().get(image.algorithm or "")


def _code_problems(job: Job, way: str) -> Iterator[Problem]:
    if job.code is None and way == "framework":
        message = "a framework image trains with your script"
        yield Problem(("code",), message, "add code.source_dir and code.entry_point")
    if job.code is not None and way in ("algorithm", "algorithm_arn"):
        yield Problem(("code",), "a built-in algorithm brings its own code", "remove code, or use image.framework")


def _strangers(image: Image, way: str) -> Iterator[Problem]:
    """Fields that belong to another kind of image: they would have no effect."""
    homes = {
        ("repository",): ("tag", "digest", "build"),
        ("framework", "algorithm"): ("version",),
        ("framework",): ("python_version",),
    }
    for ways, fields in homes.items():
        for field in fields:
            if way not in ways and getattr(image, field) is not None:
                message = f"belongs to image.{' or image.'.join(ways)}, and this job gives image.{way}"
                yield Problem(("image", field), message, "remove it")


def _uri_problems(uri: str) -> Iterator[Problem]:
    """CreateTrainingJob takes registry/repository[:tag] or registry/repository[@digest]."""
    field, longest = ("image", "uri"), most("image.uri")
    if not uri:
        yield Problem(field, "is empty", "write registry/repository:tag, or remove image.uri and name a framework")
    if len(uri) > longest:
        message = f"{len(uri)} characters; SageMaker takes {longest}"
        yield Problem(field, message, "use a shorter repository name or tag")
    name, at, digest = uri.partition("@")
    if at and not re.fullmatch(_DIGEST, digest):
        message = "a digest is @sha256: and 64 hexadecimal digits"
        yield Problem(field, message, "copy it from the registry")
    elif at and ":" in name.rpartition("/")[2]:
        yield Problem(field, "SageMaker takes a tag or a digest, not both", "remove the tag; the digest says all")
    if re.fullmatch(r"[^/]+/(sagemaker-)?xgboost:(1|latest)", uri):
        yield Problem(field, f"XGBoost tagged :1 or :latest {_XGBOOST}", "name a version, such as 1.7-1")


def _repository_problems(job: Job, image: Image) -> Iterator[Problem]:
    if (image.tag is None) == (image.digest is None):
        message = "a repository needs a tag or a digest, and not both"
        yield Problem(("image", "repository"), message, "add image.tag or image.digest, and keep one", alone=True)
    if image.tag is not None and not re.fullmatch(r"\w[\w.-]{0,127}", image.tag, re.ASCII):
        message = "a tag has 1 to 128 letters, digits, underscores, dots and hyphens, and begins with no dot or hyphen"
        yield Problem(("image", "tag"), message, "rename it")
    if image.digest is not None and not re.fullmatch(_DIGEST, image.digest):
        message = "a digest is sha256: and 64 hexadecimal digits"
        yield Problem(("image", "digest"), message, "copy it from the registry")
    if image.build is not None:
        yield from _build_problems(job, image.build, image)


def _build_problems(job: Job, build: str, image: Image) -> Iterator[Problem]:
    field = ("image", "build")
    if not (job.local(build) / DOCKERFILE).is_file():
        message = f"no {DOCKERFILE} in {build!r} (looked for {job.local(build) / DOCKERFILE})"
        yield Problem(field, message, "paths are relative to the job file; name the folder to build")
    if image.tag is not None and len(image.tag) > _MOST_BUILT_TAG:
        message = f"a tag of what is built has at most {_MOST_BUILT_TAG} characters, because a digest is added to it"
        yield Problem(("image", "tag"), message, "shorten it")
    if image.tag is None:
        message = "an image that Sagefit builds needs image.tag"
        yield Problem(field, message, "give image.tag instead of image.digest", alone=True)
    if image.repository != "":
        message = "images are pushed to the platform's own repository only"
        yield Problem(field, message, 'write repository: "", or remove build')


def _known_problems(job: Job, way: str, name: str, families: Mapping[str, Family]) -> Iterator[Problem]:
    family, image = families.get(name), job.image
    if family is None:
        knob = did_you_mean(name, families, f"known: {', '.join(sorted(families))}; {_OTHER}")
        yield Problem(("image", way), f"{name!r} {_NOT_IN_TABLE}", knob)
        return
    version = image.version
    if version is None and len(family.versions) > 1:
        newest = family.newest
        yield Problem(("image",), f"{way} {name!r} has no version", f"add image.version; the newest known is {newest}")
        return
    if name == "xgboost" and version in ("1", "latest"):
        message = f"XGBoost {version} {_XGBOOST}"
        yield Problem(("image", "version"), message, f"name one of {', '.join(family.versions)}")
        return
    exact = family.exact(version)
    if exact is None:
        message = f"{version!r} of {name} {_NOT_IN_TABLE}"
        known = ", ".join(family.aliases or family.versions)
        knob = f"did you mean {_nearest_version(version or '', family.known)}? Known: {known}; {_OTHER}"
        yield Problem(("image", "version"), message, knob)
        return
    pythons = family.versions[exact]
    python = image.python_version or max(pythons)
    if python not in pythons:
        message = f"{name} {exact} is not built for {python!r}"
        yield Problem(("image", "python_version"), message, f"remove it, or use {' or '.join(sorted(pythons))}")
    elif job.code is not None and (has := family.python(exact, python)) and has < OLDEST:
        needs = f"the launcher that starts code needs Python {OLDEST[0]}.{OLDEST[1]}"
        message = f"{name} {exact} has Python {has[0]}.{has[1]}, and {needs}"
        yield Problem(("image", "version"), message, "choose a newer version")


def _nearest_version(given: str, known: Iterable[str]) -> str:
    """The version whose numbers are nearest to those of ``given``; the first number counts most."""
    wanted = numbers(given)
    newest = max(known, key=numbers)
    if not wanted or wanted > numbers(newest):
        return newest
    return min(known, key=lambda version: [abs(a - b) for a, b in zip_longest(wanted, numbers(version), fillvalue=0)])
