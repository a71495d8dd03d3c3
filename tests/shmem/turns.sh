#!/bin/sh
# turns.sh PROGRAM: the script of one PE. It runs PROGRAM three times in turn; in the second run, PE 1 ends with an exit code of its own.
# turns.sh PROGRAM WHAT: runs PROGRAM WHAT, then the same again, whatever the result.
# turns.sh --fail PROGRAM: runs PROGRAM fail twice, which ends with an error on all PEs and without shmem_finalize; then PROGRAM.
# turns.sh --chain N PROGRAM: runs PROGRAM quick N times.
case $1 in
    --fail)
        "$2" fail
        [ $? -eq 9 ] || exit 1
        "$2" fail
        [ $? -eq 9 ] || exit 1
        exec "$2"
        ;;
    --chain)
        for _ in $(seq "$2"); do
            "$3" quick || exit
        done
        exit
        ;;
esac
if [ $# -gt 1 ]; then
    "$@"
    exec "$@"
fi
"$1" || exit
"$1" 3
code=$?
[ $code -eq 0 ] || [ $code -eq 3 ] || exit $code
"$1"
