"""Wrong options, values and names of every command: one line, the right code, and nothing is written."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from wrong_inputs import NEVER, Row, application, attempt, machine, row, written

USAGE = [
    row("nope", 2, "no command 'nope'|sublet --help"),
    row("staus", 2, "did you mean 'status'?"),
    row("''", 2, "no command ''"),
    row("ünï", 2, "no command 'ünï'"),
    row("'\x1b[31mred'", 2, "no command '\\\\x1b[31mred'"),
    row("--nope", 2, "no option '--nope'|sublet --help"),
    row("-x", 2, "no option '-x'"),
    row("status --nope", 2, "no option '--nope'|sublet status --help"),
    row("status extra", 2, "'extra' is one word too many|sublet status --help"),
    row("status -o wide", 2, "--output 'wide': want screen or json"),
    row("status -o ''", 2, "--output '': want screen or json"),
    row("status -o", 2, "-o wants a value"),
    row("status --outptu json", 2, "no option '--outptu' (did you mean '--output'?)"),
    row("status --cluster --kubeconfig nope", 2, "--kubeconfig nope: no such file"),
    row("status --cluster", 3, "no cluster is known|--kubeconfig FILE"),
    row("top --twice", 2, "no option '--twice' (did you mean '--once'?)"),
    row("top pods", 2, "'pods' is one word too many"),
    row("pause now", 2, "'now' is one word too many"),
    row("pause -r", 2, "-r wants a value"),
    row("resume now", 2, "'now' is one word too many"),
    row("audit --nope", 2, "no option '--nope'"),
    row("audit -o table", 2, "--output 'table': want text or json"),
    row("doctor -o yaml", 2, "--output 'yaml': want text or json"),
    row("doctor --cluster", 3, "no cluster is known"),
    row("doctor --cluster --kubeconfig nope", 2, "--kubeconfig nope: no such file"),
    row("events --since 2x", 2, "--since: '2x' is no time: want 30m, 2h, 7d"),
    row("events --since yesterday", 2, "'yesterday' is no time"),
    row("events --since=-2h", 2, "'-2h' is no time"),
    row("events --since 2026-13-01", 2, "'2026-13-01' is no time"),
    row("events --since 99999999999d", 2, "'99999999999d' is no time"),
    row("events --since ٢h", 2, "is no time"),
    row("events --since-seq 0", 2, "--since-seq '0': want a whole number of 1 or more"),
    row("events --since-seq=-1", 2, "--since-seq '-1': want a whole number of 1 or more"),
    row("events --since-seq x", 2, "--since-seq 'x': want a whole number"),
    row("events --since-seq 1.5", 2, "--since-seq '1.5': want a whole number"),
    row(
        "events --phase evicted",
        2,
        "--phase 'evicted': want intended, created, succeeded, failed, refused or cancelled",
    ),
    row("events --phase ''", 2, "--phase '': want intended"),
    row("events --phase succeded", 2, "did you mean 'succeeded'?"),
    row("events -o wide", 2, "--output 'wide': want table, json or cloudevents"),
    row("events --folow", 2, "did you mean '--follow'?"),
    row("explain", 2, "pod/NAME|cpu/NUMBER|is missing|sublet explain --help"),
    row("explain cpu/x", 2, "'cpu/x': want the number of a CPU, as cpu/22"),
    row("explain cpu/", 2, "'cpu/': want the number of a CPU"),
    row("explain cpu/-1", 2, "'cpu/-1': want the number of a CPU"),
    row("explain cpu/1.5", 2, "'cpu/1.5': want the number of a CPU"),
    row("explain cpu/٢", 2, "want the number of a CPU"),
    row("explain deployment/x", 2, "'deployment/x': only pods and CPUs can be explained"),
    row("explain pod/a pod/b", 2, "'pod/b' is one word too many"),
    row("bridge", 2, "--to is missing|sublet bridge --help"),
    row("bridge --to ftp://x", 2, "--to 'ftp://x': want an address that begins with http:// or https://"),
    row("bridge --to ''", 2, "--to '': want an address"),
    row("bridge --to example.org", 2, "--to 'example.org': want an address"),
    row("bridge --to http://127.0.0.1:1 --phase foo", 2, "--phase 'foo': want intended, created"),
    row("bridge --to http://127.0.0.1:1 --secret-file nope", 2, "--secret-file nope: no such file"),
    row("bridge --to http://127.0.0.1:1 --secret-file folder", 2, "--secret-file folder: is a directory"),
    row("bridge --to http://127.0.0.1:1 --secret-file empty.yaml", 2, "webhook secret: 0 bytes, want 24 to 64"),
    row("bridge --to http://127.0.0.1:1 --secret-file binary.yaml", 2, "not UTF-8 text"),
    row("bridge --to http://127.0.0.1:1 --secret-file text.yaml", 2, "webhook secret: not base64"),
    row("consumers ad x", 2, "no command 'ad' (did you mean 'add'?)|sublet consumers --help"),
    row("consumers add", 2, "name is missing"),
    row("consumers add 'a b'", 2, "consumer name 'a b': want 1 to 64 characters"),
    row("consumers add a.b", 2, "consumer name 'a.b'"),
    row("consumers add ''", 2, "consumer name ''"),
    row("consumers add ünï", 2, "consumer name 'ünï'"),
    row("consumers add x --phase nope", 2, "phase 'nope': want one of intended, created"),
    row("consumers add x --from never", 2, "from 'never': want all, new, or a time"),
    row("consumers add x --max-deliver 0", 2, "max deliver 0: want 1 or more"),
    row("consumers add x --max-deliver x", 2, "--max-deliver 'x': want a whole number"),
    row("consumers add x --ack-wait 0", 2, "ack wait 0 s: want 0.1 to 86400"),
    row("consumers add x --ack-wait nan", 2, "ack wait nan s: want 0.1 to 86400"),
    row("consumers add x --ack-wait 1e30", 2, "want 0.1 to 86400"),
    row("consumers add x --ack-wait soon", 2, "--ack-wait 'soon': want a number"),
    row("consumers add x --rotate --no-login", 2, "--rotate and --no-login"),
    row("consumers add x --namespace 'A B'", 2, "namespace 'A B': want a Kubernetes name"),
    row("consumers remove", 2, "name is missing"),
    row("consumers rotate", 2, "name is missing"),
    row("consumers list all", 2, "'all' is one word too many"),
    row("config appl", 2, "no command 'appl' (did you mean 'apply'?)"),
    row("config apply", 2, "--file is missing"),
    row("record --for abc -o r.jsonl", 2, "--for 'abc': want a number of 0.1 or more"),
    row("record --for 0 -o r.jsonl", 2, "--for '0': want a number of 0.1 or more"),
    row("up --nats-port abc", 2, "--nats-port 'abc': want a whole number"),
    row("up --http-port x", 2, "--http-port 'x': want a whole number"),
    row("up now", 2, "'now' is one word too many"),
    row("up --nats-url-file nope", 2, "--nats-url-file nope: "),
    row("down everything", 2, "'everything' is one word too many"),
    row("whatif", 2, "want exactly one of KIND, --jsonl, --list, --schema KIND"),
    row("whatif a --list", 2, "want exactly one of KIND"),
    row("whatif a b", 2, "'b' is one word too many"),
]
FILES_GIVEN = [
    row("sim nope", 2, "scenario 'nope': no such file; built in: |quickstart"),
    row("sim nope.yaml", 2, "scenario 'nope.yaml': no such file"),
    row("sim ''", 2, "scenario '': no such file"),
    row("sim folder", 2, "scenario 'folder': no such file"),
    row("sim ../../etc/passwd", 2, "no such file; built in"),
    row("sim binary.yaml", 2, "scenario binary.yaml: not UTF-8 text"),
    row("sim quickstart -o yaml", 2, "'yaml': want table or json"),
    row("sim quickstart memory", 2, "'memory' is one word too many"),
    row("replay", 2, "FILE... is missing"),
    row("replay nope.csv", 2, "nope.csv: no such file or directory"),
    row("replay folder", 2, "folder: is a directory"),
    row("replay empty.yaml", 2, "empty.yaml: no known format: want a recording"),
    row("replay columns.csv", 2, "columns.csv: no known format"),
    row("replay header.csv", 2, "header.csv: no row can be used"),
    row("replay negative.csv", 2, "negative.csv: no row can be used: line 2: "),
    row("replay huge.csv", 2, "huge.csv: no row can be used: line 2: "),
    row("replay damaged.gz", 2, "damaged.gz: no recording"),
    row("replay damaged.gz --format planetlab", 2, "damaged.gz: no text in UTF-8"),
    row("replay binary.yaml --format csv", 2, "binary.yaml: no text in UTF-8"),
    row("replay good.csv --policy canonicl", 2, "'canonicl'|did you mean 'canonical'?"),
    row("replay good.csv --policy canonical:", 2, "--policy canonical:: want NAME, or NAME:key=value"),
    row("replay good.csv --policy canonical:reserve_cores", 2, "want NAME:key=value,key=value, not 'reserve_cores'"),
    row("replay good.csv --policy canonical:=8", 2, "want NAME:key=value,key=value, not '=8'"),
    row("replay good.csv --policy canonical --policy canonical", 2, "--policy canonical: stands twice"),
    row("replay good.csv --policy canonical:reserve_core=8", 2, "reserve_core: no such setting"),
    row("replay good.csv --policy ''", 2, "advisor.policy = '': no such policy|canonical"),
    row("replay good.csv --policy", 2, "--policy wants a value"),
    row("replay good.csv --peer katalist", 2, "--peer katalist|did you mean katalyst?"),
    row("replay good.csv --cpus 0", 2, "--cpus '0': want a whole number from 1 to 8192"),
    row("replay good.csv --cpus=-1", 2, "--cpus '-1': want a whole number from 1 to 8192"),
    row("replay good.csv --cpus 9999999999999999999999", 2, "want a whole number from 1 to 8192"),
    row("replay good.csv --cpus x", 2, "--cpus 'x': want a whole number"),
    row("replay good.csv --cpus 1.5", 2, "--cpus '1.5': want a whole number"),
    row("replay good.csv --cpus ''", 2, "--cpus '': want a whole number"),
    row("replay good.csv --step 0", 2, "--step '0': want a number from 0.1 to 3600"),
    row("replay good.csv --step nan", 2, "--step 'nan': want a number from 0.1 to 3600"),
    row("replay good.csv --step inf", 2, "--step 'inf': want a number from 0.1 to 3600"),
    row("replay good.csv --step 1e9", 2, "--step '1e9': want a number from 0.1 to 3600"),
    row("replay good.csv --step 1s", 2, "--step '1s': want a number from 0.1 to 3600"),
    row("replay good.csv --pods-per-node=-1", 2, "--pods-per-node '-1': want a whole number of 0 or more"),
    row("replay good.csv --pod-cores 0", 2, "--pod-cores '0': want a number from 0.001 to 8192"),
    row("replay good.csv --evict-after=-1", 2, "--evict-after '-1': want a number from 0 to 86400"),
    row("replay good.csv --nodes=-1", 2, "--nodes '-1': want a whole number of 0 or more"),
    row("replay good.csv --batch-pod-cores inf", 2, "--batch-pod-cores 'inf': want a number from 0.1 to 1000"),
    row("replay good.csv --seed abc", 2, "--seed 'abc': want a whole number"),
    row("replay good.csv --plot nowhere/x.html", 2, "--plot nowhere/x.html: no such file or directory"),
    row("replay good.csv --plot folder", 2, "--plot folder: is a directory"),
    row("replay good.csv --plot x.html --plot-node nix", 2, "--plot-node nix: no such node"),
    row("replay good.csv --format xml", 2, "--format 'xml': want auto, recording, planetlab or csv"),
    row("replay good.csv --between cubic", 2, "--between 'cubic': want hold or linear"),
    row("replay good.csv -o wide", 2, "--output 'wide': want table or json"),
    row("train", 2, "want FILE... to learn from"),
    row("train nope.csv", 2, "nope.csv: no such file or directory"),
    row("train folder", 2, "folder: is a directory"),
    row("train good.csv --coverage 2", 2, "--coverage '2': want a number from 0.5 to 0.999"),
    row("train good.csv --coverage x", 2, "--coverage 'x': want a number"),
]  # fmt: skip


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with machine(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("wrong", USAGE + FILES_GIVEN, ids=str)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_done(app: typer.Typer, folder: Path, wrong: Row) -> None:
    before = written(folder)
    answer = attempt(app, wrong)
    assert answer.code == wrong.code, answer
    assert answer.err.startswith("sublet: "), answer
    assert answer.err.count("\n") == 1, answer
    assert [word for word in wrong.words.split("|") if word not in answer.err] == []
    assert [word for word in NEVER if word in answer.err + answer.out] == []
    assert written(folder) == before
