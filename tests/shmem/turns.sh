#!/bin/sh
# turns.sh PROGRAM: what one PE runs: PROGRAM three times in turn. In the second, PE 1 ends with a code of its own.
# turns.sh PROGRAM WHAT: PROGRAM WHAT, and the same again whatever comes of it.
if [ $# -gt 1 ]; then
    "$@"
    exec "$@"
fi
"$1" || exit
"$1" 3
code=$?
[ $code -eq 0 ] || [ $code -eq 3 ] || exit $code
"$1"
