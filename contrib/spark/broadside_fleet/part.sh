#!/bin/sh
# Sends a part of this list, or continues it; broadside-freeze puts this file beside the parts.
#
#   sh WORK/frozen/part.sh PART PARTS [OPTIONS of broadside send]
#
# Every scheduler starts the same command, for the first attempt and all others. The exit code is that of
# broadside send; 2 as well if the list is not the frozen one, or if the part's ledger is lost. BROADSIDE
# is the command, if it is not in PATH.
#
# Before a part's first attempt two notes are durable: one beside the ledgers, and one apart from them. A part
# without a ledger begins only if the ledgers' folder still has its note, and no claim of a ledger that there was
# (Broadside makes one beside each ledger before it sends). So an attempt that ended before it had a ledger is
# repeated, and a part whose ledger was lost is not: --must-resume is exit 2 then.
set -eu
part=$1
parts=$2
shift 2
frozen=$(cd "$(dirname "$0")" && pwd -P)
work=${frozen%/*}
list=$frozen/part-$(printf %04d "$part").csv.zst
ledgers=$work/ledgers

refuse() {
    echo "broadside: $1" >&2
    exit 2
}
note() {
    : >>"$1"
    sync "$1" "${1%/*}"
}

line=$(grep "^$part " "$frozen/parts.txt") || refuse "part $part is not in $frozen/parts.txt: is it the right number?"
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
found=$(sha256sum <"$list") || refuse "$list is missing: restore it"
[ "${found%% *}" = "${rest%% *}" ] ||
    refuse "$list is not the file that was frozen: restore it, its SHA-256 is in $frozen/parts.txt"

command -v "${BROADSIDE:=broadside}" >/dev/null || {
    echo "broadside: --broadside $BROADSIDE: can't be started on this machine" >&2
    exit 1
}

mkdir -p -m 700 "$ledgers" "$work/started"
if [ ! -e "$work/started/$part" ]; then
    note "$ledgers/.started-$part"
    note "$work/started/$part"
fi
resume=--resume
if [ ! -e "$ledgers/.started-$part" ] || [ -e "$ledgers/$part/manifest.json" ] ||
    [ -n "$(find "$ledgers" -maxdepth 1 -name ".broadside-*-$part-$parts.*")" ]; then
    resume=--must-resume
fi
set -- --label "fleet_part=$part" "$resume" "$@"
while IFS= read -r label; do
    set -- --label "$label" "$@"
done <"$frozen/labels.txt"
exec "$BROADSIDE" send --campaign "$frozen/campaign.json" --tokens "$list" --format csv --yes \
    --part "$part/$parts" --ledger "$ledgers/$part" "$@"
