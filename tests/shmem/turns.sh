#!/bin/sh
# turns.sh PROGRAM: what one PE runs: PROGRAM three times in turn. In the second, PE 1 ends with a code of its own.
# turns.sh PROGRAM WHAT: PROGRAM WHAT, and the same again whatever comes of it.
# turns.sh --fail PROGRAM: PROGRAM fail, which ends with an error on all PEs and without shmem_finalize, twice, then PROGRAM.
# turns.sh --chain N PROGRAM: N times PROGRAM quick.
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
