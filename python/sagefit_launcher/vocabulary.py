"""What a line says in words that no pattern knows: which resource it names, and whether that ran out.

Tools word the same failure in ever new ways, but with few words: something could not be allocated, is exhausted, full,
not enough. This is the last thing to ask, of a line that tells of a failure; what it finds is only likely.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .patterns import WEAK, Match, Pattern

WORDS = "words"  # stands where a row of the table has its ``where``


def _any(*parts: str) -> str:
    return f"(?:{'|'.join(parts)})"


_FEW = r"(?:[\w.,/()\[\]'\"-]+ ){0,5}?"  # words in between
_TWO = r"(?:[\w-]+ ){0,2}?"
_RAM = r"(?:memory|mem|ram|vram|dram|hbm|heap|(?:address|swap|heap) space)\b"
_SIZE = _any(
    r"memory|mem|ram|vram|bytes?|[kmgt]i?b|size|space|storage|pool|cache|workspace|heap|region|segment|pages?|chunks?",
    r"buffers?|tensors?|arrays?|ndarray|matrix|vector|blocks?|arena|0x[0-9a-f]+|\d+",
)
_CANNOT = _any(
    r"can ?not|can't|could ?n[o']t|could not|did(?: not|n't)|unable to|(?:was|is|were|are) not able to",
    r"fail(?:ed|s|ure|ing)? (?:to|in|on|at|when|while)|errors? (?:when|while|in|on|trying to|during|for)",
)
_ALLOCATE = _any(r"(?:re|m|c|de)?alloc(?:ate|ating|ation)?|\w*malloc|\w*mem(?:ory)?_?alloc\w*|mmap|reserve|commit")
_LACKS = re.compile(
    _any(
        # Out of it.
        rf"\bout[ -]?of[ -](?:the )?(?:[\w-]+[ -]){{0,3}}?{_RAM}",
        r"out_?of_?(?:\w+_)?memory|outof\w{0,8}memory|memory_?limit_?exceeded(?!_)|mem_?limit_?reached",
        r"(?<![\w-])oom(?:[- ]?(?:kill(?:ed|er|ing)?|error|exception|event))?(?![\w-])(?!\W{0,3}(?:true|false"
        r"|none|null|\d))",
        # Not enough of it.
        rf"(?:\bnot|n't|\bwithout|\bunlikely to) (?:have |be |find |get )?(?:enough|sufficient|any (?:free"
        rf"|more)) {_FEW}{_RAM}",
        rf"\b(?:insufficient|inadequate|too (?:little|few)|lack of|short of|low on|exhausted) {_FEW}{_RAM}",
        rf"\bno (?:more |free |available |remaining |sufficient ){_TWO}{_RAM}|\bno {_RAM} (?:left|available|remaining)",
        rf"\b(?:free|available) {_RAM} .{{0,60}}\b(?:less|smaller|lower) than",
        # A bank, a queue or a buffer of memory is a thing of the script's own, with slots.
        rf"\b{_RAM} (?!bank|queue|buffer|store)(?:\w+ ){{0,3}}(?:exhaust|exceed|deplet|overflow|full\b|insufficient"
        r"|not (?:enough|sufficient)|shortage)",
        rf"\b{_RAM} (?:\w+ ){{0,3}}(?:ran out|runs out|is low\b|too low)",
        r"\b(?:rss|resident (?:set|memory)|memory)(?: size| usage)?(?: of)? \d[\d.]* ?[kmgt]i?b (?:is )?"
        r"(?:over|above|beyond) "
        rf"{_FEW}(?:budget|limit|quota|share|cap)\b",
        rf"\b{_RAM} (?:usage )?(?:(?:of )?\d[\w.]* ?(?:[kmgt]i?b )?)?is (?:over|above|beyond) {_FEW}"
        r"(?:budget|limit|quota)\b",
        rf"\b(?:us(?:ed|es|ing)|consum(?:ed|es|ing)|took|taken|fill(?:ed|ing)) (?:up )?all (?:of )?(?:the |your |its )?"
        rf"{_TWO}{_RAM}",
        r"\b(?:need|require|request)\w* (?:\w+ ){0,5}?\d[\w.,]* ?(?:[kmgt]i?b|bytes?)\b.{0,60}\b(?:only|but)\b.{0,60}"
        r"\b(?:available|free|left)\b",
        # Too much for it.
        rf"\bexceed(?:s|ed|ing)? {_FEW}{_RAM}|\b(?:more|larger|bigger"
        rf"|greater) (?:{_RAM} )?than {_FEW}(?:available|free) {_RAM}",
        rf"(?:n't|\bnot|\bcan't|too (?:large|big)(?: to)?) fit {_FEW}(?:in|into|on|within) {_FEW}(?:{_RAM}"
        rf"|gpus?\b|device\b)",
        # Not to be had.
        rf"\b{_CANNOT} (?:re)?map {_FEW}{_RAM}",
        rf"\b{_CANNOT} (?:[\w-]+ ){{0,3}}?{_ALLOCATE}\b(?:\W{{0,3}}$|.{{0,80}}?\b{_SIZE}\b|[:(.])",
        rf"\b{_RAM} .{{0,40}}?\b(?:could not|cannot) be (?:allocated|reserved|mapped)",
        r"(?<![a-z])(?:re|m|c|de)?alloc\w*:?(?: \(?:{0,2}\d[\w.]*\)?| \w+){0,8} (?:fail(?:ed|ure|s)?|error|denied"
        r"|not possible)\b",
        r"\b\w*(?:malloc|calloc|memalign|mem(?:ory)?_?alloc|mmap)\w*(?:\(.{0,40}?\))?:? (?:\w+ ){0,3}"
        r"(?:fail(?:ed|ure|s)?|error|returned (?:null|nil|-1|enomem))\b",
        r"(?<![a-z])alloc(?:ation)?[ _]?(?:error|failed|failure)\b",
        r"\bbad_?alloc|\bbad[ _]allocation|\b(?:\w*[._])?memoryerror\b|\benomem\b",
        r"\berrno[ :=]{0,3}12\b|\bos error 12\b",
        # Ended for it.
        rf"\b(?:kill|evict|terminat|abort)\w* .{{0,60}}\b(?:low|exceed|excessive|high|out of|over"
        rf"|limit).{{0,30}}{_RAM}",
        rf"\b{_RAM} (?:pressure|limit|usage)\b.{{0,60}}\b(?:kill|evict|terminat|exceed|reach)",
        r"内存不足|显存不足|內存不足|顯存不足|記憶體不足|メモリ(?:が)?不足|메모리 부족|memoria insuficiente"
        r"|memoria insufficiente",
        r"nicht genug speicher|mémoire insuffisante|недостаточно памяти",
    )
)
_NOT_MEMORY = re.compile(  # allocations of other things, and other faults of memory
    r"out of range|illegal memory access|memory format|pin_memory|static tls|too many open files|1eb memory"
    r"|invalid argument|not a failure|corruption"
    # What a program itself calls a memory: a store of its own.
    r"|\b(?:replay|rollout|episodic|semantic|agent|chat|conversation\w*|experience|prioriti[sz]ed|associative) memory\b"
)
_OF_OTHER = re.compile(
    r"alloc\w* (?:an? |the |any |new |enough |some |requested |static |dynamic )*(?:\w+ )?"
    r"(?:ports?|address(?:es)?|ips?|sockets?|ids?|pids?|ptys?|ttys?|threads?|nodes?|gpus?|tpus?|jobs?|slots?|instances?"
    r"|hosts?|machines?|servers?|(?:file )?descriptors?|quotas?|channels?|streams?|lock|tls)\b(?! memory)"
)
# Said before it in the same sentence, these make it advice, a fear, or its opposite.
_SENTENCE = re.compile(r"[.;!?]\s|: ")
_GUESS = r"(?:maybe|perhaps|possibly)"
_SUPPOSED = re.compile(rf"\b{_GUESS}\b")
_UNREAL = re.compile(
    r"\b(?:if|unless|until|in case|whenever|should|would|can(?! ?not|'t)|could be|avoid\w*|prevent\w*|try"
    r"|consider|hint|tip"
    r"|note that|handl\w+|catch\w*|reduc\w+|help(?:s|ful)?|without|never|no longer|instead of|assuming"
    r"|simulat\w+|expect\w*"
    rf"|{_GUESS}"
    r"|ignor\w+|skip\w*|survived|recover\w*|previous(?:ly)?|check(?:ing|er|s)?|monitor\w*|detect(?:or|ion)"
    r"|on[_-]oom|safe)\b"
    r"|\b(?:no|not|0|zero|non)[ -]$|--$"
)
_UNREAL_AFTER = re.compile(
    r"\W{0,3}(?:avoid|safe|free\b|prevent|handl|recover|protect|score|detect|[=:] ?(?:true|false|none)\b)"
)
_OF_A_KNOB = re.compile(r"\W{0,3}(?:mode|support|guard|check|option|detection|flag)\b")

_GPU = re.compile(
    r"cuda|gpu|vram|hbm|\bhip|rocm|cudnn|cublas|cufft|cusolver|cusparse|cupy|nccl|rccl|\bcu_?mem|\.cuh?\b|thrust"
    r"|rmm/mr/device|\b(?:cu|rt|aclrt|cnrt|musa|ze|sycl)_?(?:mem|malloc)"
    r"|get_temporary_buffer|\brmm\b|\bxla\b|jaxlib|resource[ _]?exhausted|bfc_a|\btpu|neuron|\bnrt|\bmps\b"
    r"|mtlbuffer|\bmetal\b"
    r"|\bxpu|\bnpu|\bhpu|devmem|synhelper"
    r"|\bdcu\b|\bmlu\b|ascend|vulkan|opencl|sycl|level[-_ ]zero|tensorrt|\btrt\b|\bacl\b"
    r"|optix|kv[ _-]?cache"
    r"|_device_|device[ _]memory|on (?:the )?device|\bdevice(?:_?id)?[:=]? ?\d|\bworkspace|显存|顯存"
)
_HOST = re.compile(
    r"(?:cpu|host|system|main|physical|java|jvm|node|container|pod|worker)[ _](?:memory|ram|alloc)"
    r"|cpu_?allocator|heap space"
    r"|(?:memory )?on (?:the )?(?:cpu|host|node)\b|\bcgroup|(?:device|allocator)[ =(:'\"]*/?cpu\b|kubelet|numpy"
)
_CERTAINLY_GPU = re.compile(r"cuda error|cuda out of memory|cudamalloc")
_ON_CARD = re.compile(r"\.cuda\(|\.to\(['\"]?(?:self\.)?(?:cuda|device|gpu)|torch\.cuda|cupy|device=['\"]?cuda")

_SHARED = re.compile(r"/dev/shm|\bshared[ _-]?memory|\bshm(?:_open|get|at|em)?\b|\bshmem|</torch_|/psm_")  # noqa: S108
_SHARED_BY_FILES = re.compile(r"/dev/shm|shm[-_](?:size|open)|shmget")  # noqa: S108
_SHARED_ON_GPU = re.compile(r"per block|per sm\b|hardware limit|triton|kernel|dynamic|num_stages|block size|smem|ptxas")
_SHARED_FAILS = re.compile(
    rf"{_CANNOT} (?:\w+ ){{0,3}}?(?:creat|open|attach|alloc|resiz|extend|map|writ|mmap|truncat|initiali[sz])"
    r"|bus error|too small|\bexceed"
    r"|(?:creat|open|attach|allocat|extend|truncat|mapp?)\w* .{0,40}fail|(?:shm_open|shmget|shmat"
    r"|ftruncate)\w* .{0,20}(?:fail|error)"
    r"|fail\w* .{0,20}(?:shm_open|shmget|shmat)|not enough|insufficient|no space|is full|exhaust|ran out|out of"
)
_SHARED_OTHERWISE = re.compile(
    r"exists?\b|no such|not found|permission|denied|too many open|invalid argument|errno 2\b"
)

_SPARE = r"(?:(?:more|free|available|enough|usable|the|disk|drive|local|tmp|temporary|scratch|storage)[ -]){0,3}"
_FULL = re.compile(
    rf"\b(?:not enough|insufficient|out of|lack of|low on|not sufficient) {_SPARE}(?:space|disk|storage)\b"
    rf"|\bno {_SPARE}space\b"
    r"|\bspace left\b|\bspace (?:on \S+ )?(?:is )?(?:exhausted|insufficient)\b|\bstoragefull\b|\bdisk ?quota\b"
    r"|\b(?:disk|disc|volume|file ?system|partition|storage|device|drive|/tmp)(?: /\S+)? (?:is |was |are "
    r"|got |may be |might be )?(?:full\b|exhausted)"
    r"|\bwrote only \d+ of \d+ bytes\b"  # tar
    r"|\benospc\b|\bedquot\b|\berrno[ :=]{0,3}(?:28|122)\b|\bos error (?:28|122)\b|\bquota\b.{0,30}\b(?:disk|inodes?"
    r"|file ?system|home)\b"
    r"|(?:disk|storage) (?:\w+ ){0,3}(?:exceed|exhaust|not enough|insufficient)|exceed\w* (?:\w+ ){0,4}(?:disk"
    r"|storage|ephemeral)"
)
_NOT_DISK = re.compile(
    r"(?:memory|address|swap|heap|search|action|color|name|parameter)[ _]?space|workspace|storage class"
    r"|\bspace: expected \d"  # of a buffer
)

_MISSING = _any(
    r"no such file|not found|n[o']t exist|not exist|missing|(?:is|are) empty|empty \S* ?file|nosuch(?:key"
    r"|bucket)|\(404\)",
    r"no (?:\w+ ){0,3}(?:files?|objects?|shards?|samples|images|records|rows|examples)\b",
    r"(?:cannot|could not|unable to) (?:open|read|find)",
)
_INPUT = _any(
    r"/opt/ml/input/data|s3://|\bs3 (?:key|object|prefix|uri|bucket)|sm_channel|(?:head|get)object",
    r"\b(?:input|data|train|training|validation|test) channel\b",
)
_FORMATS = _any(
    r"gz(?:ip(?:ped)?)?|zip|tar|7z|bz2|bzip2|xz|zstd|lz4|hdf5|parquet|arrow|feather|avro|orc|npy|npz|pickle|csv|json",
    r"png|jpe?g|gif|tiff?|webp|image|wav|flac|mp3|mp4|audio|video|tfrecord|recordio|safetensors|checkpoint|archive",
)
# The names of files that hold data, never settings.
_FILES = _any(
    r"csv|tsv|jsonl|parquet|arrow|feather|avro|orc|np[yz]|h5|hdf5|nc|tfrecords?|rec|pkl|zarr|wav|flac|jpe?g|png|tiff?",
    r"bam|vcf|bed|fast[aq]|shp|dcm|nii|las|mp[34]|sqlite",
)
# A file of data that is looked for elsewhere than SageMaker puts inputs, by its folder or by its format.
_NO_FILE = r"(?:filenotfounderror|no such file)"
_DATA_PATH = _any(
    r"[/\\'\" ](?:\w*[_-])?(?:datasets?|data|train|val|valid|validation|annotations|images|corpus|checkpoints?|weights)"
    r"(?:[_-]\w*)?[/\\'\" ]",
    rf"\.(?:{_FORMATS}|{_FILES}|pth?|ckpt)\b(?!\.)",
)
# A tool's way to complain of a file: its path, then what is wrong.
_OF_A_FILE = (
    rf"^(?:[\w.-]{{1,40}}: )?[\w./-]{{1,200}}\.{_FILES}(?::\d+)*(?: line \d+)?: .{{0,200}}"
    r"(?:\b(?:instead of|outside|expected|unexpected|invalid|wrong|bad|missing|mismatch|not|cannot"
    r"|too (?:short|long|many|few))\b|n't\b|\bsays\b.{0,80}\bbut\b|, the .{0,60} says)"
)
_DAMAGED = _any(
    rf"\bnot (?:an? (?:valid |recogni[sz]ed |proper )?|valid ){_FORMATS}\b"
    r"(?! ?(?:object|string|array|dict|list|tensor))",
    r"\b(?:unexpected|premature) (?:eof|end[ -]of[ -](?:file|data|stream|archive))\b.{0,20}"
    r"(?:$|archive|data|stream|read)",
    r"\berror tokenizing data\b|\bcsv error on line\b",  # pandas, DuckDB
    r"\b(?:mmap|map|read|load) an empty file\b|\beoferror: ran out of input\b|\[op:decode",  # pickle, TensorFlow
    r"\bmagic (?:bytes|number) not found|\bno magic bytes found\b|\bfile is not a database\b",
    r"\b(?:riff|header|footer|trailer|atom|signature|eof marker)\b.{0,20}\b(?:not found|is absent|missing)"
    r"|\bcannot find zipfile directory\b|\bdoes not look like a tar archive\b|\bnot in gzip format\b"
    r"|\bunrecogni[sz]ed archive format\b",
    r"\bdoes(?: not|n't) match checksum\b|\bdisk image is malformed\b|\bmissing input files? for\b",
    r"\bsmiles parse error\b|\bdecompression error\b",
    r"\binvalid data found when processing input\b",  # FFmpeg
    # jq, libxml, V8, Go, Rust, PostgreSQL, R
    r"^(?:jq: )?parse error: |^jq: error \(at |:\d+: parser error : |\bis not valid json\b|\bend of json input\b",
    r"\bunexpected token .{1,20} in json\b|\binvalid character .{1,12} looking for beginning of\b",
    r"\bfound record with \d+ fields\b|\bexpected value\W.{0,20}\bline\b|\binvalid input syntax for (?:type )?\w",
    r"\bscan\(\) expected\b|\bmore columns than column names\b|\bline \d+ did not have \d+ elements\b",
    r"\binvalid compressed data|\bcompressed (?:file|data) (?:ended|is corrupt|is damaged)|\bcrc (?:error|mismatch"
    r"|check failed)|\bbad crc|\bcrc-?32\b.{0,20}(?:fail|bad|differ|mismatch)",
    rf"\b(?:bad|wrong|invalid) (?:magic|{_FORMATS} (?:file|header|data|signature))\b",
    rf"\b(?:file|data|{_FORMATS})\b.{{0,40}}\b(?:unknown|unrecogni[sz]ed) (?:\w+ )?format\b(?! code)",
    r"\bformat (?:is |was )?not recogni[sz]ed\b|\b(?:unknown|unrecogni[sz]ed) (?:file|image|audio) format\b"
    r"|\b(?:unknown|unrecogni[sz]ed) format of (?:the )?(?:\w+ )?(?:data|file)\b",
    r"\binvalid (?:file )?header\b(?! value)|\bdoes not start with (?:\w+ ){1,2}(?:id|magic|signature)\b",
    rf"\b{_CANNOT} parse (?!.*(?:argument|option|config|\.ya?ml)).{{0,80}}(?:\bas d?type\b|\b(?:at|in) (?:column|row)\b"
    r"|\bfrom \W?/)|\bunknown token .{1,20} in (?:\w+ )?file\b",
    r"\b(?:can ?not|could not) be (?:parsed|decoded)(?: as| to| into)? (?:an? )?(?:d?type|float|int(?:eger)?"
    r"|number|date|bool(?:ean)?)\b",
    r"\b(?:sha-?\d+|md5|checksum|hash|digest)(?: sum)? ?(?:mis-?match|(?:does|did)(?: not|n't) match|differs)\b",
    r"\beof: reading array\b|\beoferror: expected -?\d+ bytes, (?:read|got) -?\d+",
    r"\b(?:line|row|record) \d+\b.{0,20}\bexpected \d+ (?:columns?|fields?|values?|cells?)\b.{0,20}\b(?:found|got|saw)",
    r"\bdeserializing header|\b(?:file|archive|record|image|shard|dataset|database|checkpoint)s? (?:is|are|was|seems"
    r"|appears|may be)?(?: to be)? ?(?:corrupt|damaged|truncated|malformed|cut (?:off|short))",
    r"\bcorrupt(?:ed)? (?:\w+ ){0,2}(?:file|archive|record|image|shard|data\b|jpeg|block)",
)
_EXAMPLES = r"(?:valid |image |data |training )?(?:files|images|samples|rows|records|examples)"
_VALUES = _any(
    r"\b(?:input|labels?|targets?|features?|columns?)(?: \w+)? contains? (?:nan|inf|missing values)",
    r"\b(?:labels?|targets?)(?: values?)?(?: of)?(?: -?\d+)?(?: which)?(?: is| are)? (?:out of (?:bounds|range)\b"
    r"|outside (?:of )?the (?:valid )?range\b)",
    r"\blabels? must be (?:discrete values )?(?:in (?:the range (?:of )?)?[\[(0]|(?:non-?)?(?:positive|negative)\b)",
    r"\b(?:data(?: ?set)?|labels?|targets?) contains? only (?:one|a single) (?:class|label|value)",
    r"\bnan(?: values)? (?:is|are) not (?:supported|allowed) (?:for|in)\b",
    r"\bnone of \[.*\] are in the \[columns\]|\bcolumn names do(?:n't| not) match\b",
    r"\bnum_samples should be a positive\b|\b(?:dataset|data set|data ?loader) (?:is|was) empty\b",
    r"\b(?:inputs?|labels?|targets?|features?|columns?)(?: values?)? (?:is|are) (?:not finite|non-?finite|nan)\b",
    r"\b(?:references?|labels?|annotations?|targets?|masks?|captions?|images?) (?:is |are )?missing for \d",
    rf"\b{_CANNOT} convert (?:string )?'.{{0,80}}' to (?:an? )?(?:float|int|double|number)\b",
    r"\b(?:null|missing|nan)s? in \d[\d.]*% of (?:the )?rows\b|\bnumberformatexception: for input string\b",
    r"\bna/nan/inf in\b|\bunseen labels?\b|\blabels? should be (?:int|in|binary|either|non-?negative)\b",
    rf"\b(?:found|contains|loaded|got) (?:0|no|zero) {_EXAMPLES}\b|\bno {_EXAMPLES} (?:were |was )?(?:found|match)",
    r"\bmissing (?:required |expected )?columns?\b|\black(?:s|ing)? (?:the )?(?:required |expected )?columns?\b",
    r"\bkeys are not unique\b|\b(?:least populated|members in each) class(?:es)?\b",
    r"\bfailed (?:[\w-]+ )?validator\b|\bfailure cases\b",  # pandera
    r"!_?s(?:rc|size)\.empty\(\)",  # OpenCV, of a picture that it could not read
)
# Other things than data that are damaged, or end too early.
_NOT_DATA = re.compile(
    r"syntax(?! for (?:type )?\w|error: unexpected (?:token .{1,20} in json|end of json))"
    r"|heap|stack|memory|connection|response|http|while parsing|chunked|socket|rpc"
)
_REFUSED = _any(
    r"permission denied|access (?:is )?denied|accessdenied|(?:un|not )authori[sz]ed|forbidden|\(403\)",
    r"accesscontrolexception|: denied: ",
    r"(?:unable|not|failed|cannot) (?:able )?(?:to )?assume|operation not permitted",
    r"(?:not permitted|unable) to perform|lacks? (?:\w+ ){0,3}permission",
    r"not have (?:[\w.:/-]+ ){0,4}(?:permission|access|privilege)",
)
_GUARDED = _any(
    r"/opt/ml/(?!code)|s3://|\b(?:s3|iam|aws|kms|ecr|role)\b|arn:aws|bucket|botocore|when calling the"
    r"|credential|registry|pull image|service ?account|\buser[ =:]|\bapi group|cloud storage|hdfs|hadoop",
    r"\bopen file failed\b",
)
_CREDENTIALS = _any(
    r"\b(?:no|invalid|expired|missing|partial|bad|incorrect)\b(?: \w+){0,3}"
    r" (?:credentials?|security token|(?:access|api)[ _]key)",
    r"token (?:\w+ ){0,5}expired",
    r"(?:credentials?|api[ _]key) (?:\w+ ){0,5}(?:expired|invalid|not (?:found|provided)|missing|could not be)",
    rf"{_CANNOT} (?:find|locate|load|get) (?:\w+ ){{0,2}}credentials|gated (?:repo|model)|signaturedoesnotmatch",
    r"\brequired '[\w.]+' permission\b|\bauthentication (?:has |is |was )?fail(?:ed|ure)\b",
    r"\bfail(?:ed|ure)? to authenticate\b",
    r"\bpermission_denied\b|\baccess control error\b|\baccess denied for\b|\baccess to the resource is denied\b",
    r"\b40[13] (?:client error|forbidden|unauthori[sz]ed|get|put|post|head)\b|\bdoes not have [\w.]+\.\w+ access\b",
    r"^(?:[a-z_]\w{0,80}\.){0,8}\w{0,60}(?:authenticat|authori[sz]ation|unauthori[sz]ed|accessdenied|permissiondenied"
    r"|insufficientprivilege)\w{0,40}(?:error|exception|failed|failure)\w{0,20}:",
    r"\b(?:insufficient|missing|lack(?:s|ing|ed)?) (?:\w+ ){0,2}privileges?\b",
)
_TIME = (
    r"(?:(?:run )?time ?(?:limit|budget)|wall[ -]?(?:time|clock)"
    r"|max\w*[ -]?(?:run ?time|duration|execution time|seconds|minutes|hours)(?:=\d+)?)"
)
_LOST = (
    r"(?:remote end closed connection|connection (?:aborted|reset|refused|timed out|broken)|max retries exceeded"
    r"|(?:temporary )?failure in name resolution|name or service not known|read timed out)"
)
_NO_ENDPOINT = r"(?:could not connect to the endpoint url|(?:connect|read) timeout on endpoint url)"  # botocore
_NETWORK_DISK = r"(?:transport endpoint (?:is not connected|shutdown)|stale (?:nfs )?file handle|remote i/o error)"
_SERVER_ERROR = (  # the statuses of HTTP from 500 on, by number or by name
    r"(?:5\d\d (?:server )?error|bad gateway|gateway time-?out|service (?:is )?(?:temporarily |currently )?unavailable)"
)
_QUOTA = r"(?:quotas?|(?:service|account|instance|vcpu) limit)\b"
# The operating system says so of a device that does not answer, and names no cause.
IO_ERROR = re.compile(r"\[errno 5\]")
_OTHERS = tuple(
    (re.compile(expression), failure_class, words)  # in order: the first that is found decides
    for expression, failure_class, words in (
        (
            rf"{_INPUT}.{{0,200}}{_MISSING}|{_MISSING}.{{0,200}}{_INPUT}"
            r"|找不到(?:输入|数据|训练|样本).{0,4}文件|(?:输入|数据|训练|样本)文件.{0,60}不存在",
            "data",
            "input + missing",
        ),
        (
            rf"{_NO_FILE}(?!.*\.(?:py|sh|so|dll|exe|ya?ml|cfg)\b).{{0,300}}?{_DATA_PATH}"
            rf"|(?:^|[ '`\"])[\w./-]{{0,200}}\.{_FILES}\W{{1,3}}(?:for \w+: )?"
            r"(?:no such file|(?:does not|doesn't) exist|not found|is not recogni[sz]ed)"
            r"|\[path_not_found\]|\bspecified (?:bucket|key|blob|object|container) does not exist",
            "data",
            "input elsewhere + missing",
        ),
        (_DAMAGED, "data", "input + damaged"),
        (_VALUES, "data", "input + wrong values"),
        (
            rf"{_REFUSED}.{{0,200}}{_GUARDED}|{_GUARDED}.{{0,200}}{_REFUSED}|{_CREDENTIALS}"
            r"|: permission denied(?: \([^)]*\))?\.?$"
            r"|\bpermission denied for (?:schema|table|relation|database|sequence|view|function) ",  # PostgreSQL
            "permission",
            "access + refused",
        ),
        (
            rf"\b(?:due to|exceed\w*|reach\w*|over|hit|past|used(?: up)?)\b.{{0,20}}\b{_TIME}"
            rf"|\b{_TIME}\W? (?:\w+ ){{0,6}}(?:exceed|reach|expired|hit|used up|exhausted|elapsed)|\bwalltimereached\b"
            r"|\bbudget of \d[\d.]* ?(?:s|sec\w*|min\w*|h|hours?) (?:is |was )?(?:used up|exhausted|exceeded|over)\b"
            r"|\blonger than (?:the |its )?(?:max\w*|allowed|permitted) (?:time|duration|runtime)",
            "time",
            "time + over",
        ),
        (
            r"\b(?:spot|preemptible)(?:\b|_).{0,60}?(?:\b|_)(?:interrupt|reclaim|terminat|preempt|evict|rebalance|taken"
            r"|revok|lost)"
            r"|\b(?:nodes?|vms?|instances?|machines?|hosts?|clusters?)\b.{0,40}"
            r"\b(?:was|were|got|been|being|is|are) pre-?empted"
            r"|\bdue to (?:\w+ )?pre-?emption\b|\bpre-?emption ?(?:error|warning|signal|notice)|\bpre-?empted state\b"
            r"|\btermination (?:is )?imminent\b",
            "spot",
            "spot + taken",
        ),
        (
            rf"\b{_QUOTA}.{{0,60}}\b(?:exceed\w*|violat\w*|reach\w*|insufficient|exhausted|not enough|is 0\b)"
            rf"|\b(?:insufficient|exceed\w*|reached|not (?:have )?enough|n't have enough|over|above"
            rf"|exhausted)\b.{{0,60}}\b{_QUOTA}"
            r"|\bquota of \d+ .{0,40}\b(?:can ?not|less than)\b|insufficientquota|quotaexceeded"
            r"|(?<!backoff)limitexceeded",
            "quota",
            "quota + exceeded",
        ),
        (
            r"\b(?:insufficient|not enough|no more|lack of|not have sufficient|lacks)\b (?:[\w.-]+ ){0,4}"
            r"(?:capacity|instances? (?:is |are )?available)\b|stockout|insufficient\w*capacity"
            r"|zone \S+ does not have enough resources|capacity (?:\w+ ){0,3}(?:unavailable|not available|error)"
            r"|\bno (?:longer )?(?:any )?(?:\w+ )?(?:instances?|capacity|runtimes?|machines?|vms?) (?:\w+ ){0,2}?"
            r"available\b"
            rf"|\b{_CANNOT} (?:acquire|provision|procure|obtain) (?:\w+ ){{0,3}}"
            r"(?:resources?|capacity|instances?|nodes?|vms?|machines?|gpus?|tpus?)\b",
            "capacity",
            "capacity + lacking",
        ),
        (
            r"\b(?:throttl(?:ed|ing\w*)|rate exceeded|too ?many ?requests|rate ?limit ?(?:error|reached)"
            r"|internal ?server ?error|internalfailure"
            r"|encountered an internal error|internal_error|serviceunavailable"
            rf"|(?:ecc|nvlink|hardware) error|fallen off the bus"
            rf"|{_NETWORK_DISK}|{_SERVER_ERROR}|{_NO_ENDPOINT}|error code: (?:429|5\d\d)|node failure"
            r"|(?:node|host|vm|instance|machine|worker)(?: \d+)? (?:became|is|was marked(?: as)?) unhealthy"
            r"|(?:node|host|vm|instance|machine) (?:has |was |is |went )?(?:failed|recreated|rebooted"
            r"|restarted unexpectedly|crashed|unreachable|lost)"
            r"|rpc failed with status \W{0,3}unavailable|grpc_status\W{1,3}14|statuscode\.(?:unavailable|internal))\b"
            rf"|\b{_LOST}\b.{{0,300}}\bhttps?\b|\bhttps?(?::|connectionpool\().{{0,300}}\b{_LOST}\b",
            "internal",
            "service + fault",
        ),
        (IO_ERROR.pattern, "internal", "input/output error"),
        (
            r"\bkilled signal terminated program\b|^make: \*\*\* .{0,200}\berror 137$"  # GCC, make
            r"|\bsig ?kill\b|\bsignal:? ?(?:\(?9\b|killed)|\babruptly (?:died|terminated)"
            r"|\b(?:code|status|exit_?code)\b[ :=(]{1,3}(?:is )?(?:137|-9)\b|\b(?:returned?|with)\W{1,3}-9\b"
            r"|\bexit ?codes?[ :=]{1,3}\[[^\]]{0,80}(?<!\d)-9\b"
            r"|(?:^|[:\]] |/s|/it|[)\d] +)killed\b[. ]*(?:\(core dumped\))?$|\bkilled by (?:the )?(?:kernel"
            r"|(?:operating )?system|os)\b",
            "host_memory",
            "killed",
        ),
        (r": line +\d+: +\d+ bus error\b", "shared_memory", "a shell's bus error"),
        (
            r"\[spark_job_cancelled\]|\bdue to administrator command\b"  # Spark, PostgreSQL
            r"|(?:\d|[\])/s%:]) *\\?terminated$|\bcontrol-c\b|\binterruptexception\b"
            r"|\b(?:job|run|task|workload|training) (?:was |has been |is )?(?:deleted|cancel+ed|aborted|killed|stopped)"
            r" (?:at (?:the )?request of|by (?:the )?(?:user|owner|admin\w*|operator))",
            "stopped",
            "ended on request",
        ),
        (_OF_A_FILE, "data", "a file + a complaint"),
    )
)


def is_supposed(line: str, part: str) -> bool:
    """Whether the sentence before ``part``, in lower case, makes of it a guess."""
    return _SUPPOSED.search(_SENTENCE.split(line[: max(line.find(part), 0)])[-1]) is not None


def told(text: str, source: str = "", before: Sequence[str] = ()) -> Match | None:
    """The class that the words of one failed line tell, if any.

    ``source`` is the line of code that raised it; ``before`` are lines said just before, which may name the memory.
    """
    line = text.lower()
    found = _memory(line, source) or _other(line)
    if found == ("host_memory", "memory"):
        nearby = (_memory(each.lower(), "") for each in before)
        found = next((each for each in nearby if each and each[1] != "memory"), found)
    return Match(rule(*found), text) if found else None


def rule(failure_class: str, words: str) -> Pattern:
    """The pattern that stands for what is told without one, as weak as all of them."""
    return Pattern(failure_class, WORDS, f"words: {words}", WEAK, "what the words of a line mean", ())


def names_a_knob(text: str) -> bool:
    """Whether a line has words for a lack of memory, but each time they are the name of something to switch."""
    line = text.lower()
    found = list(_LACKS.finditer(line))
    return bool(found) and all(_OF_A_KNOB.match(line, each.end()) for each in found)


def _memory(line: str, source: str) -> tuple[str, str] | None:
    shared = _SHARED.search(line)
    of_a_kernel = _SHARED_ON_GPU.search(line) and not _SHARED_BY_FILES.search(line)
    otherwise = of_a_kernel or _SHARED_OTHERWISE.search(line)
    if shared and not otherwise and _SHARED_FAILS.search(line) and not _is_unreal(line, shared):
        return "shared_memory", "shared memory + fails"
    if not _lacks(line) or _is_full(line):
        return None
    if _HOST.search(line) and not _CERTAINLY_GPU.search(line):
        return "host_memory", "memory + host"
    if _GPU.search(line) or _ON_CARD.search(source):
        return "gpu_memory", "memory + gpu"
    return "host_memory", "memory"


def _lacks(line: str) -> bool:
    """Whether memory ran out, said as a fact."""
    return not _NOT_MEMORY.search(line) and any(
        not _is_unreal(line, found) and not _OF_OTHER.search(line[found.start() : found.end() + 40])
        for found in _LACKS.finditer(line)
    )


def _is_full(line: str) -> bool:
    found = _FULL.search(line)
    return found is not None and not _NOT_DISK.search(line) and not _is_unreal(line, found)


def _other(line: str) -> tuple[str, str] | None:
    if _is_full(line):
        return "disk", "disk + full"
    for vocabulary, failure_class, words in _OTHERS:
        found = vocabulary.search(line)
        if found and not _is_unreal(line, found) and not (failure_class == "data" and _NOT_DATA.search(line)):
            return failure_class, words
    return None


def _is_unreal(line: str, found: re.Match[str]) -> bool:
    """Whether the sentence makes of these words a condition, a help or a denial."""
    sentence = _SENTENCE.split(line[: found.start()])[-1]
    after = _UNREAL_AFTER.match(line, found.end()) or _OF_A_KNOB.match(line, found.end())
    return _UNREAL.search(sentence) is not None or after is not None
