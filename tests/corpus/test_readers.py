"""An exception of a library that reads data is about the data, wherever its words are not known."""

from __future__ import annotations

import importlib
import io
import re
import sys
import traceback
from collections.abc import Callable

import pytest

from sagefit.failures import diagnose
from sagefit_launcher import readers
from sagefit_launcher.last_words import last_words

RULE = "words: a reader's exception"
PACKAGES = "/home/user/env/lib/python3.11/site-packages"
OF_DATA = [
    ("pydicom.errors.InvalidDicomError: preamble and prefix are not there", ""),
    ("zipfile.BadZipFile: something new", ""),
    ("lzma.LZMAError: something new", ""),
    ("_csv.Error: line contains NUL", ""),
    ("xml.etree.ElementTree.ParseError: not well-formed: line 3, column 2", ""),
    ("pyarrow.lib.ArrowInvalid: something new", ""),
    ("acme.shards.CorruptShardError: no. 7", ""),
    ("DecodingError: frame 7", ""),
    ("pydicom.errors.InvalidDicomError: no header, use force=True to read it all the same", ""),
    ("pyogrio.errors.DataSourceError: something new", ""),
    ("acme.MissingDataError: something new", ""),
    ("av.error.InvalidDataError: [Errno 1094995529] something new: 'a.mp4'", ""),
    ("ValueError: something new", f"{PACKAGES}/statsmodels/base/data.py"),
    ("ValueError: something new", f"{PACKAGES}/nibabel/spatialimages.py"),
    ("OSError: something new", f"{PACKAGES}/h5py/_hl/files.py"),
    ("OSError: something new", "src/netCDF4/_netCDF4.pyx"),
    ("ValueError: something new", f"{PACKAGES}/numpy/lib/_format_impl.py"),
    ("ValueError: something new", f"{PACKAGES}/pandas/io/parsers/c_parser_wrapper.py"),
    ("RuntimeError: something new", "/usr/lib/python3.10/json/decoder.py"),
]
OF_OTHERS = [
    ("ValueError: something new", "/home/user/project/train.py"),
    ("ValueError: something new", "/home/user/project/json/train.py"),
    ("ValueError: something new", f"{PACKAGES}/pandas/core/frame.py"),
    ("TypeError: read_csv() got an unexpected keyword argument 'sepp'", f"{PACKAGES}/pandas/io/parsers/readers.py"),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'a'", f"{PACKAGES}/PIL/Image.py"),
    ("OSError: [Errno 5] Input/output error", f"{PACKAGES}/h5py/_hl/files.py"),
    ("pickle.PicklingError: Can't pickle <function f>", ""),
    ("lmdb.MapFullError: mdb_put: environment mapsize limit reached", ""),
    ("av.error.FileNotFoundError: [Errno 2] No such file or directory: 'a.mp4'", ""),
    ("acme.BadDatabaseError: something new", ""),
    ("Bio.Entrez.ServerError: something new", ""),
    ("requests.exceptions.JSONDecodeError: Expecting value", ""),
    ("httpx.DecodingError: of an answer", ""),
    ("yaml.parser.ParserError: while parsing a block mapping", ""),
    ("RuntimeError: the decoder is corrupt", ""),
    ("ValueError: Expected 2D array, got 1D array instead:", f"{PACKAGES}/sklearn/utils/validation.py"),
    ("lxml.etree.XPathEvalError: Invalid expression", ""),
    ("ValueError: not with allow_pickle=False", f"{PACKAGES}/numpy/lib/_format_impl.py"),
    ("AttributeError: module 'json' has no attribute 'laods'", "/usr/lib/python3.10/json/decoder.py"),
]


def _raised(text: str, frame: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/home/user/project/train.py", line 4, in <module>',
        "    rows = load(path)",
        f'  File "{frame or "/home/user/project/load.py"}", line 99, in f',
        "    raise failed",
        text,
    ]


@pytest.mark.parametrize(("text", "frame"), OF_DATA)
def test_an_exception_of_a_reader_is_about_the_data(text: str, frame: str) -> None:
    match, said = last_words((), _raised(text, frame))
    assert match
    assert (match.pattern.failure_class, said, match.is_weak) == ("data", text, True)
    assert match.pattern.glob == RULE
    assert diagnose(log=_raised(text, frame)).failure_class == "data"


@pytest.mark.parametrize(("text", "frame"), OF_OTHERS)
def test_another_exception_is_not(text: str, frame: str) -> None:
    match, _ = last_words((), _raised(text, frame))
    assert match is None or match.pattern.glob != RULE


def test_what_python_itself_does_not_open_is_no_matter_of_a_file() -> None:
    log = _raised("ValueError: embedded null byte", f"{PACKAGES}/PIL/Image.py")
    assert diagnose(log=log).failure_class == "data"
    for opens in ('fp = builtins.open(name, "rb")', "with open(name) as fp:"):
        assert diagnose(log=[*log[:-2], f"    {opens}", log[-1]]).failure_class == "code"


def test_a_text_that_is_no_number_was_read_unless_it_is_a_setting() -> None:
    for text in (
        "ValueError: could not convert string to float: 'york'",
        "ValueError: invalid literal for int() with base 10: ''",
    ):
        log = _raised(text, f"{PACKAGES}/gensim/models/keyedvectors.py")
        for source, told in (
            ("weights = [float(x) for x in parts[1:]]", "data"),
            ('rank = int(os.environ["RANK"])', "code"),
            ("batch = int(args.batch)", "code"),
            ("epochs = int(sys.argv[1])", "code"),
        ):
            assert diagnose(log=[*log[:-2], f"    {source}", log[-1]]).failure_class == told


def test_only_an_exception_counts() -> None:
    assert diagnose(log=["epoch 1", "wave.Error in an old log, once"]).failure_class == "code"


def test_a_lack_of_memory_comes_first() -> None:
    for text in ("OSError: cannot allocate memory", "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"):
        assert diagnose(log=_raised(text, f"{PACKAGES}/h5py/_hl/files.py")).failure_class.endswith("_memory")


def _of_gzip() -> None:
    gzip = importlib.import_module("gzip")
    gzip.GzipFile(fileobj=io.BytesIO(b"no archive")).read()


def _of_json() -> None:
    importlib.import_module("json").loads('{"a": 1')


def _of_wave() -> None:
    importlib.import_module("wave").open(io.BytesIO(b"RIFX" + bytes(60)))


def _of_zipfile() -> None:
    importlib.import_module("zipfile").ZipFile(io.BytesIO(b"no archive"))


@pytest.mark.parametrize("read", [_of_gzip, _of_json, _of_wave, _of_zipfile])
def test_so_do_exceptions_that_this_python_raises(read: Callable[[], None]) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        read()
    log = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
    match, _ = last_words((), log.splitlines())
    assert match, (log, sys.version)
    assert match.pattern.failure_class == "data"


@pytest.mark.parametrize("text", ["json." + "a." * 2000, "a." * 2000, "Corrupt" * 570, "x" * 4000])
def test_long_lines_are_read_once(text: str) -> None:
    assert readers.complains(text, re.sub(r"\W", "/", text)) in (True, False)
