# Functions that find a port for a server, wait for the server and end it. Source this file after debian-root.sh.
#
# The server's folder keeps its process id (pid) and its output (server.log). The server leads a process group.

STOPPED_WITHIN=20

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Print the first of several free ports that follow each other. Ports above 32767 belong to outgoing connections.
free_ports() { # how many
    local first port
    while :; do
        first=$((20000 + RANDOM % 10000))
        for ((port = first; port < first + $1; port++)); do
            listening "$port" && continue 2
        done
        break
    done
    echo "$first"
}

refuse_second() { # folder
    [ ! -e "$1/pid" ] || without "a server was started in $1 already"
}

wait_until_listening() { # name, folder, port, seconds
    local pid end=$((SECONDS + $4))
    pid="$(cat "$2/pid")"
    until listening "$3"; do
        if [ "$SECONDS" -ge "$end" ] || ! kill -0 "$pid" 2>/dev/null; then
            stop "$2"
            tail -n 20 "$2/server.log" >&2
            without "$1 was started in $2 and does not listen"
        fi
        sleep 0.2
    done
}

# End the server and all processes that it started.
stop() { # folder
    local pid end
    [ -e "$1/pid" ] || return 0
    pid="$(cat "$1/pid")"
    rm "$1/pid"
    kill -TERM -- "-$pid" 2>/dev/null || return 0
    end=$((SECONDS + STOPPED_WITHIN))
    while kill -0 -- "-$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$end" ]; then
            kill -KILL -- "-$pid" 2>/dev/null || true
            break
        fi
        sleep 0.1
    done
}
