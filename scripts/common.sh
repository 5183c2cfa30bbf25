# Set-up shared by scripts/demo and scripts/test; sourced, never run. Everything here speaks on standard
# error, so that a script's own output stays clean. A missing thing is made when it can be, and otherwise
# explained; the exit code is then 2.
#
#   CDB_VENV     where the virtual environment lies (default: .venv in the repository)
#   CDB_PYTHON   the Python to make it with (default: the first of python3, python3.13 … that is ≥ 3.11)
#   CDB_CHROMIUM the Chromium that host tests drive (default: chromium on the PATH)

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${CDB_VENV:-$REPO/.venv}
if [ "$(id -u)" = 0 ]; then
    STATE=${XDG_STATE_HOME:-/var/lib}/cdb
else
    STATE=${XDG_STATE_HOME:-$HOME/.local/state}/cdb
fi
# Every step is a process of its own: without compiled modules each would compile two seconds' worth again.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=${PYTHONPYCACHEPREFIX:-$VENV/pycache}
ENGINE_OURS=    # how this very process started the engine: systemd, service or daemon; empty when it did not

say() { printf '%s\n' "cdb: $*" >&2; }
die() { say "$*"; exit 2; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# step TITLE COMMAND… : runs a command that takes long, its output in a log, its last line shown now and
# then; on failure shows the end of the log and returns the command's code.
step() {
    local title=$1 log began=$SECONDS pid code=0 line shown= traps
    shift
    log=$(mktemp "${TMPDIR:-/tmp}/cdb-step.XXXXXX")
    say "$title …"
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    traps=$(trap -p INT TERM)       # a background command ignores Ctrl-C by itself
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        if [ $(((SECONDS - began) % 5)) = 0 ] && [ "$shown" != "$SECONDS" ] && [ "$SECONDS" != "$began" ]; then
            shown=$SECONDS
            line=$(tail -n 3 "$log" | tr '\r' '\n' | sed '/^[[:space:]]*$/d' | tail -n 1 | cut -c 1-100)
            say "  $((SECONDS - began)) s: ${line:-working}"
        fi
    done
    wait "$pid" || code=$?
    trap - INT TERM
    eval "$traps"
    if [ "$code" != 0 ]; then
        say "$title failed (exit $code); the end of its output:"
        tail -n 30 "$log" >&2
    else
        say "$title: done in $((SECONDS - began)) s"
    fi
    rm -f "$log"
    return "$code"
}

# apt_install PACKAGE… : true when installed; false when this user or system cannot.
apt_install() {
    is_root && have apt-get || return 1
    export DEBIAN_FRONTEND=noninteractive
    step "apt-get update" apt-get update || return 1
    step "installing $*" apt-get install -y --no-install-recommends "$@"
}

# ---- Python ---------------------------------------------------------------------------------------------

python_works() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${CDB_PYTHON:+"$CDB_PYTHON"} python3 python3.13 python3.12 python3.11; do
        if python_works "$candidate"; then
            PYTHON=$(command -v "$candidate")
            return 0
        fi
    done
    return 1
}

ensure_python() {
    if ! find_python; then
        apt_install python3 python3-venv && find_python \
            || die "Python 3.11 or newer is needed: install python3 and python3-venv, or name one in CDB_PYTHON"
    fi
    if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
        local version
        version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        { apt_install "$version-venv" && "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; } \
            || die "$PYTHON cannot make virtual environments: install $version-venv (or python3-venv)"
    fi
}

lock_digest() { sha256sum <"$REPO/$1" | cut -c 1-64; }

# ensure_venv [dev] : the locked dependencies (with "dev" the developers' too) and the project itself, from
# this very folder. The stamp makes a second call cheap.
ensure_venv() {
    local kind=${1:-run} lock=requirements.lock wanted stamp="$VENV/.cdb-stamp" have_stamp=
    [ "$kind" = dev ] && lock=requirements-dev.lock
    wanted="$REPO $(lock_digest requirements.lock) $(lock_digest requirements-dev.lock)"
    [ -f "$stamp" ] && have_stamp=$(cat "$stamp")
    if [ "$have_stamp" = "dev $wanted" ] || [ "$have_stamp" = "$kind $wanted" ]; then
        "$VENV/bin/python" -c '' 2>/dev/null && return 0
    fi
    ensure_python
    if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        step "making $VENV" "$PYTHON" -m venv --clear "$VENV" || die "no virtual environment, see above"
    fi
    rm -f "$stamp"
    step "installing $lock (hash-checked)" "$VENV/bin/python" -m pip install --disable-pip-version-check \
        --no-input --progress-bar off --no-compile --require-hashes -r "$REPO/$lock" \
        || die "the dependencies could not be installed; is the package index reachable (pip config list)?"
    link_project
    printf '%s' "$kind $wanted" >"$stamp"
}

# The project runs from its folder: a path file and a start script, so that no build tool is needed.
link_project() {
    local site
    site=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$REPO" >"$site/codesign_bench.pth"
    printf '#!%s\nimport sys\n\nfrom cdb import main\n\nsys.exit(main())\n' "$VENV/bin/python" >"$VENV/bin/cdb"
    chmod 755 "$VENV/bin/cdb"
}

# ---- the container engine -------------------------------------------------------------------------------

engine_answers() { (cd "$REPO" && "$VENV/bin/python" -m sandboxes.engine) >/dev/null 2>&1; }

engine_complaint() { (cd "$REPO" && "$VENV/bin/python" -m sandboxes.engine) 2>&1 >/dev/null; }

# wait_for_engine SECONDS [PID] : until it answers; false when time is up or process PID has ended.
wait_for_engine() {
    local until=$((SECONDS + $1))
    while ! engine_answers; do
        [ "$SECONDS" -lt "$until" ] || return 1
        [ -z "${2:-}" ] || kill -0 "$2" 2>/dev/null || return 1
        sleep 0.3
    done
}

# ensure_engine : needs ensure_venv first.
ensure_engine() {
    engine_answers && return 0
    local why
    why=$(engine_complaint || true)
    [ -z "${DOCKER_HOST:-}" ] || die "$why"
    is_root || die "$why"
    if ! have dockerd; then
        have apt-get || die "no Docker engine is installed, and this system has no apt: install Docker and start it"
        apt_install docker.io || die "Docker could not be installed, see above"
        have dockerd || die "docker.io was installed but there is no dockerd on the PATH; install Docker by hand"
        if wait_for_engine 5; then      # the package started it
            if [ -d /run/systemd/system ]; then ENGINE_OURS=systemd; else ENGINE_OURS=service; fi
            return 0
        fi
    fi
    start_engine
}

start_engine() {
    if [ -d /run/systemd/system ] && have systemctl; then
        step "starting Docker (systemd)" systemctl start docker || die "Docker did not start: journalctl -u docker"
        ENGINE_OURS=systemd
        wait_for_engine 60 || die "Docker was started but does not answer: journalctl -u docker"
        return 0
    fi
    start_daemon && return 0
    if grep -qi 'iptables\|bridge' "$STATE/dockerd.log"; then
        say "Docker could not set up its bridge; our containers need none, starting it without"
        start_daemon --iptables=false --ip6tables=false --bridge=none && return 0
    fi
    tail -n 15 "$STATE/dockerd.log" >&2
    die "dockerd did not start; the whole log is $STATE/dockerd.log"
}

# start_daemon OPTION… : dockerd with a log and a pid file of our own, detached from this terminal.
start_daemon() {
    mkdir -p "$STATE"
    # A pid file of a machine that went down: its number may be another process now, and dockerd would refuse.
    [ "$(cat "/proc/$(cat "$STATE/dockerd.pid" 2>/dev/null)/comm" 2>/dev/null)" = dockerd ] || rm -f "$STATE/dockerd.pid"
    say "starting dockerd (log: $STATE/dockerd.log) …"
    setsid nohup dockerd --pidfile "$STATE/dockerd.pid" "$@" >"$STATE/dockerd.log" 2>&1 </dev/null &
    local pid=$!
    disown "$pid"
    if wait_for_engine 60 "$pid"; then
        ENGINE_OURS=daemon
        say "Docker is running"
        return 0
    fi
    kill "$pid" 2>/dev/null || true
    return 1
}

# stop_engine_if_ours : stops the engine when this process started it; otherwise does nothing.
stop_engine_if_ours() {
    case $ENGINE_OURS in
        systemd) step "stopping Docker" systemctl stop docker.service docker.socket || true ;;
        service) step "stopping Docker" service docker stop || true ;;
        daemon) step "stopping dockerd" stop_daemon || true ;;
    esac
    ENGINE_OURS=
}

stop_daemon() {
    local pid until=$((SECONDS + 30))
    pid=$(cat "$STATE/dockerd.pid" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$until" ]; then
            kill -KILL "$pid" 2>/dev/null || true
            return 1
        fi
        sleep 0.2
    done
}

# ensure_images : builds what is missing (progress comes from the builder); needs ensure_engine first.
ensure_images() {
    (cd "$REPO" && "$VENV/bin/python" -m sandboxes.images) >/dev/null || exit $?
}

# ---- what only tests need -------------------------------------------------------------------------------

# ensure_host_chromium : a Chromium on this machine for tests that drive it without a container; the headless shell
# where there is one, as in our browser image: it needs far less processor time.
ensure_host_chromium() {
    if [ -n "${CDB_CHROMIUM:-}" ]; then
        [ -x "$CDB_CHROMIUM" ] || die "CDB_CHROMIUM=$CDB_CHROMIUM cannot be executed"
        return 0
    fi
    if ! have chromium-headless-shell && ! have chromium; then
        # On Ubuntu the apt package only points to a snap, which does not run everywhere.
        grep -q '^ID=debian' /etc/os-release 2>/dev/null && apt_install chromium-headless-shell fonts-liberation || true
    fi
    CDB_CHROMIUM=$(command -v chromium-headless-shell || command -v chromium) \
        || die "the tests need Chromium: install it and set CDB_CHROMIUM to its executable"
    export CDB_CHROMIUM
}

# ensure_program NAME WHY : a program that is its own package. GitPython runs git; films are made with ffmpeg,
# while the product itself decodes with PyAV.
ensure_program() {
    have "$1" || apt_install "$1" || true
    have "$1" || die "$1 is needed $2: install the package $1"
}
