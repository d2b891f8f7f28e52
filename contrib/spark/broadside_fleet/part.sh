#!/bin/sh
# Sends a part of this list, or continues it; broadside-freeze puts this file beside the parts.
#
#   sh WORK/frozen/part.sh PART PARTS [OPTIONS of broadside send]
#
# Every scheduler starts the same command, for the first attempt and all others. The exit code is that of
# broadside send. It is also 2 if the list is not the frozen one, or if the part's ledger is lost; 5 if a file or
# a folder here can't be read or written; 127 if this machine has no broadside. BROADSIDE is the path of the
# command if it is not in PATH.
#
# Before a part's first attempt, two notes are durable: one beside the ledgers, and one in another folder. A part
# without a ledger begins only if the folder of the ledgers still has its note and has no claim. (Broadside writes a
# claim beside each ledger before it sends.) So a part whose attempt ended before it had a ledger begins again, and a
# part whose ledger was lost does not: then --resume ends with exit 2.
set -eu
part=$1
parts=$2
shift 2
# A failing disk or a missing mount ends with 5, because exit 2 would end the campaign. (Some shells end with 2 if a
# redirection fails.)
fail() {
    echo "broadside: $1: try again, here or on another machine" >&2
    exit 5
}
frozen=$(cd "$(dirname "$0")" && pwd -P) || fail "$(dirname "$0") can't be entered"
work=${frozen%/*}
list=$frozen/part-$(printf %04d "$part").csv.zst
ledgers=$work/ledgers

refuse() {
    echo "broadside: $1" >&2
    exit 2
}
note() {
    touch "$1" && sync "$1" "${1%/*}" || fail "$1 can't be written"
}

labels=$(cat "$frozen/labels.txt") || fail "$frozen/labels.txt can't be read"
line=$(grep "^$part " "$frozen/parts.txt") || case $? in
    1) refuse "part $part is not in $frozen/parts.txt: is it the right number?" ;;
    *) fail "$frozen/parts.txt can't be read" ;;
esac
rest=${line#* }
[ "${rest%% *}" = "$parts" ] || refuse "the list was frozen in ${rest%% *} parts, not $parts"
rest=${rest#* }
rows=${rest%% *}
rest=${rest#* }
if [ "$rows" = 0 ]; then
    echo "part $part has no rows" >&2
    exit 0
fi
[ "${rest#* }" = "$list" ] ||
    refuse "$frozen was frozen as ${rest#* }: a copy does not know what the original has sent: use that one"
[ -e "$list" ] || [ ! -e "$frozen/parts.txt" ] || refuse "$list is missing: restore it"
found=$(sha256sum <"$list") || fail "$list can't be read"
[ "${found%% *}" = "${rest%% *}" ] ||
    refuse "$list is not the file that was frozen: restore it, its SHA-256 is in $frozen/parts.txt"

command -v "${BROADSIDE:=broadside}" >/dev/null || {
    echo "broadside: --broadside $BROADSIDE: can't be started on this machine" >&2
    exit 127
}

mkdir -p -m 700 "$ledgers" "$work/started" || fail "$work can't be written"
if [ ! -e "$work/started/$part" ]; then
    note "$ledgers/.started-$part"
    note "$work/started/$part"
fi
claims=$(find "$ledgers" -maxdepth 1 -name ".broadside-*-$part-$parts.*") || fail "$ledgers can't be read"
resume=--resume-or-begin
if [ ! -e "$ledgers/.started-$part" ] || [ -e "$ledgers/$part/manifest.json" ] || [ -n "$claims" ]; then
    resume=--resume
fi
set -- --label "fleet_part=$part" "$resume" "$@"
while IFS= read -r label; do
    [ -z "$label" ] || set -- --label "$label" "$@"
done <<END
$labels
END
exec "$BROADSIDE" send --campaign "$frozen/campaign.json" --tokens "$list" --format csv --yes \
    --part "$part/$parts" --ledger "$ledgers/$part" "$@"
