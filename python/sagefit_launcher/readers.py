"""Libraries that read or check data: an exception of theirs says that the data is not what it should be.

The names are those of the Python packages for formats of tables, pictures, sound, science, text and archives, of the
standard library and of PyPI. What is as likely a setting (YAML, TOML) or an answer from a network is left out.
"""

from __future__ import annotations

import re

_PACKAGES = (
    *("bz2", "gzip", "lzma", "_lzma", "tarfile", "zipfile", "zlib", "py7zr", "rarfile", "zstandard", "lz4", "snappy"),
    *("blosc", "brotli", "csv", "_csv", "json", "simplejson", "orjson", "ujson", "ijson", "jsonlines", "msgpack"),
    *("cbor2", "fastavro", "avro", "fastparquet", "pyorc", "openpyxl", "xlrd", "pyxlsb", "pyreadstat", "lxml"),
    *("warcio", "conllu", "pypdf", "PyPDF2", "pdfminer", "docx"),
    *("PIL", "imageio", "tifffile", "pydicom", "nibabel", "rasterio", "fiona", "pycocotools", "plyfile", "laspy"),
    *("pyogrio", "shapefile", "cfgrib", "eccodes", "pyedflib", "wfdb", "openslide", "ezdxf", "ebooklib", "rosbags"),
    *("wave", "aifc", "soundfile", "audioread", "decord", "torchcodec", "numcodecs", "av", "mido", "pretty_midi"),
    *("netCDF4", "zarr", "tables", "h5py", "uproot", "obspy", "pysam", "anndata", "loompy", "gguf", "safetensors"),
    *("sentencepiece", "webdataset", "tfrecord"),
)
# Of larger libraries the part that reads, by its path.
_PARTS = (
    *("xml/etree", "xml/parsers", "xml/sax", "pandas/io", "pandas/_libs/parsers"),
    *("numpy/lib/format", "numpy/lib/_format_impl", "numpy/lib/npyio", "numpy/lib/_npyio_impl"),
    *("pandas/core/tools", "pandas/core/dtypes/astype"),
    *("scipy/io", "skimage/io", "astropy/io", "xarray/backends"),
    *("geopandas/io", "dask/dataframe/io", "dask/bytes", "mne/io", "trimesh/exchange", "torch_geometric/io"),
    *("gensim/models/keyedvectors", "gensim/corpora", "nltk/corpus", "sklearn/datasets", "timm/data/readers"),
    # What checks data before it is used.
    *("sklearn/utils/validation", "sklearn/preprocessing/_encoders", "sklearn/preprocessing/_label"),
    *("sklearn/utils/_encode", "sklearn/model_selection/_split", "statsmodels/base/data"),
    *("torchvision/io", "torchvision/datasets", "datasets/packaged_modules", "librosa/core/audio"),
    *("Bio/SeqIO", "Bio/AlignIO", "Bio/PDB/PDBParser", "Bio/PDB/MMCIF2Dict"),
)
# Of such libraries, and of those that do more than read, the exceptions that speak of a file.
_TYPES = re.compile(
    r"_?pickle\.UnpicklingError|binascii\.Error|pyarrow\.lib\.Arrow(?:Invalid|TypeError)"
    r"|pandas\.errors\.(?:ParserError|EmptyDataError|MergeError|IntCastingNaNError)|[\w.]{0,160}\bOutOfBoundsDatetime"
    r"|polars\.exceptions\.(?:ComputeError|SchemaError|NoDataError)|lmdb\.(?:Corrupted|Invalid|PageNotFound)Error"
    r"|pandera\.errors\.SchemaErrors?|great_expectations\.[\w.]{0,160}ValidationError|dateutil\.[\w.]{0,160}ParserError"
    r"|shapely\.errors\.\w{0,80}(?:Error|Exception)|rdkit\.Chem\.[\w.]{0,160}Exception|Bio\.(?!Entrez)[\w.]{0,160}Error"
    r"|java\.lang\.NumberFormatException|java\.text\.ParseException"
    r"|datasets\.exceptions\.(?:DatasetGeneration|DataFilesNotFound)\w*|[\w.]{0,160}\bDataLossError"
    r"|xml\.(?:etree|parsers|sax)\.[\w.]{0,160}(?:Error|Exception)\b"
    rf"|(?:{'|'.join(_PACKAGES)})\.[\w.]{{0,160}}(?:[Ee]rror|Exception|BadZipFile|BadGzipFile)\b"
)
# Of any library that speaks with no server: the exceptions whose name says that something cannot be read.
_NAMES = re.compile(
    r"(?!requests\.|httpx\.|aiohttp\.|urllib3\.|botocore\.|jwt\.|yaml\.|toml)(?:[A-Za-z_]\w{0,80}\.){0,8}\w{0,40}(?:Corrupt|Truncat"
    r"|Malformed|Checksum|Deserializ|Decod(?:e|ing)|Invalid(?:Data|File|Header|Protobuf|Archive)|UnidentifiedImage"
    r"|(?:Json|Xml|SAX|Csv)Pars|(?:Empty|Missing|Bad)Data(?!base))\w{0,40}\s?(?::|$)"
)
_PATHS = "|".join((*_PACKAGES, *_PARTS))
_OF_A_FRAME = re.compile(
    rf"(?:^|(?:site-packages|dist-packages|lib/python3\.\d+|src)/)(?:{_PATHS})(?:/|\.py[xi]?$|\.pxi$)"
)
# The exceptions of Python with which such libraries say it too. What has a number is the operating system's.
_BUILT_IN = re.compile(
    r"(?:ValueError|OSError|RuntimeError|EOFError|UnicodeDecodeError|Exception|struct\.error)\s?(?::|$)"
)
_OTHERWISE = re.compile(
    r"\[Errno -?\d{1,3}\]"  # FFmpeg's numbers are larger, and are its own
    r"|\b(?:FileNotFound|Permission|Import|ModuleNotFound|Attribute|Type|NotImplemented|Timeout)Error"
    r"|(?:Memory|MapFull)Error"
    # What the script made of the data, or asks of it.
    r"|\w*(?:XPath|XSLT|Query|Eval|Argument|Option|Usage)\w*Error"
    r"|Expected \dD array|inconsistent numbers of samples|\bfeatures?\b|out of memory"
)

# The script's own call is wrong: so say Python's exceptions only, where others advise how to read it all the same.
_OF_THE_CALL = re.compile(r"\b[a-z_]+=(?:True|False|None)\b")
# A text that should be a number came from what was read, unless it was made of an argument or a setting.
_NO_NUMBER = re.compile(
    r"ValueError: (?:could not convert string to (?:float|int|complex)\b|invalid literal for (?:int|float|complex)\b"
    r"|Unable to parse string )"  # CPython, pandas
)
_OF_A_SETTING = re.compile(r"environ|getenv|argv|\bargs?\b|\bopts?\b|conf(?:ig)?\b|cfg|param", re.IGNORECASE)

# Python's own ``open`` raises ValueError for what it is called with; for what a file holds nothing opens it.
_OPENS = re.compile(r"(?:^|[= ]|\bbuiltins\.|\bio\.)open\(")


def complains(text: str, frame: str, source: str = "") -> bool:
    """Whether an exception is a reader's about its input: by its line, and by the file and the line that raised it."""
    if _OTHERWISE.search(text) or (text.startswith("ValueError") and _OPENS.search(source)):
        return False
    if _NO_NUMBER.match(text):
        return _OF_A_SETTING.search(source) is None
    if _BUILT_IN.match(text):
        return _OF_A_FRAME.search(frame) is not None and _OF_THE_CALL.search(text) is None
    return any(named.match(text) for named in (_TYPES, _NAMES))
