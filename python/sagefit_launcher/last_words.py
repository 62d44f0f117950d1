"""What the end of a script's log says: the failure that ended it, not one it survived, nor an echo of another's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import log_lines, patterns, readers, vocabulary
from .log_lines import CAUSE, CONTEXT, EXCEPTION, HEAD, TEXT, Line
from .patterns import CREATE_ERROR, ECHO, FAILURE_REASON, LINE, LOG, TRACEBACK, WEAK, Match, Pattern, first

LAST = 3  # lines of talk at the end of a log, of which each may be why it ended
NEAR = 5  # lines before a failure that may say more of it
WRAPPED = 2  # lines over which a terminal may have broken a message
FAR = 60  # lines of talk after which a failure is history

_PROGRESS = re.compile(
    r"(?:\b(?:epochs?|steps?|iter|iterations?|global_step|batch)\b\W{0,4}|\bloss\b\W{0,4}|\d%\|[^|]{0,200}\|\s{0,3})(\d[\d.]*)",
    re.IGNORECASE,
)
_OF_A_THREAD = ("Exception in thread ", "Exception ignored in")
_TROUBLE = re.compile(r"error|exception|fail|crash|kill|memory|oom\b", re.IGNORECASE)
_GIVES_UP = re.compile(r"\bgiv(?:es?|ing) up\b|\bgave up\b", re.IGNORECASE)
_TEARDOWN = re.compile(
    r"NCCL|ProcessGroup|^\[?W\d|\bW\d{4}\b|socket|abort|terminat|signal|exit|shut|clos(?:ed|ing)|watchdog|elastic|heartbeat"
    r"|destroy|dump|leaked|atexit|stack|^=+$|^-+$",
    re.IGNORECASE,
)
_FATAL = re.compile(
    r"\b(?:error|exception|fatal|fail(?:s|ed|ure)?|abort(?:ed|ing)?|terminat(?:e|ed|ing))\b", re.IGNORECASE
)
_ADVICE = re.compile(
    r"\b(?:if|may|might|can|could(?! not)|should|avoid|prevent|tip|note|hint|help|try)\b|(?:^|\s)--\w", re.IGNORECASE
)
_OF_NAMES = re.compile(r"\b(?:Attribute|Import|ModuleNotFound|Name|Key|Type|Syntax|Assertion|FileNotFound)Error:")
_OF_THE_CODE = re.compile(
    r"\b(?:Value|Index|Indentation|NotImplemented|ZeroDivision|UnboundLocal|Recursion|Tab)Error\b"
)
_PATH = re.compile(r"(?:[a-z_]\w{0,80}\.){2,12}\w{0,80}")  # of a module, and perhaps the begin of a name in it
_OVER = re.compile(r"\btraining (?:has )?(?:finished|completed?|done)\b|\bfinished training\b", re.IGNORECASE)
_SURVIVED = re.compile(
    r"(?<!\bnot )(?<!\bno )\b(?:switching to|spilling|skip|skipping(?! to next header)|skipped|recover|recovering"
    r"|recovered|retrying|retry with|trying (?:half|again|with)"
    r"|going on|carrying on|continuing (?:with|without|in|from|on)"
    r"|falling back|fall back|(?<!try )(?<!or )(?<!by )(?<!consider )(?:halving|reducing|lowering|decreasing)"
    r"|not a failure|(?:is|was|are|were|now) disabled|(?:cache|caching|logging|logger|tensorboard) disabled)\b",
    re.IGNORECASE,
)
# An exception that only says that another process is gone, or that something above has the cause.
_OF_ANOTHER = re.compile(
    r"\bsee (?:the )?(?:\w+ ){1,3}above\b"
    r"|\b(?:peer|rank|remote (?:end|host|node|process|side))\b(?: (?:rank )?\S+)? (?:has |was |is )?"
    r"(?:closed|lost|gone|disconnected|unreachable|went (?:away|down)|died|exited|terminated)\b",
    re.IGNORECASE,
)
_KILLED = re.compile(r"\bline +\d+: +\d+ Killed\b")  # a shell's words for a child that SIGKILL ended
_TO_WORKERS = "Could not pickle the task to send it to the workers"
_REMARK = re.compile(r"\b(?:WARNING(?!: \d+ computed checksum)|WARN|DEBUG|INFO)\b(?<!NCCL WARN)(?<!NCCL INFO)")


class PassedOver(NamedTuple):
    """A line that names a failure which did not end the script, and why it is held for that."""

    match: Match
    why: str


def last_words(
    table: Sequence[Pattern], log: Sequence[str], passed_over: list[PassedOver] | None = None
) -> tuple[Match | None, str]:
    """The pattern that tells what ended the script, None when nothing does, and the line that says most.

    Read from the end. An exception decides, unless it only repeats another (an echo), or another led to it: it was
    raised from that, or while that was handled. What a handler's own failure leads back to is only likely. Progress
    after a failure, or much talk, means that the script went on. A weak pattern makes room for a stronger one, and
    where no pattern matches, the words of the last lines that tell of a failure decide. ``passed_over`` is given what
    was read and did not count.
    """
    lines = list(log_lines.read(log))
    aside = passed_over if passed_over is not None else []
    echoes = [row for row in table if row.where == ECHO]
    rows = [(row, patterns.longest_part(row.glob)) for row in table]
    told = echo = ""
    weak: Match | None = None
    meant: Match | None = None  # what the words of the last failed line mean, that no pattern knows
    closed = False  # an exception has been found, and nothing says that another led to it
    handled = False  # what comes now was being handled when the last exception was raised
    interrupted = False  # a stop came while what comes now was being handled, which is no failure then
    progress: set[str] = set()
    talk = number = 0
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line.kind in (CAUSE, CONTEXT):
            handled = handled or (closed and line.kind == CONTEXT)
            interrupted = line.kind == CONTEXT and weak is not None and weak.pattern.failure_class == "stopped"
            closed = False
            continue
        if line.kind == HEAD:
            continue
        if closed and line.text.startswith(_OF_A_THREAD):
            closed, handled = False, True  # the script goes on after it, and may have ended before
            continue
        if closed or talk > FAR:
            break
        if number == len(lines) - 1 and _is_cut_off(line, echoes):
            echo = line.text
            continue
        match = _match(rows, line, is_fatal=line.kind == EXCEPTION or _is_fatal(line, talk))
        match = match or _wrapped(rows, lines, number)
        if match and match.pattern.where == patterns.EXCEPTION and match.pattern.failure_class == "host_memory":
            match = _finer(match, lines, number)
        if match and match.pattern.failure_class == "disk" and _is_of_joblib(lines, number):
            match = match._replace(pattern=match.pattern._replace(failure_class="shared_memory"))
        if match and _is_advice(match, line):
            aside.append(PassedOver(match, "it is advice, or speaks of names in the code"))
            continue
        if match and _is_survived(_SURVIVED, lines, number):
            aside.append(PassedOver(match, "the script says that it goes on"))
            continue
        if match:
            # A remark was the last of it only if nothing more is said: no exception, no progress.
            remark = _is_survived(_REMARK, lines, number)
            if not match.is_weak and not remark and not handled:
                return match, match.text
            if weak and match.pattern.failure_class == "stopped" and _KILLED.search(weak.text):
                aside.append(PassedOver(weak, "it was killed after a request to stop"))
                weak = None
            elif weak:
                aside.append(PassedOver(match, "what was said after it counts"))
            likely = match._replace(pattern=match.pattern._replace(confidence=WEAK)) if handled else match
            weak = weak or likely
            continue
        meant = meant or _meant(lines, number, talk)
        if first(echoes, [ECHO], line.text) or (line.kind == EXCEPTION and _OF_ANOTHER.search(line.text)):
            echo = line.text  # the first of several that repeat one another is the nearest to the cause
        elif line.kind == EXCEPTION and (line.source or not line.text.endswith(":")):
            if weak and not line.source:
                continue  # a remark, not what was raised
            if interrupted:
                break
            if weak:
                aside.append(PassedOver(weak, "it was only a remark: an exception came before it"))
            told, closed, weak = told or line.text, True, None
            if meant and meant.text != line.text and _OF_NAMES.search(line.text):
                meant = _meant(lines, number, talk)  # the other was a remark too
        elif _OVER.search(line.text) and not _TROUBLE.search(line.text):
            break
        elif position := _position(line):
            progress.add(position)
            if len(progress) > 1:
                break
        elif not line.indent and not (_TROUBLE.search(line.text) or _TEARDOWN.search(line.text)):
            talk += 1  # what is said while the rest of a failed job goes down is no sign of life
    ended_after = weak is not None and weak.pattern.failure_class == "stopped"  # somebody ended what had failed
    found = meant if meant and ended_after else weak or meant
    aside += _left_behind(rows, lines, number) if not found else []
    if found:
        return found, found.text
    return None, told or echo or (lines[-1].text if lines else "")


def explains_itself(said: str) -> bool:
    """Whether an exception's own name says that the code is wrong, whatever else was the case."""
    return (_OF_NAMES.search(said) or _OF_THE_CODE.search(said)) is not None


def last_words_of_all(
    table: Sequence[Pattern], logs: Iterable[Sequence[str]], passed_over: list[PassedOver] | None = None
) -> tuple[Match | None, str]:
    """The same for the logs of several hosts: the one that says most is the cause, the others lost a peer."""
    found = [last_words(table, log, passed_over) for log in logs]
    strong = [(match, said) for match, said in found if match and not match.is_weak]
    meant = [(match, said) for match, said in found if match and match.pattern.where == vocabulary.WORDS]
    weak = [(match, said) for match, said in found if match]
    raised = [(match, said) for match, said in found if not match and said and not first(table, [ECHO], said)]
    exceptions = [each for each in raised if log_lines.is_exception(each[1])]
    # A memory failure anywhere makes the other hosts fail in ways of their own.
    strong.sort(key=lambda each: each[0].pattern.failure_class == "code")
    return next(iter([*strong, *meant, *exceptions, *weak, *raised, *found]), (None, ""))


def _match(rows: Sequence[tuple[Pattern, str]], line: Line, *, is_fatal: bool) -> Match | None:
    """The first row that matches; each comes with its longest part, to pass over most of them at once."""
    if line.source and (match := first((row for row, _ in rows), [TRACEBACK], f"{line.text} in {line.source}")):
        return Match(match.pattern, line.text)
    lower = line.text.lower() if is_fatal and not _OF_NAMES.search(line.text) else None
    for row, part in rows:
        if part in line.raw and _is_of_a_line(row) and (row.matches(line.text) or row.matches(line.raw)):
            return Match(row, line.text)
        if lower and part in lower and row.where == patterns.EXCEPTION and row.matches(lower):
            if row.failure_class.endswith("_memory") and vocabulary.names_a_knob(lower):
                continue  # "out-of-memory mode disabled"
            if vocabulary.is_supposed(lower, part):
                continue  # "maybe the remote node ran out of memory"
            return Match(row, line.text)
    return None


def _wrapped(rows: Sequence[tuple[Pattern, str]], lines: Sequence[Line], number: int) -> Match | None:
    """A pattern that an exception's message meets only together with the lines into which it was broken."""
    line = lines[number]
    if line.kind != EXCEPTION:
        return None
    whole = line.text
    for after in lines[number + 1 : number + 1 + WRAPPED]:
        if after.kind != TEXT:
            break
        whole = f"{whole} {after.text}"
    for row, part in rows:
        if part in whole and row.where in (LOG, LINE, FAILURE_REASON) and row.confidence != WEAK and row.matches(whole):
            return Match(row, whole)
    return None


def _is_cut_off(line: Line, echoes: Sequence[Pattern]) -> bool:
    """Whether a text ends within an exception's name, of which it is not known more than where it is from."""
    if not _PATH.fullmatch(line.text):
        return False
    name = line.text.rpartition(".")[2]
    return not name or any(patterns.longest_part(row.glob).startswith(name) for row in echoes)


def _left_behind(rows: Sequence[tuple[Pattern, str]], lines: Sequence[Line], number: int) -> list[PassedOver]:
    """The last failure before the line at which the reading ended, if there is one: the script went on after it."""
    for line in reversed(lines[max(0, number - FAR) : number + 1]):
        if line.kind == EXCEPTION and (match := _match(rows, line, is_fatal=True)):
            return [PassedOver(match, "the script went on after it")]
    return []


def _is_of_a_line(row: Pattern) -> bool:
    """Whether a row is for any line of a log; what a create call says may be reported there too."""
    return row.where in (LOG, LINE, FAILURE_REASON) or (row.where == CREATE_ERROR and row.confidence != patterns.WEAK)


def _meant(lines: Sequence[Line], number: int, talk: int) -> Match | None:
    """What a failed line means by its words; a remark, or what the script survived, is none."""
    line = lines[number]
    if line.kind != EXCEPTION and not (talk < LAST or _FATAL.search(line.text)):
        return None
    if _position(line):
        return None
    meant = vocabulary.told(line.text, line.source, _said_before(lines, number)) or _of_a_reader(line)
    # What goes on after a spot instance was taken is another one.
    goes_on = _is_survived(_SURVIVED, lines, number) and not (meant and meant.pattern.failure_class == "spot")
    if goes_on or _is_survived(_REMARK, lines, number):
        return None
    of_names = line.kind == EXCEPTION and _OF_NAMES.search(line.text)
    return None if meant and of_names and meant.pattern.failure_class.endswith("_memory") else meant


def _of_a_reader(line: Line) -> Match | None:
    complains = line.kind == EXCEPTION and readers.complains(line.text, line.frame, line.source)
    return Match(vocabulary.rule("data", "a reader's exception"), line.text) if complains else None


def _finer(match: Match, lines: Sequence[Line], number: int) -> Match:
    """A loose pattern's match that says memory: the words around it may say which."""
    line = lines[number]
    meant = vocabulary.told(line.text, line.source, [*_said_before(lines, number), *_said_after(lines, number)])
    if meant is None or meant.pattern.failure_class not in ("gpu_memory", "shared_memory"):
        return match
    return match._replace(pattern=match.pattern._replace(failure_class=meant.pattern.failure_class))


def _is_of_joblib(lines: Sequence[Line], number: int) -> bool:
    """Whether an error came from handing a batch to joblib's workers, which it does through ``/dev/shm``."""
    return any(_TO_WORKERS in line.text for line in lines[number + 1 :])


def _said_before(lines: Sequence[Line], number: int) -> list[str]:
    return [line.text for line in reversed(lines[max(0, number - NEAR) : number])]


def _said_after(lines: Sequence[Line], number: int) -> list[str]:
    return [line.text for line in lines[number + 1 : number + 1 + NEAR]]


def _is_fatal(line: Line, talk: int) -> bool:
    """Whether a line that is no exception tells of a failure all the same, and not how one is avoided."""
    return (talk < LAST or _FATAL.search(line.text) is not None) and not _ADVICE.search(line.text)


def _is_advice(match: Match, line: Line) -> bool:
    """Whether a line has the words of a loose pattern, but tells what to do about it, or of names in the code."""
    about = _OF_NAMES if line.kind == EXCEPTION else _ADVICE
    return match.is_weak and match.pattern.where == FAILURE_REASON and about.search(line.text) is not None


def _is_survived(words: re.Pattern[str], lines: Sequence[Line], number: int) -> bool:
    """Whether the script says itself that it goes on: in that line, or in the one after it."""
    head, *after = lines[number : number + 2]
    if not after or head.source:
        return False
    if head.kind == EXCEPTION:  # its message may advise what the script does not do
        return words.search(head.raw[: -len(head.text)]) is not None
    said = (head,) if words is _REMARK else (head, *after)  # what comes next may be a remark, and this none
    return any(words.search(line.raw) for line in said if line.kind == head.kind)


def _position(line: Line) -> str | None:
    found = None if _TROUBLE.search(line.raw) or _GIVES_UP.search(line.text) else _PROGRESS.search(line.text)
    return found.group(1) if found else None
