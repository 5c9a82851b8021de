# Runs one server in a folder of its own, for a test process at the other end of standard input.
#
#   sh -c <this> NAME FOLDER PROGRAM ARG...
#
# Orders come as lines on standard input, answers go to standard output. When the orders end, however
# the test process ended, the server is killed and the folder removed. Standard error carries nothing:
# the server alone keeps it open (as descriptor 9), so its end tells that the server has ended.
#
# The server is only ever signalled before it is waited for, so its number cannot belong to another
# process by then.

# A signal, or output without a reader, must lead to the clean-up and not past it. Handlers,
# because the server would inherit '' (ignore).
trap : HUP INT TERM PIPE

folder=$1
shift
mkdir -m 700 "$folder" || exit 1
cd "$folder" || exit 1
echo made

server=
while read -r order; do
    case $order in
    start)
        # Without handlers for a moment: a signal that came between the birth of the server and
        # its own clearing of them would be lost.
        trap - HUP INT TERM PIPE
        "$@" </dev/null >log 9>&2 2>&1 &
        server=$!
        trap : HUP INT TERM PIPE
        exec 2>/dev/null
        echo "$server"
        ;;
    TERM | KILL | STOP | CONT)
        kill -s "$order" "$server"
        echo sent
        ;;
    wait)
        wait "$server"
        echo $?
        server=
        ;;
    esac
done

if [ -n "$server" ]; then
    kill -s KILL "$server"
    wait "$server"
fi
cd /
rm -rf "$folder"
